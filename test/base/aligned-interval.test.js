// Intervals at multiples of their period on the wall clock.

import { once } from 'node:events'
import t from 'tap'
import { setAlignedInterval, timeToMultiple } from '../../src/base/timers.js'

t.test('the next multiple that is at least a fifth of the period away', async t => {
  const waits = [
    [0, 250],
    [1, 249],
    [199, 51],
    [200, 50],
    [201, 299],
    [249, 251],
    [250, 250],
  ]
  for (const [now, wait] of waits) t.equal(timeToMultiple(250, 1_700_000_000_000 + now), wait, `${now}`)
})

t.test('it calls again and again, until it is stopped', async t => {
  const bell = new EventTarget()
  // The interval itself does not keep the process alive.
  const alive = setInterval(() => {}, 1000)
  t.teardown(() => clearInterval(alive))
  let calls = 0
  const stop = setAlignedInterval(() => {
    if (++calls === 3) {
      stop()
      bell.dispatchEvent(new Event('third'))
    }
  }, 20)
  await once(bell, 'third')
  // If the first one still ran, it would be called before this one.
  const stopOther = setAlignedInterval(() => bell.dispatchEvent(new Event('other')), 20)
  await once(bell, 'other')
  stopOther()
  t.equal(calls, 3)
})

t.test('an error of a call does not end it', async t => {
  const bell = new EventTarget()
  const alive = setInterval(() => {}, 1000)
  t.teardown(() => clearInterval(alive))
  const errors = []
  process.once('uncaughtException', error => errors.push(error.message))
  let calls = 0
  const stop = setAlignedInterval(() => {
    if (++calls === 1) throw new Error('first')
    bell.dispatchEvent(new Event('second'))
  }, 20)
  await once(bell, 'second')
  stop()
  t.same(errors, ['first'])
})
