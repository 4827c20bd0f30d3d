import { Publishes } from './publishes.js'
import { Reads } from './reads.js'

/** @import { Logger } from 'pino' */
/** @import { Channel, Channels } from './channels.js' */
/** @import { Partition } from './partition.js' */
/** @import { Item, PendingBatches } from './publishes.js' */

/** Maximum channels per command: it blocks Redis. */
const MAX_TOPICS = 512

/**
 * Requests to a partition, flushed in few commands. Subscriptions are sent first: publications then follow exactly the
 * position read.
 */
export class PartitionQueue {
  /** @type {Set<Channel>} channels of the partition, for connection changes */
  channels = new Set()
  #partition
  #channels
  /** @type {Channel[]} to subscribe to */
  #opened = []
  /** @type {string[]} to unsubscribe from */
  #closed = []
  /** @type {(() => void)[]} */
  #after = []
  #scheduled = false
  #flush = () => this.flush()
  #schedule = () => {
    if (this.#scheduled) return
    this.#scheduled = true
    this.#partition.schedule(this.#flush)
  }

  /**
   * @param {Partition} partition @param {Channels} channels @param {PendingBatches} batches
   * @param {number} emptyTtl ms, see Reads @param {(item: Item) => void} onAccepted see Publishes @param {Logger} log
   */
  constructor(partition, channels, batches, emptyTtl, onAccepted, log) {
    this.#partition = partition
    this.#channels = channels
    this.reads = new Reads(partition, emptyTtl, log, this.#schedule)
    const isSubscribed = (/** @type {string} */ name) => channels.get(name)?.subscribed === true
    this.publishes = new Publishes(partition, batches, isSubscribed, onAccepted, log, this.#schedule)
  }

  flush() {
    this.#scheduled = false
    if (this.#closed.length > 0) this.#unsubscribe()
    if (this.#opened.length > 0) this.#subscribe()
    this.reads.flush()
    this.publishes.flush()
    if (this.#after.length > 0) {
      const after = this.#after
      this.#after = []
      this.#partition.send('ping', [], () => {
        for (const then of after) then()
      })
    }
  }

  #unsubscribe() {
    const closed = this.#closed
    this.#closed = []
    for (let i = 0; i < closed.length; i += MAX_TOPICS) {
      const topics = closed.slice(i, i + MAX_TOPICS).map(name => this.#partition.key('channel', name))
      this.#partition.unsubscribe(topics, () => {})
    }
  }

  #subscribe() {
    const opened = this.#opened.filter(channel => this.#channels.has(channel) && !channel.subscribed)
    this.#opened = []
    for (let i = 0; i < opened.length; i += MAX_TOPICS) {
      const channels = opened.slice(i, i + MAX_TOPICS)
      for (const channel of channels) channel.subscribed = true
      const topics = channels.map(({ name }) => this.#partition.key('channel', name))
      this.#partition.subscribe(topics, error => {
        for (const channel of channels) this.#channels.onSubscribed(channel, error)
      })
    }
  }

  /** @param {Channel} channel */
  open(channel) {
    this.#opened.push(channel)
    this.#schedule()
  }

  /** @param {string} name of a subscribed channel */
  close(name) {
    this.#closed.push(name)
    this.#schedule()
  }

  /** Calls `then` when all earlier requests have completed, except delayed histories. @param {() => void} then */
  after(then) {
    this.#after.push(then)
    this.#schedule()
  }
}
