import t from 'tap'
import { drivers } from '../session/support.js'
import { fuzzHttp } from './fuzz/suite.js'

t.jobs = 2
for (const driver of drivers)
  t.test(driver, { buffered: true }, async t => fuzzHttp(t, driver, 10_000, 15_000))
