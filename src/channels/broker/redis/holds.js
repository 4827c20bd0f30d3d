/** @import { Partition } from './partition.js' */
/** @import { Placement } from './placement.js' */

/**
 * Holds partitions while this worker may have missed orders: requests fail, and nothing is delivered. If the control
 * partition, which has the orders, stays unreachable, the others open after `maxHold`.
 */
export class Holds {
  #parts
  /** @type {Map<Partition, {isNew: boolean, timer: NodeJS.Timeout | undefined}>} */
  #held = new Map()

  /**
   * @param {object} parts @param {Placement} parts.placement
   * @param {() => boolean} parts.isCurrent whether all orders are executed
   * @param {number} parts.maxHold of partitions other than control, ms
   * @param {(partition: Partition, isNew: boolean) => void} parts.open `isNew`: its connection is new
   */
  constructor(parts) {
    this.#parts = parts
  }

  /** A partition has a new connection. @param {Partition} partition */
  up(partition) {
    if (this.#parts.isCurrent()) this.#parts.open(partition, true)
    else this.#hold(partition, true)
  }

  /** @param {Partition} partition its connection is lost */
  down(partition) {
    clearTimeout(this.#held.get(partition)?.timer)
    this.#held.delete(partition)
    partition.held = false
  }

  /** Call after this worker was blocked: orders precede all data received meanwhile. */
  begin() {
    const { control, partitions } = this.#parts.placement
    for (const partition of partitions) {
      if (!partition.up) continue
      if (partition.connection !== control.connection) partition.connection?.pause()
      this.#hold(partition, false)
    }
  }

  end() {
    for (const partition of [...this.#held.keys()]) this.#release(partition)
  }

  /** @param {Partition} partition @param {boolean} isNew */
  #hold(partition, isNew) {
    const isControl = partition === this.#parts.placement.control
    const timer = isControl ? undefined : setTimeout(() => this.#release(partition), this.#parts.maxHold)
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
    this.#parts.open(partition, hold.isNew)
  }
}
