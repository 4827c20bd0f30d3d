import t from 'tap'
import { backoffDelay } from '../../../../src/backends/queues/timing.js'

t.test('delays double, with some spread, up to 5 s', async t => {
  t.same(
    [1, 2, 3, 4, 8, 9, 10, 1e6].map(tries => backoffDelay(tries, () => 0)),
    [20, 40, 80, 160, 2560, 5000, 5000, 5000],
  )
  t.same(
    [1, 2, 3].map(tries => backoffDelay(tries, () => 0.999)),
    [38, 76, 152],
  )
})
