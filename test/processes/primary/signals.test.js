// Signals, and failed starts.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import t from 'tap'
import { config, healthy, silence } from '../../kit/fleet.js'
import { bin, startGateway } from '../../kit/gateway.js'
import { freePort } from '../../kit/ports.js'
import { run } from '../../kit/programs.js'

/** A stopped process must not outlive a test that fails. */
function end(pid) {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if (error.code !== 'ESRCH') throw error
  }
}

t.test(
  'a port in use is a one-line error with exit code 1; SIGTERM does not wait for a replacement',
  async t => {
    // A short key would print a warning.
    const gateway = await startGateway(t, { ...config, http_api: { key: 'k'.repeat(32) } })
    const file = join(gateway.folder, 'config.json')
    const { code, output } = await run(t, process.execPath, [bin, 'serve', '-c', file])
    t.equal(code, 1)
    t.equal(output.trim().split('\n').length, 1, output)
    t.match(output, `127.0.0.1:${gateway.port}`)
    t.match(output, /EADDRINUSE|in use/)
    await healthy(gateway)

    // SIGTERM while a worker is being replaced.
    process.kill(gateway.workerPids[0], 'SIGKILL')
    await gateway.line(({ msg }) => msg === 'worker died')
    gateway.process.kill('SIGTERM')
    t.strictSame(await gateway.exited, { code: 0, signal: null })
  },
)

t.test('SIGTERM during startup stops it', async t => {
  const port = await freePort()
  const options = `serve --port ${port} --workers 2 --log-level debug`
  const child = spawn(process.execPath, [bin, ...options.split(' ')])
  let output = ''
  child.stdout.on('data', data => {
    const before = output
    output += data
    if (output.includes('worker is listening') && !before.includes('worker is listening'))
      child.kill('SIGTERM')
  })
  t.strictSame(await once(child, 'close'), [0, null])
  t.match(output, 'gateway stopped')
  await silence(port)
})

for (const timeout of ['30s', '300ms'])
  t.test(
    `${timeout === '30s' ? 'a second signal' : 'shutdown.timeout'} stops a gateway with a stopped worker`,
    async t => {
      const gateway = await startGateway(t, { ...config, workers: 1, shutdown: { timeout } })
      const [stopped] = gateway.workerPids
      process.kill(stopped, 'SIGSTOP')
      t.teardown(() => end(stopped))
      gateway.process.kill('SIGTERM')
      if (timeout === '30s') {
        await gateway.line(({ msg }) => msg === 'shutting down')
        gateway.process.kill('SIGTERM')
        await gateway.line(({ msg }) => msg === 'second signal: exiting immediately')
      }
      t.strictSame(await gateway.exited, { code: 1, signal: null })
      await silence(gateway.port)
    },
  )
