import t from 'tap'
import { skipDriver } from '../kit/drivers.js'
import { recoveryUnderLoad } from './recovery-load.js'

for (const driver of /** @type {const} */ (['uws', 'node'])) {
  t.test(driver, { skip: skipDriver(driver) }, async t =>
    recoveryUnderLoad(t, driver, { batches: 25, subscribers: 24 }),
  )
}
