import t from 'tap'
import { resting } from '../../../src/processes/primary/worker-pool.js'

/** @param {number} open @param {object} [other] */
const sample = (open, other) => ({
  accepting: true,
  overload: null,
  connections: { open, connected: open, by: {} },
  ...other,
})

t.test('a worker rests above a quarter more connections than the mean, and 64', async t => {
  t.same(resting([sample(1000), sample(1000), sample(1000)]), [false, false, false])
  t.same(resting([sample(60), sample(0)]), [false, false], 'a few connections are no burden')
  t.same(resting([sample(1900), sample(1000), sample(1000)]), [true, false, false])
  t.same(resting([sample(9000), sample(9000), sample(0)]), [true, true, false])
})

t.test('nothing is left to a worker that refuses connections', async t => {
  t.same(resting([sample(9000), sample(0, { overload: 'memory' })]), [false, false])
  t.same(resting([sample(9000), sample(0, { accepting: false })]), [false, false])
  t.same(resting([sample(9000), sample(9000), sample(0), sample(0, { accepting: false })]), [
    true,
    true,
    false,
    false,
  ])
})

t.test('a worker without a sample neither rests nor counts', async t => {
  t.same(resting([sample(9000), null]), [false, false])
  t.same(resting([null]), [false])
  t.same(resting([]), [])
})
