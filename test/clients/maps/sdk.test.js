// Map subscriptions of the official SDK with the embedded engine.

import t from 'tap'
import { drivers, onDriver } from '../../kit/drivers.js'
import { testMaps } from './sdk.js'

for (const driver of drivers) t.test(driver, t => testMaps(t, driver, onDriver(driver)))
