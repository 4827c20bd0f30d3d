// Codes that applications invent must not become labels of metrics without end.

import t from 'tap'
import { Traffic } from '../../src/stats/traffic.js'

t.test('error replies are counted by code up to 4999, the others together', async t => {
  const { errors } = new Traffic([])
  for (const code of [100, 100, 4999, 5000, 4_294_967_295]) errors.add(code)
  t.same(errors.drain(), { 100: 2, 4999: 1, other: 2 })
})
