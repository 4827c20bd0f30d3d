import t from 'tap'
import { readLedger } from '../../fleet/drone/engine/payload.js'
import { startGateway } from '../kit/gateway.js'
import { lives, startDrone } from './agent-process.js'

const gateway = await startGateway(t, {
  workers: 1,
  client: { allow_anonymous_connect_without_token: true },
  channel: { without_namespace: { allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true } },
})

t.test('a drone publishes with a process of its own, and accounts for every message', async t => {
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
  t.ok(busy.counters.bytesOut > 128 * busy.counters.published, 'what publishers send is counted')
  t.ok(busy.probe.count > 0 && busy.latency.count >= busy.probe.count)

  // No more of them: what is told now is all that there is to tell.
  await drone.set({ ...began, publish: { ...publish, rate: 0 } })
  const ledgers = await drone.ask('ledgers')
  t.equal(ledgers.length, 1)
  t.match(ledgers[0], { channels: 's{1..5}', part: 0, parts: 1, sequences: String })
  // Processes tell their counters each at its own time; the ledger is exact.
  const lastOf = readLedger(ledgers[0])
  const total = [1, 2, 3, 4, 5].reduce((sum, n) => sum + lastOf(`s${n}`), 0)
  const still = await drone.sample(
    ({ counters }) => counters.published === total && counters.received === 4 * total,
  )
  const { published, received } = still.counters
  t.same(await drone.ask('reckon', { ledgers }), { expected: received, lost: 0, unknown: 0 })
  const counted = drone.samples.reduce((sum, { latency: { count } }) => sum + count, 0)
  t.equal(counted, received, 'each message is in the distributions, once')

  t.test('an engine that cannot do as it is told: the answer says so, and all is as before', async t => {
    await t.rejects(drone.set({ ...began, connections: 15, user: 'u{own}' }), /token secret/)
    const { gauges, revision } = await drone.sample()
    t.same([gauges.open, revision], [20, 3])
  })

  t.test('the publisher that is killed is replaced, and publishes on', async t => {
    const from = Date.now() + 1000
    await drone.set({ ...load, publishFrom: from, publish })
    await drone.sample(({ counters }) => counters.published > published)
    const pid = drone.pids.at(-1) ?? 0
    process.kill(pid, 'SIGKILL')
    const dead = await drone.sample(({ deaths }) => deaths === 1)
    const again = await drone.sample(({ counters }) => counters.published > dead.counters.published)
    t.ok(again.counters.published > published)
    t.notOk(lives(pid))
    t.equal(again.gauges.open, 20)
  })
})
