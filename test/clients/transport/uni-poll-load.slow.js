import t from 'tap'
import { skipDriver } from '../../kit/drivers.js'
import { testLoad } from './uni-poll-load.js'

for (const driver of /** @type {const} */ (['uws', 'node'])) {
  t.test(driver, { skip: skipDriver(driver) }, async t =>
    testLoad(t, driver, { pollers: 8, publications: 200, crowd: 800 }),
  )
}
