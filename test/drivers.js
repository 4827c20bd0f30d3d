// The socket servers that a test file runs on, where `for (const driver of drivers)` repeats its tests.
//
// The fast tier runs such a file on the first one, the slow tier on the other one (run.js), and a file run by its path
// on both. Files about the socket servers themselves, and the witnesses of the guarantees, name both instead.

const ALL = /** @type {const} */ (['uws', 'node'])

/** `http_server.driver` values. */
export const drivers = ALL.filter(driver => (process.env.TEST_DRIVER ?? driver) === driver)
