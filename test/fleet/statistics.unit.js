// Statistics against a plain computation over the raw values.

import t from 'tap'
import { addCounters, COUNTERS, zeroCounters } from '../../fleet/statistics/counters.js'
import { Distribution } from '../../fleet/statistics/distribution.js'

/** Half of the width of a bucket, as a share of what is in it. */
const ERROR = 1 / 128

/** Pseudorandom numbers. */
function* random(seed) {
  for (let state = seed; ; ) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    yield state / 2 ** 32
  }
}

const draw = (count, seed, make) => {
  const numbers = random(seed)
  return Array.from({ length: count }, () => make(numbers.next().value))
}

const KINDS = {
  uniform: draw(10_000, 1, u => u * 100),
  exponential: draw(10_000, 2, u => -Math.log(1 - u) * 3),
  'a long tail': draw(5000, 3, u => (1 - u) ** -1.5),
  'a great mean and a small deviation': draw(5000, 4, u => 1e6 + u / 100),
  'only one': [17.25],
  two: [1, 3],
  'all the same': Array.from({ length: 100 }, () => 0.25),
  'below 0, as clocks that differ make them': draw(1000, 5, u => u * 10 - 5),
}

/** @returns figures of the raw values */
function plainly(values) {
  const count = values.length
  const mean = values.reduce((sum, value) => sum + value, 0) / count
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0)
  const deviation = count < 2 ? 0 : Math.sqrt(squares / (count - 1))
  const sorted = values.toSorted((a, b) => a - b)
  const half = factor => (factor * deviation) / Math.sqrt(count)
  return { count, mean, deviation, sorted, half, min: sorted[0], max: sorted[count - 1] }
}

/** @param {any} t */
function same(t, distribution, values) {
  const plain = plainly(values)
  const near = (a, b, what) =>
    t.ok(Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(b)), `${what}: ${a} is ${b}`)
  for (const name of ['count', 'min', 'max']) t.equal(distribution[name], plain[name], name)
  near(distribution.mean, plain.mean, 'mean')
  near(distribution.deviation, plain.deviation, 'deviation')
  for (const [level, factor] of [
    [0.9, 1.645],
    [0.95, 1.96],
  ]) {
    const { low, high } = distribution.confidence(level)
    near(low, plain.mean - plain.half(factor), `low of ${level}`)
    near(high, plain.mean + plain.half(factor), `high of ${level}`)
  }
  for (const percent of [1, 7, 50, 90, 99, 99.9, 100]) {
    const exact = Math.max(0, plain.sorted[Math.ceil((percent / 100) * plain.count - 1e-9) - 1])
    const found = Math.max(0, distribution.percentile(percent))
    t.ok(Math.abs(found - exact) <= exact * ERROR + 0.0005, `p${percent}: ${found} is ${exact}`)
  }
}

for (const [name, values] of Object.entries(KINDS)) {
  t.test(name, async t => {
    const distribution = new Distribution()
    for (const value of values) distribution.record(value)
    same(t, distribution, values)
    same(t, Distribution.from(JSON.parse(JSON.stringify(distribution.toWire()))), values)
    distribution.reset()
    t.same(distribution.toWire(), new Distribution().toWire())
  })
}

t.test('record() can add a value several times', async t => {
  const distribution = new Distribution()
  distribution.record(2, 3)
  distribution.record(5)
  distribution.record(11, 2)
  same(t, distribution, [2, 2, 2, 5, 11, 11])
})

t.test('distributions can be merged in any order', async t => {
  const parts = ['uniform', 'exponential', 'a long tail'].map(name => {
    const recorder = new Distribution()
    for (const value of KINDS[name]) recorder.record(value)
    return recorder.toWire()
  })
  const [a, b, c] = parts
  const values = ['uniform', 'exponential', 'a long tail'].flatMap(name => KINDS[name])
  const left = Distribution.from(a)
  left.merge(b)
  left.merge(c)
  const right = Distribution.from(b)
  right.merge(c)
  const all = Distribution.from(a)
  all.merge(right.toWire())
  all.merge(new Distribution().toWire())
  const backwards = new Distribution()
  for (const part of [c, b, a]) backwards.merge(part)
  for (const distribution of [left, all, backwards]) same(t, distribution, values)
})

t.test('an empty distribution has zeros', async t => {
  const none = new Distribution()
  t.same(none.toWire(), { count: 0, min: 0, max: 0, mean: 0, m2: 0, buckets: [] })
  t.equal(none.percentile(99), 0)
  t.equal(none.deviation, 0)
  t.same(none.confidence(0.95), { low: 0, high: 0 })
})

t.test('counters can be added', async t => {
  const a = zeroCounters()
  t.equal(COUNTERS.length, 20)
  t.ok(COUNTERS.every(name => a[name] === 0))
  a.received = 5
  a.lost = 1
  const b = addCounters(addCounters(zeroCounters(), a), a)
  t.match(b, { received: 10, lost: 2, opened: 0 })
})
