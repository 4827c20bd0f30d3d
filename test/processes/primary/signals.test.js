// How the gateway ends, and when it does not begin.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import t from 'tap'
import { config, healthy, silence } from '../../kit/fleet.js'
import { bin, startGateway } from '../../kit/gateway.js'
import { freePort } from '../../kit/ports.js'

/** A stopped process must not outlive a test that fails. */
function end(pid) {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if (error.code !== 'ESRCH') throw error
  }
}

t.test(
  'a port in use is one clear line, and exit code 1; a worker that is being replaced holds up no SIGTERM',
  async t => {
    // A long key: a short one would be a second line.
    const gateway = await startGateway(t, { ...config, http_api: { key: 'k'.repeat(32) } })
    const child = spawn(process.execPath, [bin, 'serve', '-c', join(gateway.folder, 'config.json')])
    let output = ''
    child.stdout.on('data', data => (output += data))
    child.stderr.on('data', data => (output += data))
    const [code] = await once(child, 'close')
    t.equal(code, 1)
    t.equal(output.trim().split('\n').length, 1, output)
    t.match(output, `127.0.0.1:${gateway.port}`)
    t.match(output, /EADDRINUSE|in use/)
    await healthy(gateway)

    // SIGTERM while a worker is being replaced does not wait for it.
    process.kill(gateway.workerPids[0], 'SIGKILL')
    await gateway.line(({ msg }) => msg === 'worker died')
    gateway.process.kill('SIGTERM')
    t.strictSame(await gateway.exited, { code: 0, signal: null })
  },
)

t.test('SIGTERM while it starts ends it, too', async t => {
  const port = await freePort()
  const child = spawn(process.execPath, [
    bin,
    'serve',
    '--port',
    String(port),
    '--workers',
    '2',
    '--log-level',
    'debug',
  ])
  let output = ''
  child.stdout.on('data', data => {
    const before = output
    output += data
    if (output.includes('worker listens') && !before.includes('worker listens')) child.kill('SIGTERM')
  })
  t.strictSame(await once(child, 'close'), [0, null])
  t.match(output, 'bye')
  await silence(port)
})

t.test('a second signal ends at once, whatever a worker does', async t => {
  const gateway = await startGateway(t, { ...config, workers: 1 })
  const [stopped] = gateway.workerPids
  process.kill(stopped, 'SIGSTOP')
  t.teardown(() => end(stopped))
  gateway.process.kill('SIGTERM')
  await gateway.line(({ msg }) => msg === 'shutting down')
  gateway.process.kill('SIGTERM')
  await gateway.line(({ msg }) => msg === 'second signal: the gateway ends at once')
  t.strictSame(await gateway.exited, { code: 1, signal: null })
  await silence(gateway.port)
})

t.test('a shutdown takes no longer than shutdown.timeout', async t => {
  const gateway = await startGateway(t, { ...config, workers: 1, shutdown: { timeout: '300ms' } })
  const [stopped] = gateway.workerPids
  process.kill(stopped, 'SIGSTOP')
  t.teardown(() => end(stopped))
  gateway.process.kill('SIGTERM')
  t.strictSame(await gateway.exited, { code: 1, signal: null })
  await silence(gateway.port)
})
