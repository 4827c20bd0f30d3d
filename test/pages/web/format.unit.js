import t from 'tap'
import {
  bytes,
  clock,
  duration,
  figures,
  formatTick,
  formatValue,
  short,
} from '../../../src/pages/web/format.js'

/** @param {string} text with narrow spaces @returns {string} with plain ones */
const spaced = text => text.replaceAll('\u202f', ' ')

t.test('sizes go by 1024 and have three figures', async t => {
  for (const [value, text] of /** @type {[number, string][]} */ ([
    [0, '0 B'],
    [1, '1 B'],
    [1000, '1,000 B'],
    [1024, '1 KB'],
    [10342, '10.1 KB'],
    [16 * 1024 ** 3, '16 GB'],
    [1.5 * 1024 ** 2, '1.5 MB'],
    [1024 ** 2 - 1, '1 MB'],
    [250 * 1024 ** 2, '250 MB'],
  ])) {
    t.equal(spaced(bytes(value)), text)
  }
})

t.test('axes have short numbers, legends whole ones', async t => {
  t.equal(short(12_300), '12.3k')
  t.equal(short(1_000_000), '1M')
  t.equal(short(999_960), '1M')
  t.equal(formatTick(0, 'count_s'), '0')
  t.equal(formatTick(50_000, 'count_s'), '50k/s')
  t.equal(formatValue(1_000_000, 'count'), '1,000,000')
  t.equal(spaced(formatValue(0.25, 'ms')), '0.25 ms')
  t.equal(spaced(formatValue(12_500, 'ms')), '12.5 s')
  t.equal(spaced(formatValue(270, 'pct')), '270 %')
  t.equal(spaced(formatTick(1000, 'ms')), '1 s')
  t.equal(figures(-3), '-3')
})

t.test('what is not known is a dash', async t => {
  for (const value of [null, undefined, Number.NaN]) t.equal(formatValue(value, 'bytes'), '–')
})

t.test('times are as people say them', async t => {
  for (const [seconds, text] of /** @type {[number, string][]} */ ([
    [0, '0'],
    [45, '45s'],
    [60, '1m'],
    [750, '12m30'],
    [3600, '1h'],
    [7500, '2h05'],
    [7530, '2h05:30'],
    [86_400, '24h'],
  ])) {
    t.equal(duration(seconds), text)
  }
  t.match(clock(Date.now()), /^\d\d:\d\d:\d\d$/)
})
