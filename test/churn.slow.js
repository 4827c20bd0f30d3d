import t from 'tap'
import { churn } from './churn.js'

for (const driver of /** @type {const} */ (['uws', 'node'])) t.test(driver, async t => churn(t, driver, 25))
