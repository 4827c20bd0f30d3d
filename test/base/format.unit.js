import t from 'tap'
import {
  bytes,
  clock,
  count,
  duration,
  elapsed,
  formatTick,
  formatValue,
  milliseconds,
  ms,
  percent,
  plural,
  quantity,
  share,
  short,
  shortBytes,
  whole,
} from '../../src/base/format.js'

/**
 * @param {import('tap').Test} t
 * @param {(value: any) => string} format
 * @param {[any, string][]} cases
 * @param {number} [widest] characters
 */
function formats(t, format, cases, widest = Number.POSITIVE_INFINITY) {
  for (const [value, text] of cases) t.equal(format(value), text, `${value}`)
  for (const value of [null, undefined, Number.NaN]) t.equal(format(value), '-', 'unknown')
  // A table moves if its figures change their width.
  for (let value = 0.0123; value < 1e15; value *= 1.37) {
    t.ok(format(value).length <= widest, `${value}: ${format(value)}`)
  }
}

t.test('a number moves to the next unit at 999.5 and keeps three significant digits', async t => {
  const short5 = /** @type {[any, string][]} */ ([
    [0, '0'],
    [0.4, '0'],
    [9999, '9,999'],
    [9999.6, '10.0k'],
    [10_000, '10k'],
    [12_345, '12.3k'],
    [123_456, '123k'],
    [999_499, '999k'],
    [999_500, '1.00M'],
    [1_000_000, '1M'],
    [98_765_432, '98.8M'],
    [-12_345, '-12.3k'],
  ])
  formats(t, short, short5, 5)
  formats(
    t,
    bytes,
    [
      [0, '0 B'],
      [999, '999 B'],
      [1000, '0.98 KB'],
      [1024, '1 KB'],
      [10_342, '10.1 KB'],
      [1024 ** 2 - 1, '1.00 MB'],
      [1.5 * 1024 ** 2, '1.5 MB'],
      [47_815_066, '45.6 MB'],
      [16 * 1024 ** 3, '16 GB'],
    ],
    7,
  )
  formats(
    t,
    shortBytes,
    [
      [0, '0B'],
      [1000, '0.98K'],
      [1024, '1K'],
      [47_815_066, '45.6M'],
    ],
    5,
  )
})

t.test('counts have all digits where there is room', async t => {
  formats(t, whole, [
    [123, '123'],
    [1_234_567, '1,234,567'],
  ])
  formats(t, count, [
    [0.25, '0.25'],
    [2.004, '2.00'],
    [12.34, '12.3'],
    [-3, '-3'],
    [12_345, '12,345'],
  ])
  formats(
    t,
    quantity,
    [
      [0, '0'],
      [50_123, '50,123'],
      [999_999, '999,999'],
      [1_234_567, '1.23M'],
    ],
    7,
  )
  t.equal(plural(1, 'node'), '1 node')
  t.equal(plural(1200, 'node'), '1,200 nodes')
})

t.test('times and shares', async t => {
  formats(
    t,
    ms,
    [
      [0, '0'],
      [0.251, '0.25'],
      [12.34, '12.3'],
      [99.96, '100'],
      [1234.5, '1,235'],
      [12_345, '12.3s'],
      [600_000, '600s'],
    ],
    5,
  )
  formats(t, milliseconds, [
    [0.25, '0.25 ms'],
    [9999, '9,999 ms'],
    [12_500, '12.5 s'],
  ])
  formats(t, percent, [
    [4.56, '4.56 %'],
    [270, '270 %'],
  ])
  formats(t, share, [
    [0.456, '46%'],
    [2, '200%'],
  ])
  formats(t, duration, [
    [4200, '4.2 s'],
    [59_960, '1:00'],
    [3_599_000, '59:59'],
    [4 * 3_600_000 + 83_000, '4:01:23'],
    [3 * 86_400_000 + 4 * 3_600_000 + 12 * 60_000, '3 d 04:12'],
  ])
  t.match(clock(Date.now()), /^\d\d:\d\d:\d\d$/)
  for (const [seconds, text] of /** @type {[number, string][]} */ ([
    [0, '0'],
    [45, '45s'],
    [60, '1m'],
    [750, '12m30'],
    [3600, '1h'],
    [7500, '2h05'],
    [7530, '2h05:30'],
    [3605, '1h00:05'],
    [86_400, '24h'],
  ])) {
    t.equal(elapsed(seconds), text)
  }
})

t.test('axes have short numbers, legends and tables whole ones', async t => {
  t.equal(formatTick(0, 'count_s'), '0')
  t.equal(formatTick(50_000, 'count_s'), '50k/s')
  t.equal(formatTick(1000, 'ms'), '1 s')
  t.equal(formatValue(1_000_000, 'count'), '1,000,000')
  t.equal(formatValue(1024, 'bytes_s'), '1 KB/s')
  t.equal(formatValue(null, 'bytes_s'), '-')
})
