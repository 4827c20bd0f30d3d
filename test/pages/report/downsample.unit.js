import t from 'tap'
import { downsample } from '../../../src/pages/report/run.js'

const DAY = 86_400

t.test('few rows are unchanged', async t => {
  t.same(downsample({ time: [0, 1000], a: [1, Number.NaN], b: [1, 2] }, ['time', 'a'], 10), {
    time: [0, 1000],
    a: [1, null],
  })
})

t.test('a peak of one second is kept in a day', async t => {
  const time = Float64Array.from({ length: DAY }, (_, row) => row * 1000)
  const a = new Float64Array(DAY).fill(10)
  a[50_001] = 7000
  a[60_001] = 1
  const result = downsample({ time, a }, ['time', 'a'], 1000)
  t.equal(result.time.length, 1000)
  t.equal(Math.max(...result['a:max'].map(Number)), 7000)
  t.equal(Math.min(...result['a:min'].map(Number)), 1)
  const bucket = result['a:max'].indexOf(7000)
  t.ok(Math.abs(Number(result.time[bucket]) - 50_001_000) < 86_400, 'where it was')
  t.ok(Number(result.a[bucket]) < 100, 'the average stays one')
  const mean = result.a.reduce((sum, value) => Number(sum) + Number(value), 0)
  t.ok(Math.abs(Number(mean) / 1000 - 10 - 6981 / DAY) < 0.01, 'averages add up')
})

t.test('unknown values are ignored in a bucket', async t => {
  const time = Array.from({ length: 100 }, (_, row) => row * 1000)
  const a = time.map((_, row) => (row % 2 ? Number.NaN : 4))
  const b = time.map(() => Number.NaN)
  const result = downsample({ time, a, b }, ['time', 'a', 'b'], 10)
  t.ok(result.a.every(value => value === 4))
  t.ok(result.b.every(value => value === null))
})

t.test('no line is drawn across a gap in time', async t => {
  const time = [0, 1000, 2000, 60_000, 61_000]
  const result = downsample({ time, a: [1, 2, 3, 4, 5] }, ['time', 'a'], 10)
  t.same(result.a, [1, 2, 3, null, 4, 5])
  t.ok(result.time.every((value, row) => row === 0 || Number(value) > Number(result.time[row - 1])))
  const long = Array.from({ length: 200 }, (_, row) => (row < 100 ? row * 1000 : row * 1000 + 900_000))
  const { a } = downsample({ time: long, a: long.map(() => 1) }, ['time', 'a'], 100)
  t.equal(a.filter(value => value === null).length, 1)
})
