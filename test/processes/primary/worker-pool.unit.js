import t from 'tap'
import { resting } from '../../../src/processes/primary/worker-pool.js'

const sample = (open, other) => ({
  accepting: true,
  overload: null,
  connections: { open, connected: open, by: {} },
  ...other,
})

t.test('a worker stops accepting above 125 % of the mean plus 64 connections', async t => {
  t.same(resting([sample(1000), sample(1000), sample(1000)]), [false, false, false])
  t.same(resting([sample(60), sample(0)]), [false, false], 'a few connections do not count')
  t.same(resting([sample(1900), sample(1000), sample(1000)]), [true, false, false])
  t.same(resting([sample(9000), sample(9000), sample(0)]), [true, true, false])
})

t.test('workers that refuse connections are not part of the mean', async t => {
  t.same(resting([sample(9000), sample(0, { overload: 'memory' })]), [false, false])
  t.same(resting([sample(9000), sample(0, { accepting: false })]), [false, false])
  t.same(resting([sample(9000), sample(9000), sample(0), sample(0, { accepting: false })]), [
    true,
    true,
    false,
    false,
  ])
})

t.test('a worker without a sample continues and is not part of the mean', async t => {
  t.same(resting([sample(9000), null]), [false, false])
  t.same(resting([null]), [false])
  t.same(resting([]), [])
})
