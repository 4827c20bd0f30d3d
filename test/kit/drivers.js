// The socket servers that a test file runs on, where `for (const driver of drivers)` repeats its tests.
//
// The fast tier runs such a file on the first one, the slow tier on the other one (run.js), and a file run by its path
// on both. Files about the socket servers themselves, and the witnesses of the guarantees, name both instead, with
// `skip: skipDriver(driver)`.
//
// uWebSockets.js has no binary for some platforms. There, tests on it are skipped and the fast tier runs on `node`. With
// CI=true that is a failure, unless TEST_DRIVER=node says that this platform is one of them.

import { loadUws } from '../../src/clients/server/index.js'
import { unless } from './needs.js'

const ALL = /** @type {const} */ (['uws', 'node'])

/** Why uWebSockets.js does not load, or an empty string. */
const { why } = await loadUws()

/**
 * For the option `skip` of a test that runs on one socket server.
 * @param {string} driver
 * @returns {string | false} the reason, where it does not run here
 * @throws {Error} in CI
 */
export function skipDriver(driver) {
  if (driver !== 'uws') return false
  if (process.env.TEST_DRIVER === 'node') return 'TEST_DRIVER=node leaves uWebSockets.js out'
  return unless(why === '', why)
}

const only = process.env.TEST_DRIVER ?? (why === '' ? undefined : 'node')

/** `http_server.driver` values. */
export const drivers = ALL.filter(driver => driver === (only ?? driver))

/** The one of the fast tier, for what needs any. */
export const [defaultDriver] = drivers
