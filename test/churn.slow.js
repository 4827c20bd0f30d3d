import t from 'tap'
import { churn } from './churn.js'
import { skipDriver } from './kit/drivers.js'

for (const driver of /** @type {const} */ (['uws', 'node']))
  t.test(driver, { skip: skipDriver(driver) }, async t => churn(t, driver, 25))
