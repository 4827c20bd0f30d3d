// A stuck worker is killed and replaced.

import t from 'tap'
import { skipDriver } from '../../kit/drivers.js'
import { config, crowd, healthy } from '../../kit/fleet.js'
import { until } from '../../kit/wait.js'
import { watched } from './telemetry-rig.js'

for (const driver of ['uws', 'node']) {
  t.test(
    `${driver}: a stopped worker is replaced, and all clients can reconnect`,
    { skip: skipDriver(driver) },
    async t => {
      const { gateway, watcher } = await watched(t, {
        ...config,
        http_server: { driver },
        log: { level: 'debug' },
        worker: { liveness_timeout: '4s' },
      })
      const clients = await crowd(gateway)
      // One worker may have accepted all of them: the one with fewer is stopped.
      const open = ({ sample }) => sample.connections.open
      const { workers } = await watcher.snapshot(
        ({ workers }) => workers.reduce((sum, worker) => sum + (worker.sample ? open(worker) : 0), 0) === 24,
      )
      const [fewer, more] = workers.toSorted((a, b) => open(a) - open(b))
      const stopped = fewer.sample.pid
      process.kill(stopped, 'SIGSTOP')
      const line = await gateway.line(({ msg }) => msg === 'worker died')
      t.match(line, { level: 50, reason: /^stuck: no sample for \d+ s$/, restart_in_ms: 0 })
      await until(() => gateway.workerPids.length === 3)
      await healthy(gateway)
      t.throws(() => process.kill(stopped, 0), { code: 'ESRCH' })
      t.equal((await crowd(gateway)).length, 24)
      const left = await until(() => {
        const left = clients.filter(({ ended }) => !ended)
        return left.length <= open(more) && left
      })
      t.equal(left.length, open(more), 'clients of the other worker are not affected')
      await Promise.all(left.map(client => client.subscribe('news')))
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
