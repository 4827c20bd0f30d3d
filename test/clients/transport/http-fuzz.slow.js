import t from 'tap'
import { skipDriver } from '../../kit/drivers.js'
import { fuzzHttp } from './fuzz/suite.js'

t.jobs = 2
for (const driver of /** @type {const} */ (['uws', 'node']))
  t.test(driver, { buffered: true, skip: skipDriver(driver) }, async t => fuzzHttp(t, driver, 10_000, 6_000))
