// A stuck worker is killed and replaced.

import t from 'tap'
import { skipDriver } from '../../kit/drivers.js'
import { config, crowd, healthy } from '../../kit/fleet.js'
import { startGateway } from '../../kit/gateway.js'
import { until } from '../../kit/wait.js'
import { watched } from './telemetry-rig.js'

for (const driver of ['uws', 'node']) {
  t.test(
    `${driver}: a stopped worker is replaced, and all clients can reconnect`,
    { skip: skipDriver(driver) },
    async t => {
      const gateway = await startGateway(t, {
        ...config,
        http_server: { driver },
        worker: { liveness_timeout: '4s' },
      })
      const clients = await crowd(gateway)
      const [stopped] = gateway.workerPids
      process.kill(stopped, 'SIGSTOP')
      const line = await gateway.line(({ msg }) => msg === 'worker died')
      t.match(line, { level: 50, reason: /^stuck: no sample for \d+ s$/, restart_in_ms: 0 })
      await until(() => gateway.workerPids.length === 3)
      await healthy(gateway)
      t.throws(() => process.kill(stopped, 0), { code: 'ESRCH' })
      t.equal((await crowd(gateway)).length, 24)
      t.ok(
        clients.some(({ ended }) => !ended),
        'clients of the other worker are not affected',
      )
    },
  )
}

t.test('a suspended process group continues with all its workers', async t => {
  const { gateway, watcher } = await watched(t, { ...config, worker: { liveness_timeout: '3s' } })
  const clients = await crowd(gateway)
  const { workers } = await watcher.snapshot(({ totals }) => totals.workers === 2)
  const pids = [gateway.process.pid, ...workers.map(({ sample }) => sample.pid)]
  for (const pid of pids) process.kill(pid, 'SIGSTOP')
  await new Promise(resolve => setTimeout(resolve, 6000))
  // The primary first: it has no samples of its workers yet.
  for (const pid of pids) process.kill(pid, 'SIGCONT')
  const { seq } = await watcher.snapshot(() => true)
  await watcher.snapshot(later => later.seq >= seq + 5)
  t.strictSame(
    gateway.lines.filter(({ msg }) => msg === 'worker died'),
    [],
  )
  t.ok(clients.every(({ ended }) => !ended))
})
