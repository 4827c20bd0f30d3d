// Recovery of streams by the official SDK with the embedded engine.

import t from 'tap'
import { drivers, onDriver } from '../../kit/drivers.js'
import { testRecovery } from './sdk.js'

for (const driver of drivers) t.test(driver, t => testRecovery(t, onDriver(driver, {})))
