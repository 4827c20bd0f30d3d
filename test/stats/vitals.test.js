import t from 'tap'
import { LoopDelay, MachineVitals, Rate } from '../../src/stats/vitals.js'

/**
 * @param {number} busy ms
 * @param {number} idle ms
 */
const core = (busy, idle) => ({
  model: '',
  speed: 0,
  times: { user: busy / 2, nice: 0, sys: busy / 2, irq: 0, idle },
})

t.test('the share of busy cores is that since the last sample', async t => {
  const reads = [[core(100, 900), core(0, 0)], [core(400, 1600), core(500, 500)], []]
  const vitals = new MachineVitals(() => reads.shift() ?? [])
  t.equal(vitals.sample().cpu, 800 / 2000)
  t.equal(vitals.sample().cpu, null, 'unknown where the platform does not tell')
})

t.test('counters that run backwards make no absurd share', async t => {
  const reads = [[core(100, 900)], [core(200, 850)], [core(150, 1900)]]
  const vitals = new MachineVitals(() => reads.shift() ?? [])
  t.equal(vitals.sample().cpu, 1)
  t.equal(vitals.sample().cpu, 0)
})

t.test('memory, cores and load of this machine', async t => {
  const { memory, cores, load } = new MachineVitals().sample()
  t.ok(memory.used > 0 && memory.used < memory.total)
  t.ok(cores >= 1)
  if (process.platform !== 'win32') t.equal(load?.length, 3)
})

t.test('the wait for the event loop is what work has held up, also right after a sample', async t => {
  const delay = new LoopDelay()
  t.teardown(() => delay.stop())
  const ticks = (/** @type {number} */ count) =>
    new Promise(resolve => {
      const timer = setInterval(() => {
        if (--count > 0) return
        clearInterval(timer)
        resolve(undefined)
      }, 10)
    })
  await ticks(5)
  delay.sample()
  const until = performance.now() + 100
  while (performance.now() < until);
  await ticks(5)
  const { mean, p90, max } = delay.sample()
  t.ok(max >= 80, `${max} ms`)
  t.ok(mean < max)
  t.ok(p90 <= max)
})

t.test('a rate is the growth of a counter over time', async t => {
  let [count, now] = [1000, 0]
  const rate = new Rate(
    () => count,
    () => now,
  )
  t.equal(rate.sample(), 0, 'no time has passed')
  count = 1500
  now = 2000
  t.equal(rate.sample(), 250)
  now = 3000
  t.equal(rate.sample(), 0)
})
