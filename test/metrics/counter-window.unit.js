import t from 'tap'
import { CounterWindow } from '../../src/metrics/traffic.js'

t.test('a window tells what the counters gained in it, and nothing before the first has passed', async t => {
  let connects = 5
  const window = new CounterWindow(() => ({ connects }))
  connects = 7
  t.equal(window.last, undefined)
  window.roll()
  t.strictSame(window.last, { connects: 2 })
  window.roll()
  t.strictSame(window.last, { connects: 0 })
})
