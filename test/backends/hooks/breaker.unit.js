// The breaker of a backend: one call at a time finds out whether it is back.

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

t.test('it opens after failures in a row, and one call after the interval closes it', async t => {
  const { breaker, pass } = setUp()
  t.equal(breaker.failure(breaker.admit()), false)
  breaker.success()
  t.equal(breaker.failure(breaker.admit()), false, 'the success between them counts')
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

t.test('calls of before that end during the trial make no room for another one', async t => {
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

t.test('a trial that outlives its breaker is not taken for the next one', async t => {
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
