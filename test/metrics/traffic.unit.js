// An application may use any number of error codes; each code that is counted becomes a label of a metric.

import t from 'tap'
import { Traffic } from '../../src/metrics/traffic.js'

t.test('error replies are counted by code up to 4999, and all above as `other`', async t => {
  const { errors } = new Traffic([])
  for (const code of [100, 100, 4999, 5000, 4_294_967_295]) errors.add(code)
  t.same(errors.drain(), { 100: 2, 4999: 1, other: 2 })
})
