import t from 'tap'
import { LoopDelay, Rate } from '../../src/stats/vitals.js'

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
