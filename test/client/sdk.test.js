import t from 'tap'
import { drivers } from '../kit/drivers.js'
import { sdkSuite } from './sdk.js'

for (const driver of drivers) t.test(driver, async t => sdkSuite(t, driver))
