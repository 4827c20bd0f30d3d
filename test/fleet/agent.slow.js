import t from 'tap'
import { startGateway } from '../kit/gateway.js'
import { freePort } from '../kit/ports.js'
import { until } from '../kit/wait.js'
import { lives, startDrone } from './agent-process.js'

const gateway = await startGateway(t, { workers: 1, client: { allow_anonymous_connect_without_token: true } })
const target = { targets: [gateway.url], backoff: { min: 50, max: 200 } }

t.test('a process that hangs is ended by force, and replaced', async t => {
  const drone = await startDrone(t, { perProcess: 3, hangAfter: 5 })
  await drone.set({ ...target, connections: 5 })
  await drone.sample(({ gauges }) => gauges.open === 5)
  const [, hanging, other] = [0, ...drone.pids]
  process.kill(hanging, 'SIGSTOP')
  await drone.sample(({ deaths, gauges }) => deaths === 1 && gauges.open === 5)
  t.match(drone.events, [/did not answer/])
  t.notOk(lives(hanging))
  t.ok(lives(other))
})

t.test('processes that get no further, since a target is down, do not keep the others waiting', async t => {
  const drone = await startDrone(t, { perProcess: 20 })
  const dead = `http://127.0.0.1:${await freePort()}`
  await drone.set({ ...target, targets: [gateway.url, dead], connections: 120 })
  const half = await drone.sample(({ gauges }) => gauges.open === 60)
  t.equal(half.processes.length, 7, 'and the agent')
  t.ok(half.counters.failed > 0)
})

t.test('an agent that is killed leaves no process, one that is told to end neither', async t => {
  for (const signal of /** @type {const} */ (['SIGKILL', 'SIGTERM'])) {
    const drone = await startDrone(t, { perProcess: 5 })
    await drone.set({ ...target, connections: 10 })
    await drone.sample(({ gauges }) => gauges.open === 10)
    const { pids } = drone
    t.equal(pids.length, 2)
    drone.child?.kill(signal)
    t.same(await drone.exited, signal === 'SIGKILL' ? { code: null, signal } : { code: 0, signal: null })
    await until(() => !pids.some(lives))
  }
})
