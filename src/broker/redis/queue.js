import { Publishes } from './publishes.js'
import { Reads } from './reads.js'

/**
 * @typedef {import('./channels.js').Channel} Channel
 * @typedef {import('./channels.js').Channels} Channels
 */

/** Channels in one command, which blocks Redis. */
const MAX_TOPICS = 512

/** Subscribes and unsubscribes of one turn in a partition, in few commands. */
export class Subscriptions {
  #partition
  /** @type {Channel[]} */
  #opened = []
  /** @type {string[]} */
  #closed = []
  #subscribed

  /**
   * @param {import('./partition.js').Partition} partition
   * @param {(channel: Channel, error: Error | null) => void} subscribed called for each channel, in connection order
   */
  constructor(partition, subscribed) {
    this.#partition = partition
    this.#subscribed = subscribed
  }

  /** @param {Channel} channel */
  open(channel) {
    this.#opened.push(channel)
  }

  /** @param {string} name of a channel whose subscription was sent */
  close(name) {
    this.#closed.push(name)
  }

  /** @param {(channel: Channel) => boolean} isWanted */
  flush(isWanted) {
    const partition = this.#partition
    if (this.#closed.length > 0) {
      const closed = this.#closed
      this.#closed = []
      for (let i = 0; i < closed.length; i += MAX_TOPICS) {
        const topics = closed.slice(i, i + MAX_TOPICS).map(name => partition.key('channel', name))
        partition.unsubscribe(topics, () => {})
      }
    }
    if (this.#opened.length > 0) {
      // Some may have been closed in the same turn.
      const opened = this.#opened.filter(channel => isWanted(channel) && !channel.subscribed)
      this.#opened = []
      for (let i = 0; i < opened.length; i += MAX_TOPICS) this.#subscribe(opened.slice(i, i + MAX_TOPICS))
    }
  }

  /** @param {Channel[]} channels */
  #subscribe(channels) {
    for (const channel of channels) channel.subscribed = true
    const topics = channels.map(({ name }) => this.#partition.key('channel', name))
    this.#partition.subscribe(topics, error => {
      for (const channel of channels) this.#subscribed(channel, error)
    })
  }
}

/**
 * The requests to a partition, collected until Connection.schedule flushes them. Subscriptions leave first:
 * publications then follow exactly the position that is read.
 */
export class PartitionQueue {
  /** @type {Set<Channel>} channels of the partition, used when its connection comes or goes */
  channels = new Set()
  #partition
  #channels
  #subscriptions
  #reads
  #publishes
  /** @type {(() => void)[]} */
  #after = []
  #scheduled = false
  #flush = () => this.flush()

  /**
   * @param {import('./partition.js').Partition} partition @param {Channels} channels
   * @param {import('./publishes.js').Batches} batches @param {import('pino').Logger} log
   */
  constructor(partition, channels, batches, log) {
    this.#partition = partition
    this.#channels = channels
    this.#subscriptions = new Subscriptions(partition, channels.subscribed)
    this.#reads = new Reads(partition, log)
    this.#publishes = new Publishes(partition, batches, name => channels.get(name)?.subscribed === true, log)
  }

  #schedule() {
    if (this.#scheduled) return
    this.#scheduled = true
    this.#partition.schedule(this.#flush)
  }

  flush() {
    this.#scheduled = false
    this.#subscriptions.flush(this.#channels.has)
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

  /** @param {Channel} channel */
  open(channel) {
    this.#subscriptions.open(channel)
    this.#schedule()
  }

  /** @param {string} name */
  close(name) {
    this.#subscriptions.close(name)
    this.#schedule()
  }

  /** @type {Reads['add']} */
  read(channel, metaTtl, op, done) {
    this.#reads.add(channel, metaTtl, op, done)
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
