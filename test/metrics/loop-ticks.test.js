import { once } from 'node:events'
import t from 'tap'
import { LoopTicks } from '../../src/metrics/loop-ticks.js'

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

t.test('a blocked event loop shows its delays', async t => {
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

t.test('a long turn right after a sample is in the next sample', async t => {
  const loop = watch(t)
  // Long enough for the grid to sleep, unless this process hardly runs.
  await ticks(60)
  loop.sample()
  block(600)
  await ticks(5)
  t.ok(loop.sample().max >= 580)
  const sampledAt = performance.now()
  await ticks(5)
  const { max } = loop.sample()
  t.ok(max <= performance.now() - sampledAt, `in one sample only: ${max} ms`)
})

t.test('a sample right after another one has no ticks', async t => {
  const loop = watch(t)
  loop.sample()
  t.same(loop.sample(), { count: 0, min: 0, avg: 0, p50: 0, p90: 0, p99: 0, max: 0, buckets: [] })
})
