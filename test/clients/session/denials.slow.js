// Blocked users and revoked tokens through kills of processes, with the memory engine.

import { appendFile, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { testdir } from '../../kit/folders.js'
import { startGateway } from '../../kit/gateway.js'
import { freePort } from '../../kit/ports.js'
import { until } from '../../kit/wait.js'
import { refused, refusedByAll } from './denials.js'
import { open, tokenClient, user } from './support.js'

const DONE = { result: {} }

t.test('one node with snapshot_file', async t => {
  const folder = await testdir(t)
  const file = join(folder, 'snapshot')
  const journal = `${file}.access`
  const port = await freePort()
  const start = () =>
    startGateway(t, {
      workers: 3,
      http_server: { port },
      engine: { memory: { snapshot_file: file } },
      client: tokenClient(),
      channel: { without_namespace: open },
    })
  const claims = { sub: '7' }
  let gateway = await start()

  for (const [what, end] of /** @type {[string, () => void][]} */ ([
    ['SIGKILL of all processes', () => gateway.process.kill('SIGKILL')],
    ['SIGTERM', () => gateway.process.kill('SIGTERM')],
  ])) {
    t.strictSame(await gateway.api('block_user', { user: '7' }), DONE)
    t.strictSame(await gateway.api('revoke_token', { uid: 'a' }), DONE)
    end()
    await gateway.exited
    // Workers of a killed primary end by themselves.
    gateway = await until(() => start())
    t.equal(await refusedByAll(t, gateway, claims), 3507, what)
    t.equal(await refusedByAll(t, gateway, { sub: '8', jti: 'a' }), 109, what)
    t.strictSame(await gateway.api('unblock_user', { user: '7' }), DONE)
    await user(t, gateway, claims)
  }

  t.strictSame(await gateway.api('block_user', { user: '7' }), DONE)
  const workers = gateway.workerPids
  for (const pid of workers) process.kill(pid, 'SIGKILL')
  await until(() => gateway.workerPids.length === 2 * workers.length)
  t.equal(await refusedByAll(t, gateway, claims), 3507, 'new workers')

  // Killed while changes are written: what was answered is kept.
  const answered = /** @type {string[]} */ ([])
  const call = async (/** @type {string} */ name) => {
    for (let i = 0; ; i++) {
      const { result } = await gateway.api('block_user', { user: `${name}${i}` })
      if (result) answered.push(`${name}${i}`)
    }
  }
  const calls = ['x', 'y', 'z'].map(name => call(name).catch(() => {}))
  await until(() => answered.length > 300)
  gateway.process.kill('SIGKILL')
  await Promise.all([gateway.exited, ...calls])
  gateway = await until(() => start())
  const samples = [...answered.slice(-20), ...answered.slice(0, 5), '7']
  for (const sub of samples) t.equal(await refused(t, gateway, { sub }), 3507, sub)

  gateway.process.kill('SIGKILL')
  await gateway.exited
  const whole = await readFile(journal)
  await appendFile(journal, 'half a record')
  gateway = await until(() => start())
  t.equal(await refused(t, gateway, claims), 3507, 'after a cut write')
  t.ok(gateway.lines.some(({ msg }) => /the last change of the access journal is incomplete/.test(msg)))
  await gateway.stop()
  whole[40] ^= 1
  await writeFile(journal, whole)
  await t.rejects(start(), { message: /snapshot\.access is damaged in line 2; it has the blocked users/ })
  await rm(journal)
  gateway = await start()
  await user(t, gateway, claims)
})
