import t from 'tap'
import { formatDuration, parseDuration } from '../../src/config/values.js'

t.test('durations are parsed like in Go', async t => {
  for (const [text, ms] of /** @type {[string, number][]} */ ([
    ['0', 0],
    ['0s', 0],
    ['25s', 25_000],
    ['300ms', 300],
    ['0.3s', 300],
    ['.5s', 500],
    ['1h', 3_600_000],
    ['1h30m', 5_400_000],
    ['1m30.5s', 90_500],
    ['720h', 2_592_000_000],
    ['2000us', 2],
    ['3000000ns', 3],
  ])) {
    t.equal(parseDuration(text), ms, text)
  }
})

t.test('an invalid duration is an error with the reason', async t => {
  for (const [text, reason] of /** @type {[string, RegExp][]} */ ([
    ['25', /"25" has no unit; write "25s" or "25ms"/],
    ['', /is not a duration/],
    ['s', /is not a duration/],
    ['5 s', /is not a duration/],
    ['1d', /is not a duration/],
    ['1h30', /is not a duration/],
    ['-5s', /is negative/],
    ['100us', /is not a whole number of milliseconds/],
  ])) {
    t.throws(() => parseDuration(text), reason, text)
  }
})

t.test('a formatted duration can be parsed again', async t => {
  for (const ms of [0, 1, 999, 1000, 1500, 60_000, 90_000, 3_600_000, 5_400_000]) {
    t.equal(parseDuration(formatDuration(ms)), ms, formatDuration(ms))
  }
})
