import t from 'tap'
import { Drone } from '../../../fleet/controller/drones.js'
import { addTally, snapshotOf, zeroTally } from '../../../fleet/controller/snapshot.js'
import { defaultSettings } from '../../../fleet/settings.js'
import { zeroCounters } from '../../../fleet/statistics/counters.js'
import { Distribution, Distributions } from '../../../fleet/statistics/distribution.js'

const NOW = Date.now()

/** @param {string} id */
const droneOf = id =>
  new Drone({
    id,
    handle: { id, provider: 'local', where: 'local', handle: '1@1', run: 'r', launched: 0, state: 'running' },
    member: true,
    capacity: 0,
    start: '',
    tally: zeroTally(),
    restarts: 0,
  })

/** @param {string} id @param {string} start @returns {any} */
const hello = (id, start) => ({ type: 'hello', id, run: 'r', start, facts: { capacity: 1000, bootId: 'b' } })

/** @param {number} at @param {object} counters @param {number[]} [waits] @param {object} [more] @returns {any} */
function sample(at, counters, waits = [], more = {}) {
  const latency = new Distribution()
  for (const wait of waits) latency.record(wait)
  return {
    at,
    up: 100_000,
    revision: 1,
    exits: 0,
    gauges: { wanted: 10, opening: 0, open: 10 },
    counters: { ...zeroCounters(), ...counters },
    faults: {},
    ...new Distributions().toWire(),
    latency: latency.toWire(),
    clock: { offset: 0, error: 0, against: 'none' },
    processes: [],
    machine: null,
    ...more,
  }
}

const link = /** @type {any} */ ({ close() {} })
const state = /** @type {any} */ ({
  run: 'r',
  provider: 'local',
  settings: defaultSettings(),
  ramp: null,
  began: NOW,
})

/** @param {Drone[]} drones @param {{time?: number, past?: any, distributions?: Distributions}} more */
const snapshotOfAll = (drones, { time = NOW, past = zeroTally(), distributions = new Distributions() }) =>
  snapshotOf({ time, state: { ...state, past }, drones, distributions, events: [] })

t.test('counts of a drone survive its restart', async t => {
  const past = zeroTally()
  const drone = droneOf('d1')
  const total = (/** @type {number} */ time) => snapshotOfAll([drone], { time, past }).counters
  t.same(drone.attach(link, hello('d1', 'a')), zeroTally(), 'no counts before the first start')
  drone.receive(sample(NOW, { received: 70, lost: 2 }, [], { faults: { ECONNREFUSED: 3 } }), NOW)
  t.equal(total(NOW).received, 70)
  drone.detach()
  t.equal(total(NOW).received, 70, 'nor when it is away')
  t.equal(drone.attach(link, hello('d1', 'a')), null, 'the same start continues its counters')
  const before = drone.attach(link, hello('d1', 'b'))
  t.equal(before?.counters.received, 70)
  addTally(past, /** @type {any} */ (before))
  t.equal(total(NOW).received, 70)
  drone.receive(sample(NOW + 1000, { received: 5 }), NOW + 1000)
  t.equal(total(NOW + 1000).received, 75)
  t.equal(total(NOW + 1000).lost, 2)
  t.equal(drone.state.restarts, 1)
})

t.test('rates cover the time between two samples; a silent drone has none', async t => {
  const drone = droneOf('d1')
  drone.attach(link, hello('d1', 'a'))
  drone.receive(sample(NOW, { received: 1000 }), NOW)
  t.equal(drone.row(NOW, new Distribution()).rates.received, 0, 'a drone adopted from another controller')
  drone.receive(sample(NOW + 2000, { received: 3000, bytesIn: 512 }), NOW + 2000)
  const row = drone.row(NOW + 2000, new Distribution())
  t.equal(row.rates.received, 1000)
  t.equal(row.rates.bytesIn, 256)
  t.equal(row.state, 'up')
  const late = drone.row(NOW + 8000, new Distribution())
  t.equal(late.state, 'silent')
  t.equal(late.rates.received, 0)
})

t.test('latencies of all drones are one distribution of the last 5 s', async t => {
  const drones = [droneOf('d1'), droneOf('d2')]
  const distributions = new Distributions()
  const whole = new Distribution()
  const recent = new Distribution()
  for (const [i, drone] of drones.entries()) {
    drone.attach(link, hello(drone.id, 'a'))
    for (let second = 0; second < 8; second++) {
      const waits = Array.from({ length: 50 }, (_, k) => 1 + i * 10 + second + k / 7)
      const at = NOW + second * 1000
      const one = sample(at, {}, waits)
      drone.receive(one, at)
      distributions.merge(one)
      for (const wait of waits) {
        whole.record(wait)
        if (second >= 3) recent.record(wait)
      }
    }
  }
  const snapshot = snapshotOfAll(drones, { time: NOW + 7000, distributions })
  const [now, all] = [Distribution.from(snapshot.latencyNow), Distribution.from(snapshot.latency)]
  t.equal(all.count, 800)
  t.equal(now.count, 500)
  t.ok(Math.abs(all.mean - whole.mean) < 1e-9)
  t.ok(Math.abs(all.deviation - whole.deviation) < 1e-9)
  t.equal(now.percentile(99), recent.percentile(99))
  t.same(snapshot.gauges, { wanted: 20, opening: 0, open: 20 })
  distributions.reset()
  t.equal(distributions.toWire().latency.count, 0)
})

t.test('memory per connection excludes the empty process; it is unknown with few connections', async t => {
  const drone = droneOf('d1')
  drone.attach(link, hello('d1', 'a'))
  const processes = (/** @type {number} */ connections) => [
    { pid: 1, role: 'agent', connections: 0, cpu: 500, rss: 0, private: 9e6, base: 8e6 },
    { pid: 2, role: 'connections', connections, cpu: 2000, rss: 0, private: 12e6, base: 10e6 },
  ]
  drone.receive(sample(NOW, {}, [], { processes: processes(100) }), NOW)
  t.equal(drone.row(NOW, new Distribution()).bytesPerConnection, 0)
  const later = processes(1000).map(one => ({ ...one, cpu: one.cpu + 250 }))
  drone.receive(sample(NOW + 1000, {}, [], { processes: later }), NOW + 1000)
  const row = drone.row(NOW + 1000, new Distribution())
  t.equal(row.bytesPerConnection, 2000)
  t.equal(row.cpu, 0.5, 'share of a core')
})

t.test('kinds of faults are bounded', async t => {
  const total = zeroTally()
  for (let i = 0; i < 100; i++)
    addTally(total, { counters: zeroCounters(), faults: { [`HTTP ${400 + i}`]: 2 } })
  t.equal(Object.keys(total.faults).length, 61)
  t.equal(
    Object.values(total.faults).reduce((sum, count) => sum + count, 0),
    200,
  )
})

t.test('a fault may have the name of an object property', async t => {
  const tally = zeroTally()
  for (let i = 0; i < 2; i++)
    addTally(tally, { counters: zeroCounters(), faults: JSON.parse('{"constructor":2,"__proto__":3}') })
  t.same(Object.entries(tally.faults), [
    ['constructor', 4],
    ['__proto__', 6],
  ])
})
