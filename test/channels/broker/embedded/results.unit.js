import t from 'tap'
import { Results } from '../../../../src/channels/broker/embedded/results.js'

/** Seconds. */
const MINUTE = 60

t.test('the sweep removes only expired results', async t => {
  const results = new Results()
  for (let i = 0; i < 10; i++) results.set('ch', `k${i}`, i, '', i * MINUTE, false)
  const full = results.bytes
  results.sweep(8 * MINUTE + 1)
  t.equal(results.get('ch', 'k3', 8 * MINUTE), undefined)
  t.match(results.get('ch', 'k4', 8 * MINUTE), { offset: 4 })
  t.equal(results.bytes, full * 0.6)
  results.sweep(60 * MINUTE)
  t.equal(results.bytes, 0)
})

t.test('the oldest result is dropped first', async t => {
  const results = new Results()
  results.set('ch', 'a', 1, '', 0, false)
  results.set('ch', 'b', 2, '', 1, false)
  results.set('ch', 'a', 3, '', 2, false)
  results.forget(results.oldest)
  t.equal(results.get('ch', 'b', 3), undefined)
  t.match(results.get('ch', 'a', 3), { offset: 3 })
  results.forget(results.oldest)
  t.equal(results.oldest, null)
  t.equal(results.bytes, 0)
})
