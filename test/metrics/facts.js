// Snapshots as the primary makes them, of a gateway that is not there.

import { Lifetimes } from '../../src/stats/lifetimes.js'
import { mockSnapshots } from '../stats/mock.js'

/**
 * @param {object} [options] of mockSnapshots
 * @returns {import('../../src/stats/schema.js').Snapshot[]} one a second
 */
export function snapshots(options = {}) {
  const all = mockSnapshots(options)
  const lifetimes = new Lifetimes(all[0].node.workers)
  for (const snapshot of all) {
    lifetimes.addPrimary(snapshot.primary, snapshot.interval)
    for (const { sample, age } of snapshot.workers) if (sample && age < 1000) lifetimes.addWorker(sample)
    lifetimes.addMachine(snapshot.machine, snapshot.interval)
    snapshot.lifetimes = lifetimes.read()
  }
  return all
}
