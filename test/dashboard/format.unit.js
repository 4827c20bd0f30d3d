import { readFileSync } from 'node:fs'
import t from 'tap'
import {
  bytes,
  clock,
  count,
  duration,
  health,
  healthSpan,
  ms,
  percent,
  perSecond,
  quantity,
  size,
  whole,
} from '../../dashboard/format.js'
import { LIMITS } from '../../src/metrics/limits.js'

/**
 * @param {import('tap').Test} t
 * @param {(value: any) => string} format
 * @param {number} widest
 * @param {[any, string][]} cases
 */
function formats(t, format, widest, cases) {
  for (const [value, text] of cases) t.equal(format(value), text, `${value}`)
  // A table whose figures change their width moves about.
  for (let value = 0.0123; value < 1e15; value *= 1.37) {
    t.ok(format(value).length <= widest, `${value}: ${format(value)}`)
  }
  t.equal(format(null), '-')
  t.equal(format(undefined), '-')
  t.equal(format(Number.NaN), '-')
}

t.test('counts are whole as long as they fit, and have three digits then', async t => {
  formats(t, count, 5, [
    [0, '0'],
    [0.4, '0'],
    [999, '999'],
    [9999, '9,999'],
    [9999.6, '10.0k'],
    [12345, '12.3k'],
    [123456, '123k'],
    [999_499, '999k'],
    [999_500, '1.00M'],
    [1_234_567, '1.23M'],
    [98_765_432, '98.8M'],
  ])
  t.equal(count(-12345), '-12.3k')
})

t.test('numbers of connections are told to the last digit below a million', async t => {
  formats(t, quantity, 7, [
    [0, '0'],
    [50_123, '50,123'],
    [999_999, '999,999'],
    [1_000_000, '1.00M'],
  ])
  t.equal(whole(1_234_567), '1,234,567')
  t.equal(whole(123), '123')
})

t.test('bytes go by 1024, short in tables and with a unit elsewhere', async t => {
  formats(t, bytes, 5, [
    [0, '0B'],
    [999, '999B'],
    [1000, '0.98K'],
    [1024, '1.00K'],
    [47_815_066, '45.6M'],
    [1024 ** 3, '1.00G'],
  ])
  formats(t, size, 7, [
    [0, '0 B'],
    [512, '512 B'],
    [2048, '2.00 KB'],
    [47_815_066, '45.6 MB'],
    [32 * 1024 ** 3, '32.0 GB'],
  ])
})

t.test('milliseconds, shares, rates and times', async t => {
  t.equal(ms(0), '0.0')
  t.equal(ms(12.34), '12.3')
  t.equal(ms(99.96), '100')
  t.equal(ms(1234.5), '1235')
  t.equal(ms(12_345), '12.3s')
  t.equal(ms(600_000), '600s')
  t.equal(percent(0.456), '46%')
  t.equal(percent(2), '200%')
  t.equal(percent(null), '-')
  t.equal(perSecond(300, 1500), 200)
  t.equal(perSecond(300, 0), 0, 'no time has passed')
  t.equal(duration(4200), '4.2 s')
  t.equal(duration(59_960), '1:00')
  t.equal(duration(3_599_000), '59:59')
  t.equal(duration(4 * 3_600_000 + 83_000), '4:01:23')
  t.equal(duration(3 * 86_400_000 + 4 * 3_600_000 + 12 * 60_000), '3 d 04:12')
  t.match(clock(Date.now()), /^\d\d:\d\d:\d\d$/)
})

t.test('health goes by limits, and is told without colours, too', async t => {
  t.equal(health(LIMITS.tickAvg[0] - 0.1, 'tickAvg'), 'good')
  t.equal(health(LIMITS.tickAvg[0], 'tickAvg'), 'warn')
  t.equal(health(LIMITS.tickAvg[1], 'tickAvg'), 'bad')
  t.equal(health(null, 'tickAvg'), 'good', 'what is not known is no fault')
  t.same(healthSpan('1234', 'bad', true), ['1234', 'bad'])
  t.same(healthSpan('1234', 'bad', false), ['1234!', 'bad'])
  t.same(healthSpan('1234', 'warn', false), ['1234~', 'warn'])
  t.same(healthSpan('1234', 'good', false), ['1234 ', 'value'], 'as wide as the others')
})

t.test('the documentation has the same limits', async t => {
  const docs = readFileSync(new URL('../../docs/dashboard.md', import.meta.url), 'utf8')
  /** @type {[keyof typeof LIMITS, string, (value: number) => string][]} */
  const rows = [
    ['tickAvg', 'delay avg', value => `${value} ms`],
    ['tickP90', 'delay p90', value => `${value} ms`],
    ['tickMax', 'delay max', value => `${value} ms`],
    ['loop', 'loop', value => `${value * 100} %`],
    ['cpu', 'CPU of a worker', value => `${value * 100} %`],
    ['gc', 'GC in a second', value => `${value} ms`],
    ['machine', 'CPU of the machine', value => `${value * 100} %`],
    ['steal', 'steal', value => `${value * 100} %`],
    ['full', 'memory of the machine, open files, heap of its limit', value => `${value * 100} %`],
    [
      'outbox',
      'largest outbox',
      value => (value < 1024 ** 2 ? `${value / 1024} KB` : `${value / 1024 ** 2} MB`),
    ],
    ['overflows', 'listen overflows', value => `${value} a second`],
  ]
  t.same(rows.map(([limit]) => limit).sort(), Object.keys(LIMITS).sort())
  for (const [limit, name, text] of rows) {
    t.match(docs, `| ${name} | ${text(LIMITS[limit][0])} | ${text(LIMITS[limit][1])} |`)
  }
})
