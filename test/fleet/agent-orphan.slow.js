// A drone without its controller: it goes on for a while, and then lets its clients go.

import t from 'tap'
import { startGateway } from '../kit/gateway.js'
import { startDrone } from './agent-process.js'

const gateway = await startGateway(t, { workers: 1, client: { allow_anonymous_connect_without_token: true } })
const target = { targets: [gateway.url], backoff: { min: 50, max: 200 } }

t.test('without its controller it loads on for a while', async t => {
  const drone = await startDrone(t, { orphanAfter: 60, exitAfter: 120 })
  await drone.set({ ...target, connections: 10 })
  const before = await drone.sample(({ gauges }) => gauges.open === 10)
  await drone.leave()
  await drone.comeBack()
  await drone.until(() => drone.hellos.length === 2)
  t.equal(drone.hellos[1].start, drone.hellos[0].start)
  const soon = await drone.sample()
  t.same([soon.gauges.open, soon.counters.opened], [10, 10])
  t.ok(soon.up > before.up)
})

t.test('without its controller for longer it rests, and goes on when one comes', async t => {
  const drone = await startDrone(t, { orphanAfter: 1, exitAfter: 60 })
  await drone.set({ ...target, connections: 10 })
  await drone.sample(({ gauges }) => gauges.open === 10)
  await drone.leave()
  await drone.until(() => drone.output.includes('it stops loading'))
  await drone.comeBack()
  await drone.until(() => drone.hellos.length === 2)
  // Its process may still be closing them.
  const rested = await drone.sample(({ gauges }) => gauges.open === 0)
  t.same([rested.gauges.wanted, rested.gauges.open, rested.revision], [0, 0, 0])
  t.match(drone.events, [/no controller for 1 s: it stops loading/])
  await drone.set({ ...target, connections: 10 })
  const again = await drone.sample(({ gauges }) => gauges.open === 10)
  t.equal(again.counters.opened, 20)
})
