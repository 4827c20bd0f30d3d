import { Publishes } from './publishes.js'
import { Reads } from './reads.js'

/**
 * @typedef {import('./channels.js').Channel} Channel
 * @typedef {import('./channels.js').Channels} Channels
 */

/** Channels in one command, which blocks Redis. */
const MAX_TOPICS = 512

/**
 * The requests to a partition, collected until Connection.schedule flushes them in few commands. Subscriptions leave
 * first: publications then follow exactly the position that is read.
 */
export class PartitionQueue {
  /** @type {Set<Channel>} channels of the partition, used when its connection comes or goes */
  channels = new Set()
  #partition
  #channels
  /** @type {Channel[]} to subscribe to */
  #opened = []
  /** @type {string[]} to unsubscribe from */
  #closed = []
  #reads
  #publishes
  /** @type {(() => void)[]} */
  #after = []
  #scheduled = false
  #flush = () => this.flush()

  /**
   * @param {import('./partition.js').Partition} partition @param {Channels} channels
   * @param {import('./publishes.js').PendingBatches} batches @param {number} emptyTtl ms, see Reads
   * @param {(item: import('./publishes.js').Item) => void} onAccepted see Publishes @param {import('pino').Logger} log
   */
  constructor(partition, channels, batches, emptyTtl, onAccepted, log) {
    this.#partition = partition
    this.#channels = channels
    this.#reads = new Reads(partition, emptyTtl, log)
    const isSubscribed = (/** @type {string} */ name) => channels.get(name)?.subscribed === true
    this.#publishes = new Publishes(partition, batches, isSubscribed, onAccepted, log)
  }

  #schedule() {
    if (this.#scheduled) return
    this.#scheduled = true
    this.#partition.schedule(this.#flush)
  }

  flush() {
    this.#scheduled = false
    if (this.#closed.length > 0) this.#unsubscribe()
    if (this.#opened.length > 0) this.#subscribe()
    this.#reads.flush()
    this.#publishes.flush()
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
    // Some may have been closed in the same turn.
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

  /** @param {string} name of a channel whose subscription was sent */
  close(name) {
    this.#closed.push(name)
    this.#schedule()
  }

  /** @type {Reads['add']} */
  read(channel, metaTtl, op, maxBytes, done) {
    this.#reads.add(channel, metaTtl, op, maxBytes, done)
    this.#schedule()
  }

  /** @type {Publishes['publication']} */
  publication(channel, body, options, done) {
    this.#publishes.publication(channel, body, options, done)
    this.#schedule()
  }

  /** @type {Publishes['event']} */
  event(channel, message) {
    this.#publishes.event(channel, message)
    this.#schedule()
  }

  /** Calls `then` when all earlier requests have been answered, except delayed histories. @param {() => void} then */
  after(then) {
    this.#after.push(then)
    this.#schedule()
  }
}
