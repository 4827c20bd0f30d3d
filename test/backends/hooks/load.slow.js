// A hooks module that does not load: one line names file and cause; a running gateway keeps its old module.

import { appendFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'

t.test('startup fails with a one-line error if the module does not load', async t => {
  const folder = t.testdir({ 'syntax.js': 'export function connect( {' })
  for (const [module, said] of /** @type {[string, RegExp][]} */ ([
    ['./missing.js', /hooks\.module: .*missing\.js does not exist/],
    [join(folder, 'syntax.js'), /hooks\.module: .*syntax\.js does not load: SyntaxError/],
  ]))
    await t.rejects(startGateway(t, { hooks: module, workers: 1 }), said)
})

t.test('a reload replaces workers to load a changed module; a broken module changes nothing', async t => {
  const folder = t.testdir({ 'hooks.js': 'export const rpc = { version: () => 1 }' })
  const file = join(folder, 'hooks.js')
  const client = { allow_anonymous_connect_without_token: true }
  const gateway = await startGateway(t, { hooks: file, workers: 1, client })
  const version = async () => {
    const client = await RawClient.connected(gateway.ws)
    const { rpc } = await client.call('rpc', { method: 'version' })
    client.socket.terminate()
    return rpc.data
  }
  t.equal(await version(), 1)
  await writeFile(file, 'export const rpc = { version: () => 2 }  ')
  gateway.process.kill('SIGHUP')
  await gateway.line(({ msg }) => msg === 'rolling restart finished')
  t.equal(await version(), 2)
  await appendFile(file, '\nbroken(')
  gateway.process.kill('SIGHUP')
  t.match(await gateway.line(({ msg }) => /^rolling restart aborted/.test(msg)), {
    reason: /hooks\.js does not load/,
  })
  t.equal(await version(), 2)
})
