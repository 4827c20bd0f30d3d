import t from 'tap'
import * as format from '../../src/base/format.js'

/** Formats with their cases: value -> text. @type {Record<string, Record<string, string>>} */
const formats = {
  // A number moves to the next unit at 999.5 and keeps three significant digits.
  short: {
    ...{ 0: '0', 0.4: '0', 9999: '9,999', 9999.6: '10.0k', 10000: '10k', 12345: '12.3k', 123456: '123k' },
    ...{ 999499: '999k', 999500: '1.00M', 1000000: '1M', 98765432: '98.8M', '-12345': '-12.3k' },
  },
  bytes: {
    ...{ 0: '0 B', 999: '999 B', 1000: '0.98 KB', 1024: '1 KB', 10342: '10.1 KB', 1048575: '1.00 MB' },
    ...{ 1572864: '1.5 MB', 47815066: '45.6 MB', 17179869184: '16 GB' },
  },
  shortBytes: { 0: '0B', 1000: '0.98K', 1024: '1K', 47815066: '45.6M' },
  // Counts have all digits where there is room.
  whole: { 123: '123', 1234567: '1,234,567' },
  count: { 0.25: '0.25', 2.004: '2.00', 12.34: '12.3', '-3': '-3', 12345: '12,345' },
  quantity: { 0: '0', 50123: '50,123', 999999: '999,999', 1234567: '1.23M' },
  ms: {
    ...{ 0: '0', 0.251: '0.25', 12.34: '12.3', 99.96: '100', 1234.5: '1,235', 12345: '12.3s' },
    ...{ 600000: '600s' },
  },
  milliseconds: { 0.25: '0.25 ms', 9999: '9,999 ms', 12500: '12.5 s' },
  percent: { 4.56: '4.56 %', 270: '270 %' },
  share: { 0.456: '46%', 2: '200%' },
  duration: {
    ...{ 4200: '4.2 s', 59960: '1:00', 3599000: '59:59', 14483000: '4:01:23', 274320000: '3 d 04:12' },
  },
}
/** Most characters of positive values: a table moves if its figures change their width. */
const widest = { short: 5, bytes: 7, shortBytes: 5, quantity: 7, ms: 5 }

for (const [name, cases] of Object.entries(formats))
  t.test(`${name}()`, async t => {
    const write = Reflect.get(format, name)
    for (const [value, text] of Object.entries(cases)) t.equal(write(Number(value)), text, value)
    for (const value of [null, undefined, Number.NaN]) t.equal(write(value), format.UNKNOWN, 'unknown')
    for (let value = 0.0123; value < 1e15; value *= 1.37)
      t.ok(write(value).length <= (widest[name] ?? Infinity), `${value}: ${write(value)}`)
  })

t.test('plural(), clock() and elapsed()', async t => {
  t.same([format.plural(1, 'node'), format.plural(1200, 'node')], ['1 node', '1,200 nodes'])
  t.match(format.clock(Date.now()), /^\d\d:\d\d:\d\d$/)
  const cases = {
    ...{ 0: '0', 45: '45s', 60: '1m', 750: '12m30', 3600: '1h', 7500: '2h05', 7530: '2h05:30' },
    ...{ 3605: '1h00:05', 86400: '24h' },
  }
  for (const [seconds, text] of Object.entries(cases)) t.equal(format.elapsed(Number(seconds)), text)
})

t.test('axes have short numbers, legends and tables all digits', async t => {
  const { formatTick, formatValue } = format
  t.same(
    [formatTick(0, 'count_s'), formatTick(50_000, 'count_s'), formatTick(1000, 'ms')],
    ['0', '50k/s', '1 s'],
  )
  t.equal(formatValue(1_000_000, 'count'), '1,000,000')
  t.same([formatValue(1024, 'bytes_s'), formatValue(null, 'bytes_s')], ['1 KB/s', '-'])
})
