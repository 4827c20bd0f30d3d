// Shared polls of the official SDK with the embedded engine.

import t from 'tap'
import { drivers, onDriver } from '../../kit/drivers.js'
import { testSharedPolls } from './sdk.js'

for (const driver of drivers) t.test(driver, t => testSharedPolls(t, driver, onDriver(driver)))
