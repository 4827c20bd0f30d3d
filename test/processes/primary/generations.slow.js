import t from 'tap'
import { skipDriver } from '../../kit/drivers.js'
import { config, healthy } from '../../kit/fleet.js'
import { until } from '../../kit/wait.js'
import { children, generationsSuite, startHoldable } from './generations-suite.js'

for (const driver of ['uws', 'node'])
  t.test(driver, { skip: skipDriver(driver) }, async t => generationsSuite(t, driver))

t.test('a worker may die while its successor starts', async t => {
  const { gateway, hold, release } = await startHoldable(t, { ...config, workers: 1 })
  const [old] = gateway.workerPids
  hold()
  gateway.process.kill('SIGUSR2')
  const next = await until(() => children(gateway).find(pid => pid !== old))
  process.kill(old, 'SIGKILL')
  const died = await gateway.line(({ msg }) => msg === 'worker died')
  release()
  t.match(died, { restart_in_ms: 0, reason: 'signal SIGKILL' })
  await gateway.line(({ msg }) => msg === 'rolling restart finished')
  t.strictSame(gateway.workerPids, [old, next], 'the successor takes its place')
  await healthy(gateway)
})
