import t from 'tap'
import { splitSettings, Totals } from '../../fleet/drone/process-pool.js'
import { zeroCounters } from '../../fleet/statistics/counters.js'
import { Distribution } from '../../fleet/statistics/distribution.js'
import { settingsOf } from './agent-process.js'

/** @param {any} some @param {number} perProcess @param {number[]} [open] @param {number} [cores] @param {number[]} [stuck] */
const shares = (some, perProcess, open = [], cores = 4, stuck = []) => {
  const progress = open.map((open, i) => ({ open, isStuck: stuck.includes(i) }))
  return splitSettings(settingsOf(some), perProcess, progress, cores)
}

/** @param {any[]} parts @param {string} name */
const sum = (parts, name) => parts.reduce((all, part) => all + part[name], 0)

t.test('each process keeps its connections when their total changes', async t => {
  for (const connections of [1, 10, 11, 25, 30]) {
    const parts = shares({ connections, first: 1000 }, 10)
    const firsts = parts.map(({ first }) => first)
    t.same(firsts, [1000, 1010, 1020].slice(0, Math.ceil(connections / 10)))
    t.equal(sum(parts, 'connections'), connections)
  }
  t.same(shares({ connections: 0 }, 10), [])
})

t.test('limits are shared by all processes; processes with missing connections get most', async t => {
  const some = { connections: 30, rate: 300, concurrency: 60, churn: 6 }
  const even = { rate: 100, concurrency: 20, churn: 2, publish: null }
  t.match(shares(some, 10), [even, even, even])
  t.ok(shares(some, 10, [10, 10, 10]).every(({ rate }) => Math.abs(rate - 100) < 1e-9))
  const last = shares(some, 10, [10, 10, 0])
  t.ok(last[0].rate > 0 && last[1].rate > 0 && last[2].rate > 280)
  t.ok(Math.abs(sum(last, 'rate') - 300) < 1e-9)
  t.ok(last.every(({ concurrency }) => concurrency >= 1))
  t.match(shares({ ...some, rate: 0 }, 10), [{ rate: 0 }, { rate: 0 }, { rate: 0 }])
})

t.test('as many processes as cores open connections at a time', async t => {
  const some = { connections: 500, rate: 300, concurrency: 50 }
  /** @param {number[]} open */
  const limits = open =>
    shares(some, 100, open, 2).map(({ concurrency, rate }) => [concurrency, Math.round(rate)])
  const filling = [25, 150]
  const waiting = [0, 0]
  t.same(limits([]), [filling, filling, waiting, waiting, waiting])
  t.same(limits([10, 89]), [filling, filling, waiting, waiting, waiting])
  const almost = limits([10, 90])
  t.same(almost.slice(3), [waiting, waiting])
  t.same(almost[0], almost[2])
  t.ok(almost[1][1] > 0 && almost[1][1] < almost[0][1], 'the last ones of an almost complete process')
  const complete = limits([100, 100, 100, 100, 90])
  for (const [concurrency, rate] of complete) t.ok(concurrency >= 1 && rate >= 1, 'they may lose some')
  t.same(
    limits([60, 60, 60, 60, 60]),
    [filling, filling, waiting, waiting, waiting],
    'many were lost together',
  )
  const stuck = shares(some, 100, [67, 67, 10], 2, [0, 1])
  t.ok(stuck[2].rate > stuck[0].rate && stuck[2].rate === stuck[3].rate, 'two processes make no progress')
  t.ok(stuck[0].rate > 0 && stuck[4].concurrency === 0)
  t.equal(sum(shares({ ...some, rate: 0 }, 100, [], 2), 'rate'), 0, 'unlimited')
})

/** @param {any} some */
const sampleOf = ({ open = 0, latencies = [], faults = {}, clock, ...counters }) => {
  const latency = new Distribution()
  for (const ms of latencies) latency.record(ms)
  const none = new Distribution().toWire()
  return {
    gauges: { wanted: open, opening: 1, open },
    counters: { ...zeroCounters(), ...counters },
    latency: latency.toWire(),
    probe: none,
    connect: none,
    answer: none,
    faults,
    clock: clock ?? { offset: 0, error: 0, against: 'none' },
  }
}

t.test('counts of exited processes stay in the totals', async t => {
  const totals = new Totals()
  const counts = { opened: 7, received: 100, latencies: [1, 2], faults: { ECONNREFUSED: 2 } }
  const first = sampleOf({ open: 5, ...counts })
  const faults = { ECONNREFUSED: 1, other: 1 }
  const second = sampleOf({ open: 3, opened: 3, received: 50, latencies: [9], faults })
  totals.merge(first)
  totals.merge(second)
  const both = totals.take([first, second], 10)
  t.same(both.gauges, { wanted: 10, opening: 2, open: 8 })
  t.match(both.counters, { opened: 10, received: 150, ended: 0 })
  t.same(both.faults, { ECONNREFUSED: 3, other: 1 })
  t.match(both.latency, { count: 3, min: 1, max: 9, mean: 4 })

  totals.addEnded(first)
  const alone = totals.take([second], 10)
  t.match(alone.counters, { opened: 10, received: 150, ended: 5 })
  t.match([alone.gauges.open, alone.latency.count, alone.latency.max], [3, 0, 0])
  t.same(alone.faults, both.faults)
})

t.test('kinds of faults are bounded; the most accurate clock is used', async t => {
  const totals = new Totals()
  for (let i = 0; i < 50; i++) totals.merge(sampleOf({ faults: { [`fault ${i}`]: 1 } }))
  const clocks = [
    { offset: 1, error: 5, against: 'gateway' },
    { offset: 2, error: 3, against: 'gateway' },
    { offset: 3, error: 0, against: 'none' },
  ]
  const { faults, clock } = totals.take(
    clocks.map(clock => /** @type {any} */ (sampleOf({ clock }))),
    0,
  )
  t.equal(Object.keys(faults).length, 30)
  t.equal(faults.other, 21)
  t.same(clock, clocks[1])
})
