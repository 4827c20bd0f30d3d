// The circuit breaker of a backend: one call at a time probes whether it is up again.

import t from 'tap'
import { Breaker } from '../../../src/backends/hooks/breaker.js'

function setUp() {
  let now = 0
  const breaker = new Breaker({ failures: 2, interval: 100 }, () => now)
  return {
    breaker,
    /** @param {number} ms */
    pass: ms => {
      now += ms
    },
  }
}

t.test('opens after consecutive failures; a successful call after the interval closes it', async t => {
  const { breaker, pass } = setUp()
  t.equal(breaker.failure(breaker.admit()), false)
  breaker.success()
  t.equal(breaker.failure(breaker.admit()), false, 'a success in between resets the count')
  t.equal(breaker.failure(breaker.admit()), true, 'opened')
  t.equal(breaker.admit(), 0)
  pass(100)
  const trial = breaker.admit()
  t.not(trial, 0)
  t.equal(breaker.admit(), 0, 'one call only')
  t.equal(breaker.failure(trial), false, 'it was open')
  t.equal(breaker.admit(), 0)
  pass(100)
  t.not(breaker.admit(), 0)
  t.equal(breaker.success(), true, 'closed')
  t.not(breaker.admit(), 0)
  t.not(breaker.admit(), 0)
})

t.test('earlier calls that end during a trial do not allow another one', async t => {
  for (const end of /** @type {const} */ (['failure', 'unknown'])) {
    const { breaker, pass } = setUp()
    const [before, first, second] = [breaker.admit(), breaker.admit(), breaker.admit()]
    breaker.failure(first)
    breaker.failure(second)
    pass(100)
    const trial = breaker.admit()
    t.not(trial, 0)
    breaker[end](before)
    pass(100)
    t.equal(breaker.admit(), 0, `${end}: the trial is still under way`)
    breaker.unknown(trial)
    t.not(breaker.admit(), 0, `${end}: now the next one`)
  }
})

t.test('a late result of an earlier trial does not count for the next one', async t => {
  const { breaker, pass } = setUp()
  const late = breaker.admit()
  for (let i = 0; i < 2; i++) breaker.failure(breaker.admit())
  pass(100)
  const former = breaker.admit()
  breaker.success()
  for (let i = 0; i < 2; i++) breaker.failure(breaker.admit())
  pass(100)
  const trial = breaker.admit()
  breaker.unknown(former)
  breaker.unknown(late)
  t.equal(breaker.admit(), 0)
  breaker.unknown(trial)
  t.not(breaker.admit(), 0)
})
