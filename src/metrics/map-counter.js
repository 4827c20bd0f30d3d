/** @import { MapCounts } from './schema.js' */

/** Changes of maps: accepted writes, and removals of expired keys. */
export class MapCounter {
  publishes = 0
  removals = 0
  expiries = 0

  /** Since the last drain. @returns {MapCounts} */
  drain() {
    const { publishes, removals, expiries } = this
    this.publishes = this.removals = this.expiries = 0
    return { publishes, removals, expiries }
  }
}
