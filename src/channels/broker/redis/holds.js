/** @typedef {import('./partition.js').Partition} Partition */

/**
 * Keeps clients from partitions while this worker may have missed orders about them: requests fail as if Redis were
 * out of reach, and nothing is delivered.
 *
 * Orders are on the control partition. If it stays out of reach, the others are opened after a time: one shard that is
 * down must not take the others with it.
 */
export class Holds {
  #placement
  #isCurrent
  #maxHold
  #open
  /** @type {Map<Partition, {isNew: boolean, timer: NodeJS.Timeout | undefined}>} */
  #held = new Map()

  /**
   * @param {object} parts @param {import('./placement.js').Placement} parts.placement
   * @param {() => boolean} parts.isCurrent whether all orders are executed
   * @param {number} parts.maxHold ms for which a partition other than control waits
   * @param {(partition: Partition, isNew: boolean) => void} parts.open the partition can be used (again); `isNew`: its
   *   connection is new
   */
  constructor({ placement, isCurrent, maxHold, open }) {
    this.#placement = placement
    this.#isCurrent = isCurrent
    this.#maxHold = maxHold
    this.#open = open
  }

  /** A partition has a new connection. @param {Partition} partition */
  up(partition) {
    if (this.#isCurrent()) this.#open(partition, true)
    else this.#hold(partition, true)
  }

  /** @param {Partition} partition whose connection is lost */
  down(partition) {
    clearTimeout(this.#held.get(partition)?.timer)
    this.#held.delete(partition)
    partition.held = false
  }

  /** This worker stood still: nothing that has come meanwhile is read before the orders. */
  begin() {
    const { control, partitions } = this.#placement
    for (const partition of partitions) {
      if (!partition.up) continue
      if (partition.connection !== control.connection) partition.connection?.pause()
      this.#hold(partition, false)
    }
  }

  /** All orders are executed. */
  end() {
    for (const partition of [...this.#held.keys()]) this.#release(partition)
  }

  /** @param {Partition} partition @param {boolean} isNew */
  #hold(partition, isNew) {
    const isControl = partition === this.#placement.control
    const timer = isControl ? undefined : setTimeout(() => this.#release(partition), this.#maxHold)
    partition.held = true
    this.#held.set(partition, { isNew, timer })
  }

  /** @param {Partition} partition */
  #release(partition) {
    const hold = this.#held.get(partition)
    if (hold === undefined) return
    clearTimeout(hold.timer)
    this.#held.delete(partition)
    partition.held = false
    partition.connection?.resume()
    this.#open(partition, hold.isNew)
  }
}
