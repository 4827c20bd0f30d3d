import t from 'tap'
import { skipDriver } from '../../kit/drivers.js'
import { fuzzJson } from './fuzz/suite.js'

t.jobs = 2
for (const driver of /** @type {const} */ (['uws', 'node']))
  t.test(driver, { skip: skipDriver(driver) }, async t => fuzzJson(t, driver, 20_000, 6_000))
