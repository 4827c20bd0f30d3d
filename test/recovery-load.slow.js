import t from 'tap'
import { recoveryUnderLoad } from './recovery-load.js'

for (const driver of /** @type {const} */ (['uws', 'node'])) {
  t.test(driver, async t => recoveryUnderLoad(t, driver, { batches: 25, subscribers: 24 }))
}
