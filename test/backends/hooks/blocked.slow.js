// A handler that blocks the event loop of its worker is named in the log, and its worker is replaced.

import { join } from 'node:path'
import t from 'tap'
import { testdir } from '../../kit/folders.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'

const BLOCKS = 'hook is blocking the event loop'
const HOOKS = `
  const forEver = () => { for (;;); }
  export const connect = () => ({ user: 'ann' })
  export const rpc = {
    'chat.loop': forEver,
    'chat.later': () => new Promise(resolve => setImmediate(resolve)).then(forEver),
    fine: () => 1,
  }`

t.test('the log names handlers that block before or after an await', async t => {
  const folder = testdir(t, { 'package.json': '{"type":"module"}', 'hooks.js': HOOKS })
  const gateway = await startGateway(t, {
    hooks: { module: join(folder, 'hooks.js') },
    worker: { liveness_timeout: '2s' },
  })
  const linesOf = msg => gateway.lines.filter(line => line.msg === msg)
  const diedOf = hook =>
    linesOf('worker died').find(({ reason }) => reason.startsWith('stuck: ') && hook.test(reason))
  const runs = () => diedOf(/; running the rpc\.chat\.loop hook$/)
  const waits = () => diedOf(/; pending: rpc\.chat\.later hook$/)
  // A worker may also be replaced because the whole machine was blocked: try again once.
  while (runs() === undefined || waits() === undefined) {
    const deaths = linesOf('worker died').length
    const lines = linesOf(BLOCKS).length
    const first = await RawClient.connected(gateway.ws).catch(() => null)
    first?.send({ id: 9, rpc: { method: 'chat.loop' } })
    await Promise.race([gateway.line(() => linesOf(BLOCKS).length > lines), first?.closed])
    // One of them reaches the worker that is not blocked.
    const some = Array.from({ length: 16 }, () => RawClient.connected(gateway.ws))
    const second = await Promise.any(some).catch(() => null)
    second?.send({ id: 9, rpc: { method: 'chat.later' } })
    await gateway.line(() => linesOf('worker died').length >= deaths + 2)
    await gateway.line(() => linesOf('worker is listening').length >= 2 + linesOf('worker died').length)
  }
  const line = linesOf(BLOCKS).find(({ worker }) => worker === runs().worker)
  t.match(line, { level: 40, hook: 'rpc.chat.loop hook' })
  const client = await RawClient.connected(gateway.ws)
  t.strictSame((await client.call('rpc', { method: 'fine' })).rpc, { data: 1 })
  await client.close()
})
