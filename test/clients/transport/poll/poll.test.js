import t from 'tap'
import { drivers } from '../../../kit/drivers.js'
import { pollSuite } from './suite.js'

for (const driver of drivers) t.test(driver, async t => pollSuite(t, driver))
