import t from 'tap'
import { Lifetimes } from '../../src/metrics/lifetimes.js'
import { TICK_BOUNDS } from '../../src/metrics/table.js'
import { TickHistogram } from '../../src/metrics/tick-histogram.js'
import { mockSnapshots } from './mock.js'

const [{ primary, workers, machine }] = mockSnapshots({ seconds: 1 })
const worker = /** @type {import('../../src/metrics/schema.js').WorkerSample} */ (workers[1].sample)

t.test('counters of a slot are summed across its processes', async t => {
  const lifetimes = new Lifetimes(2)
  const flows = { in: { messages: 3, bytes: 100 }, out: { messages: 5, bytes: 700 } }
  const gc = { ...worker.gc, major: { count: 2, pause: 7.5 } }
  const sample = { ...worker, gc, cpu: { user: 0.5, system: 0.25 }, counts: { ...worker.counts, ...flows } }
  lifetimes.addWorker({ ...sample, interval: 1000 })
  lifetimes.addWorker({ ...sample, interval: 2000, pid: 9999, uptime: 10 })
  const { workers: slots } = lifetimes.read()
  t.same(slots[1].cpu, { user: 1500, system: 750 }, 'shares of longer intervals weigh more')
  t.same(slots[1].gc.major, { count: 4, pause: 15 })
  t.same(slots[1].in, { messages: 6, bytes: 200 })
  t.same(slots[1].out, { messages: 10, bytes: 1400 })
  t.equal(slots[0].ticks.count, 0, 'the other slot')
})

t.test('ticks are counted by their upper bounds', async t => {
  const lifetimes = new Lifetimes(1)
  const ticks = new TickHistogram()
  for (const wait of [0, 0.4, 1.5, 9, 30, 199, 201, 60_000]) ticks.record(wait)
  lifetimes.addPrimary({ ...primary, loop: { utilization: 0.5, ticks: ticks.toTicks() } }, 1000)
  const { active, ticks: sums } = lifetimes.read().primary
  t.equal(active, 500)
  t.equal(sums.count, 8)
  t.ok(Math.abs(sums.sum - 60_440.9) < 0.1)
  t.same(TICK_BOUNDS.slice(0, 9), [1, 2, 5, 10, 20, 50, 100, 200, 500])
  t.same(sums.within, [2, 3, 3, 4, 4, 5, 5, 6, 7, 7, 7, 7, 7])
})

t.test('rates and shares of the machine are multiplied by time, counts are added', async t => {
  const lifetimes = new Lifetimes(1)
  const rates = { rx_bytes: 1000, tx_bytes: 2000, rx_packets: 10, tx_packets: 20, interfaces: {} }
  const cpu = { user: 0.25, system: 0, idle: 0.75, iowait: 0, steal: 0 }
  const sample = { ...machine, cores: 4, cpu, network: rates, listen: { overflows: 3, drops: 4 } }
  lifetimes.addMachine(sample, 1000)
  lifetimes.addMachine(sample, 500)
  t.same(lifetimes.read().machine, {
    cpu: { user: 1500, system: 0, idle: 4500, iowait: 0, steal: 0 },
    network: { rx_bytes: 1500, tx_bytes: 3000, rx_packets: 15, tx_packets: 30 },
    listen: { overflows: 6, drops: 8 },
  })
})

t.test('unknown values stay null', async t => {
  const lifetimes = new Lifetimes(1)
  lifetimes.addMachine({ ...machine, cpu: null, network: null, listen: null }, 1000)
  t.same(lifetimes.read().machine, { cpu: null, network: null, listen: null })
})

t.test('read() returns a copy', async t => {
  const lifetimes = new Lifetimes(1)
  lifetimes.addPrimary(primary, 1000)
  const before = lifetimes.read()
  const text = JSON.stringify(before)
  lifetimes.addPrimary(primary, 1000)
  t.equal(JSON.stringify(before), text)
  t.not(JSON.stringify(lifetimes.read()), text)
})
