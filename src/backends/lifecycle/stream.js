/** @import { LifecycleStore } from '../../channels/broker/redis/lifecycle.js' */
/** @import { Destination } from './sink.js' */

const BATCH_SIZE = 500

/**
 * Appends records to the Redis stream. A batch whose answer was lost is sent again with its number, which Redis
 * remembers: it is in the stream once.
 * @implements {Destination}
 */
export class StreamDestination {
  static NAME = 'redis'
  name = StreamDestination.NAME
  batchSize = BATCH_SIZE
  #store
  #maxLength
  #before
  /** Of the last batch that Redis has. */
  #number = 0

  /**
   * @param {LifecycleStore} store @param {number} maxLength entries; 0: any
   * @param {() => void} before called before each batch: what it sends is executed first
   */
  constructor(store, maxLength, before) {
    this.#store = store
    this.#maxLength = maxLength
    this.#before = before
  }

  /** @type {Destination['write']} */
  async write(records) {
    this.#before()
    // After a lost answer the same records have the same number.
    await this.#store.append(this.#number + 1, records, this.#maxLength).catch(() => {
      throw new Error('Redis is out of reach or refuses the command')
    })
    this.#number++
  }

  async close() {}
}
