// Socket servers for `for (const driver of drivers)`: the fast tier runs such a file on the first one, the slow tier
// on the other one (run.js), and a file run by its path uses both. Files about the socket servers themselves name
// both, with `skip: skipDriver(driver)`.
//
// Where uWebSockets.js has no binary, its tests are skipped and the fast tier runs on `node`. With CI=true that fails,
// unless TEST_DRIVER=node declares such a platform.

import { loadUws } from '../../src/clients/server/index.js'
import { unless } from './needs.js'

const ALL = /** @type {const} */ (['uws', 'node'])

const { why } = await loadUws()

/** For the `skip` option of a test. @param {string} driver @returns {string | false} reason @throws {Error} in CI */
export function skipDriver(driver) {
  if (driver !== 'uws') return false
  if (process.env.TEST_DRIVER === 'node') return 'TEST_DRIVER=node excludes uWebSockets.js'
  return unless(why === '', why)
}

const only = process.env.TEST_DRIVER ?? (why === '' ? undefined : 'node')

/** `http_server.driver` values. */
export const drivers = ALL.filter(driver => driver === (only ?? driver))

/** The fast tier's, for tests that need any. */
export const [defaultDriver] = drivers

/** With two workers on uWebSockets.js, where the kernel spreads connections. @param {string} driver @param {object} config */
export const onDriver = (driver, config) => ({
  ...config,
  workers: driver === 'uws' ? 2 : 1,
  http_server: { driver },
})
