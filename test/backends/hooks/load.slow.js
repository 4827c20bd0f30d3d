// A hooks module that cannot be used: one line that names file and fault, and the gateway that runs keeps its own.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { bin, startGateway } from '../../kit/gateway.js'
import { freePort } from '../../kit/ports.js'
import { RawClient } from '../../kit/raw-client.js'

/** @param {string} folder @param {string} module @returns {Promise<{code: number, text: string}>} */
async function start(folder, module) {
  const config = join(folder, 'config.json')
  await writeFile(
    config,
    JSON.stringify({ hooks: module, workers: 1, http_server: { port: await freePort() } }),
  )
  const child = spawn(process.execPath, [
    bin,
    'serve',
    '-c',
    config,
    '--no-dashboard',
    '--address',
    '127.0.0.1',
  ])
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => (text += chunk))
  const [code] = await once(child, 'close')
  return { code, text }
}

t.test('a module that does not load stops the start with one line', async t => {
  const folder = t.testdir({ 'syntax.js': 'export function connect( {' })
  for (const [module, said] of /** @type {[string, RegExp][]} */ ([
    ['./missing.js', /hooks\.module: .*missing\.js does not exist/],
    ['./syntax.js', /hooks\.module: .*syntax\.js does not load: SyntaxError/],
  ])) {
    const { code, text } = await start(folder, module)
    t.match(text, said)
    t.not(code, 0)
  }
})

t.test('a reload loads a changed module in new workers; one that does not load changes nothing', async t => {
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
  await gateway.line(({ msg }) => msg === 'rolling restart ended')
  t.equal(await version(), 2)
  await appendFile(file, '\nbroken(')
  gateway.process.kill('SIGHUP')
  t.match(await gateway.line(({ msg }) => /^rolling restart ended early/.test(msg)), {
    reason: /hooks\.js does not load/,
  })
  t.equal(await version(), 2)
})
