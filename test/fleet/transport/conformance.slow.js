import t from 'tap'
import { TRANSPORTS } from '../../../fleet/settings.js'
import { skipDriver } from '../../kit/drivers.js'
import { startAll, testDriver, testPings } from './conformance.js'

// The pong timeout allows for a busy machine. All tests mostly wait, so they run together.
t.jobs = 4
for (const driver of /** @type {const} */ (['uws', 'node'])) {
  t.test(`driver ${driver}`, { buffered: true, skip: skipDriver(driver) }, t => testDriver(t, driver))
  t.test(`pings of driver ${driver}`, { buffered: true, skip: skipDriver(driver) }, async t => {
    const gateway = await startAll(t, driver, { ping_interval: '8s', pong_timeout: '7s' })
    t.jobs = TRANSPORTS.length
    for (const transport of TRANSPORTS)
      t.test(transport, { buffered: true, skip: skipDriver(driver) }, t => testPings(t, gateway, transport))
  })
}
