import t from 'tap'
import { CounterWindow } from '../../src/metrics/traffic.js'

t.test('a window reports the growth of counters after the first window', async t => {
  let connects = 5
  const window = new CounterWindow(() => ({ connects }))
  connects = 7
  t.equal(window.last, undefined)
  window.roll()
  t.strictSame(window.last, { connects: 2 })
  window.roll()
  t.strictSame(window.last, { connects: 0 })
})
