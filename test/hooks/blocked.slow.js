// A handler that blocks the event loop of its worker is named in the log, and its worker is replaced.

import { join } from 'node:path'
import t from 'tap'
import { startGateway } from '../gateway.js'
import { RawClient } from '../raw-client.js'
import { testdir } from '../testdir.js'

const HOOKS = `
  const forEver = () => { for (;;); }
  export const connect = () => ({ user: 'ann' })
  export const rpc = { 'chat.loop': forEver, fine: () => 1 }`

t.test('a handler that never returns', async t => {
  const folder = testdir(t, { 'package.json': '{"type":"module"}', 'hooks.js': HOOKS })
  const gateway = await startGateway(t, {
    hooks: { module: join(folder, 'hooks.js') },
    worker: { liveness_timeout: '1s' },
  })
  const linesOf = (/** @type {string} */ msg) => gateway.lines.filter(line => line.msg === msg)
  const named = () => linesOf('worker died').find(({ reason }) => reason.includes('it runs the'))
  // A worker that stands still with its whole machine is replaced, too: then once more.
  while (named() === undefined) {
    const deaths = linesOf('worker died').length
    const client = await RawClient.connected(gateway.ws).catch(() => null)
    client?.send({ id: 9, rpc: { method: 'chat.loop' } })
    await client?.closed
    await gateway.line(() => linesOf('worker died').length > deaths)
    await gateway.line(() => linesOf('worker listens').length >= 2 + linesOf('worker died').length)
  }
  const { worker, reason } = named()
  t.match(reason, /^stuck: .*; it runs the rpc\.chat\.loop hook$/)
  const line = linesOf('a hook blocks its worker').find(line => line.worker === worker)
  t.match(line, { level: 40, hook: 'rpc.chat.loop hook' })
  const client = await RawClient.connected(gateway.ws)
  t.strictSame((await client.call('rpc', { method: 'fine' })).rpc, { data: 1 })
  await client.close()
})
