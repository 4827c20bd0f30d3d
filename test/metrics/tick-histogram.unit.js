import t from 'tap'
import { bucketOf, TickHistogram, waitOf } from '../../src/metrics/tick-histogram.js'

/**
 * Pseudo-random waits of 3 µs to 32 s, evenly spread over the powers of ten.
 * @param {number} count @returns {number[]} ms
 */
function waits(count, seed = 1) {
  const list = []
  let state = seed
  for (let i = 0; i < count; i++) {
    // Linear congruential generator, constants of Numerical Recipes.
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    list.push(10 ** ((state / 2 ** 32) * 7 - 2.5))
  }
  return list
}

/** @param {number[]} list */
function histogramOf(list) {
  const histogram = new TickHistogram()
  for (const wait of list) histogram.record(wait)
  return histogram
}

/** Percentile by nearest rank. @param {number[]} list @param {number} percent */
function exact(list, percent) {
  const sorted = list.toSorted((a, b) => a - b)
  return sorted[Math.ceil((percent / 100) * sorted.length) - 1]
}

t.test('buckets are consecutive, and none is wider than 1/64 of its values', async t => {
  t.equal(bucketOf(0), 0)
  t.equal(bucketOf(-1), 0)
  let last = -1
  for (let us = 0; us < 100_000; us++) {
    const index = bucketOf(us / 1000)
    if (index !== last && index !== last + 1) t.fail(`${us} us: ${index} after ${last}`)
    last = index
  }
  for (const wait of waits(10_000)) {
    const error = Math.abs(waitOf(bucketOf(wait)) - wait)
    // Half of a bucket: 1/128 of the wait, at least half a microsecond.
    if (error > Math.max(wait * 0.008, 0.0005001)) t.fail(`${wait} ms: ${waitOf(bucketOf(wait))}`)
  }
  t.ok(bucketOf(86_400_000) < 2000, 'a wait of a day has a bucket')
})

t.test('percentiles have an error below 1 %', async t => {
  const list = waits(5000)
  const histogram = histogramOf(list)
  for (const percent of [0.1, 1, 7, 25, 50, 75, 90, 99, 99.9, 100]) {
    const wait = exact(list, percent)
    t.ok(Math.abs(histogram.percentile(percent) - wait) <= Math.max(wait * 0.01, 0.001), `${percent} %`)
  }
})

t.test('percentiles of zero, one and ten waits are correct', async t => {
  const none = new TickHistogram()
  t.equal(none.percentile(99), 0)
  t.same(none.toTicks(), { count: 0, min: 0, avg: 0, p50: 0, p90: 0, p99: 0, max: 0, buckets: [] })
  const one = new TickHistogram()
  one.record(203.7)
  t.match(one.toTicks(), { count: 1, min: 203.7, avg: 203.7, p50: 203.7, p90: 203.7, p99: 203.7, max: 203.7 })
  const ten = histogramOf([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  const { p50, p90, p99 } = ten.toTicks()
  for (const [percentile, wait] of [
    [p50, 5],
    [p90, 9],
    [p99, 10],
  ]) {
    t.ok(Math.abs(percentile - wait) < wait * 0.01, `${percentile} for ${wait}`)
  }
})

t.test('merged histograms equal one histogram of all waits', async t => {
  // Workers with different loads: averaged percentiles would be wrong.
  const lists = [waits(100, 1), waits(90, 2).map(wait => wait / 1000), [], waits(7, 3).map(wait => wait * 3)]
  const together = histogramOf(lists.flat())
  const merged = new TickHistogram()
  for (const list of lists) merged.merge(JSON.parse(JSON.stringify(histogramOf(list).toTicks())))
  const { avg, min, ...rest } = merged.toTicks()
  const { avg: expectedAvg, min: expectedMin, ...expected } = together.toTicks()
  t.same(rest, expected)
  t.ok(Math.abs(avg - expectedAvg) < 0.001)
  t.ok(Math.abs(min - expectedMin) <= 0.001)
  t.ok(Math.abs(merged.percentile(50) - exact(lists.flat(), 50)) < exact(lists.flat(), 50) * 0.01)
})

t.test('a histogram survives toTicks and merge', async t => {
  const ticks = histogramOf(waits(300)).toTicks()
  const again = new TickHistogram()
  again.merge(ticks)
  t.same(again.toTicks(), ticks)
  t.equal(ticks.buckets.length % 2, 0)
  const counts = ticks.buckets.filter((_, i) => i % 2 === 1)
  t.equal(
    counts.reduce((sum, count) => sum + count, 0),
    300,
  )
})

t.test('record takes a number of equal waits', async t => {
  const histogram = new TickHistogram()
  histogram.record(12.5, 1000)
  histogram.record(400)
  t.same(histogram.toTicks(), histogramOf([...Array(1000).fill(12.5), 400]).toTicks())
})
