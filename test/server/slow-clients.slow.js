import t from 'tap'
import { skipDriver } from '../drivers.js'
import { slowClientConformance } from './conformance/slow-clients.js'

t.jobs = 2
for (const driver of /** @type {const} */ (['uws', 'node'])) {
  t.test(driver, { skip: skipDriver(driver) }, async t => slowClientConformance(t, driver))
}
