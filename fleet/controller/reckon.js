// The reckoning of a run: the publishers' ledgers against the state of all subscriptions.

/** @typedef {import('../schema.js').Ledger} Ledger */
/** @typedef {import('../schema.js').Reckoning} Reckoning */

/**
 * @param {import('./drone.js').Drone[]} drones
 * @returns {Promise<Reckoning & {publishers: number, missing: string[]}>} `missing`: disconnected drones
 */
export async function reckonAll(drones) {
  const missing = drones.filter(drone => !drone.up).map(({ id }) => id)
  const up = drones.filter(drone => drone.up)
  /** @type {Ledger[]} */
  const ledgers = (await Promise.all(up.map(drone => drone.request({ type: 'ledgers' })))).flat()
  const total = { expected: 0, lost: 0, unknown: 0, publishers: ledgers.length, missing }
  const parts = await Promise.all(up.map(drone => drone.request({ type: 'reckon', ledgers })))
  for (const { expected, lost, unknown } of parts) {
    total.expected += expected
    total.lost += lost
    total.unknown += unknown
  }
  return total
}
