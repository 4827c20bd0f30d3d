// Drones over minutes: without a controller, with processes that hang or die, and publishing.

import t from 'tap'
import { readLedger } from '../../fleet/drone/engine/payload.js'
import { startGateway } from '../kit/gateway.js'
import { freePort } from '../kit/ports.js'
import { until } from '../kit/wait.js'
import { host, lives, startDrone } from './agent-process.js'

const gateway = await startGateway(t, {
  workers: 1,
  client: { allow_anonymous_connect_without_token: true },
  channel: { without_namespace: { allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true } },
})
const target = { targets: [gateway.url], backoff: { min: 50, max: 200 } }

t.test('a drone without a controller continues its load until orphanAfter', async t => {
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

t.test('a drone stops its load after orphanAfter and continues with a new controller', async t => {
  const drone = await startDrone(t, { orphanAfter: 1, exitAfter: 60 })
  await drone.set({ ...target, connections: 10 })
  await drone.sample(({ gauges }) => gauges.open === 10)
  await drone.leave()
  await drone.until(() => drone.output.includes('stopping the load'))
  await drone.comeBack()
  await drone.until(() => drone.hellos.length === 2)
  // Its process may still be closing them.
  const rested = await drone.sample(({ gauges }) => gauges.open === 0)
  t.same([rested.gauges.wanted, rested.gauges.open, rested.revision], [0, 0, 0])
  t.match(drone.events, [/no controller for 1 s: stopping the load/])
  await drone.set({ ...target, connections: 10 })
  const again = await drone.sample(({ gauges }) => gauges.open === 10)
  t.equal(again.counters.opened, 20)
})

t.test('a drone exits after exitAfter', async t => {
  const drone = await startDrone(t, { orphanAfter: 0.2, exitAfter: 3 })
  await drone.set({ ...target, connections: 5 })
  await drone.sample(({ gauges }) => gauges.open === 5)
  await drone.leave()
  t.same(await drone.exited, { code: 0, signal: null })
  t.match(drone.output, /exiting: no controller for 3 s/)
})

t.test('a listening drone obeys the newest controller', async t => {
  const place = `${host}:${await freePort()}`
  const drone = await startDrone(t, { listen: place })
  await drone.until(() => drone.output.includes('listening on port'))
  const line = await drone.dial(place)
  await drone.set({ ...target, connections: 5 })
  await drone.sample(({ gauges }) => gauges.open === 5)
  await drone.dial(place)
  await drone.until(() => line.reason)
  const sample = await drone.sample()
  t.equal(sample.gauges.open, 5)
  await drone.ask('stop')
  t.same(await drone.exited, { code: 0, signal: null })
})

t.test('a process that hangs is killed and replaced', async t => {
  const drone = await startDrone(t, { perProcess: 3, hangAfter: 5 })
  await drone.set({ ...target, connections: 5 })
  await drone.sample(({ gauges }) => gauges.open === 5)
  const [, hanging, other] = [0, ...drone.pids]
  process.kill(hanging, 'SIGSTOP')
  await drone.sample(({ exits, gauges }) => exits === 1 && gauges.open === 5)
  t.match(drone.events, [/did not respond/])
  t.notOk(lives(hanging))
  t.ok(lives(other))
})

t.test('processes whose target is down do not delay the others', async t => {
  const drone = await startDrone(t, { perProcess: 20 })
  const dead = `http://127.0.0.1:${await freePort()}`
  await drone.set({ ...target, targets: [gateway.url, dead], connections: 120 })
  const half = await drone.sample(({ gauges }) => gauges.open === 60)
  t.equal(half.processes.length, 7, 'and the agent')
  t.ok(half.counters.failed > 0)
})

t.test('no process remains after the agent was killed or terminated', async t => {
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

t.test('a drone publishes from a separate process and accounts for every message', async t => {
  const drone = await startDrone(t, { perProcess: 10, apiKey: 'key' })
  const load = {
    targets: [gateway.url],
    connections: 20,
    channels: ['s{1..5}'],
  }
  const publish = {
    via: 'api',
    channels: 's{1..5}',
    order: 'random',
    rate: 200,
    size: 128,
    part: 0,
    parts: 1,
  }
  await drone.set(load)
  await drone.sample(({ gauges }) => gauges.open === 20)
  const began = { ...load, publishFrom: Date.now() + 1000 }
  await drone.set({ ...began, publish })
  const busy = await drone.sample(({ counters }) => counters.received > 400)
  t.same(
    busy.processes.map((/** @type {any} */ { role }) => role),
    ['agent', 'connections', 'connections', 'publisher'],
  )
  t.equal(busy.clock.against, 'none')
  t.ok(busy.counters.bytesOut > 128 * busy.counters.published, 'messages of publishers are counted')
  t.ok(busy.probe.count > 0 && busy.latency.count >= busy.probe.count)

  await drone.set({ ...began, publish: { ...publish, rate: 0 } })
  const ledgers = await drone.ask('ledgers')
  t.equal(ledgers.length, 1)
  t.match(ledgers[0], { channels: 's{1..5}', part: 0, parts: 1, sequences: String })
  // Counters are sent once a second, the ledger is exact.
  const lastOf = readLedger(ledgers[0])
  const total = [1, 2, 3, 4, 5].reduce((sum, n) => sum + lastOf(`s${n}`), 0)
  const still = await drone.sample(
    ({ counters }) => counters.published === total && counters.received === 4 * total,
  )
  const { published, received } = still.counters
  t.same(await drone.ask('reconcile', { ledgers }), { expected: received, lost: 0, unknown: 0 })
  const counted = drone.samples.reduce((sum, { latency: { count } }) => sum + count, 0)
  t.equal(counted, received, 'each message is in the distributions, once')

  t.test('settings that an engine refuses are an error without effect', async t => {
    await t.rejects(drone.set({ ...began, connections: 15, user: 'u{own}' }), /token secret/)
    const { gauges, revision } = await drone.sample()
    t.same([gauges.open, revision], [20, 3])
  })

  t.test('a killed publisher process is replaced and continues', async t => {
    const from = Date.now() + 1000
    await drone.set({ ...load, publishFrom: from, publish })
    await drone.sample(({ counters }) => counters.published > published)
    const pid = drone.pids.at(-1) ?? 0
    process.kill(pid, 'SIGKILL')
    const dead = await drone.sample(({ exits }) => exits === 1)
    const again = await drone.sample(({ counters }) => counters.published > dead.counters.published)
    t.ok(again.counters.published > published)
    t.notOk(lives(pid))
    t.equal(again.gauges.open, 20)
  })
})
