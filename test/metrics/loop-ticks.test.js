import { once } from 'node:events'
import t from 'tap'
import { LoopTicks } from '../../src/metrics/loop-ticks.js'
import { TickHistogram } from '../../src/metrics/tick-histogram.js'

/** @param {number} ms */
function block(ms) {
  const until = performance.now() + ms
  while (performance.now() < until);
}

/** Turns of the event loop, as many as the grid has in this time if nothing holds them up. @param {number} count */
async function ticks(count) {
  const bell = new EventTarget()
  const timer = setInterval(() => {
    if (--count === 0) bell.dispatchEvent(new Event('over'))
  }, 10)
  await once(bell, 'over')
  clearInterval(timer)
}

/** @param {any} t */
function watch(t) {
  const watch = new LoopTicks()
  t.teardown(() => watch.stop())
  return watch
}

t.test('an event loop that was held up shows for how long, and how often', async t => {
  const loop = watch(t)
  await ticks(5)
  loop.sample()
  await ticks(30)
  block(400)
  await ticks(10)
  const { count, min, avg, p50, p90, p99, max } = loop.sample()
  t.ok(count >= 20, `${count} looks`)
  t.ok(max >= 380, `${max} ms`)
  t.ok(min <= p50 && p50 <= p90 && p90 <= p99 && p99 <= max)
  t.ok(p50 < max / 2, 'mostly it was free')
  t.ok(avg < max && avg >= max / count / 2, `${avg} ms`)
})

t.test('a long turn right behind a sample is not lost', async t => {
  const loop = watch(t)
  // So long that the grid sleeps, unless this process hardly runs.
  await ticks(60)
  loop.sample()
  block(600)
  await ticks(5)
  t.ok(loop.sample().max >= 580)
  const told = performance.now()
  await ticks(5)
  const { max } = loop.sample()
  t.ok(max <= performance.now() - told, `and is told once: ${max} ms`)
})

t.test('the buckets are the waits themselves: what is told follows from them', async t => {
  const loop = watch(t)
  await ticks(3)
  loop.sample()
  for (const ms of [60, 5, 30, 90, 40, 20]) {
    await ticks(5)
    block(ms)
  }
  await ticks(5)
  const told = loop.sample()
  const again = new TickHistogram()
  again.merge(told)
  t.same(again.toTicks(), told)
  const counts = told.buckets.filter((_, i) => i % 2 === 1)
  t.equal(
    counts.reduce((sum, count) => sum + count, 0),
    told.count,
  )
  for (const ms of [30, 50, 80]) {
    let longer = 0
    for (let percent = 1; percent <= 100; percent++) if (again.percentile(percent) >= ms) longer++
    t.ok(longer > 0, `some waits of ${ms} ms`)
  }
})

t.test('nothing has happened between two samples: no ticks', async t => {
  const loop = watch(t)
  loop.sample()
  t.same(loop.sample(), { count: 0, min: 0, avg: 0, p50: 0, p90: 0, p99: 0, max: 0, buckets: [] })
})
