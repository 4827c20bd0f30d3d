import t from 'tap'
import { fuzzJson } from './fuzz/suite.js'
import { drivers } from './support.js'

t.jobs = 2
for (const driver of drivers) t.test(driver, async t => fuzzJson(t, driver, 20_000, 15_000))
