/**
 * @typedef {import('./channel.js').Channel} Channel
 */

/** Channels in one command: Redis does nothing else meanwhile. */
const MAX_TOPICS = 512

/**
 * What one turn subscribes to and unsubscribes from in a partition, in few commands.
 */
export class Subscriptions {
  #partition
  /** @type {Channel[]} */
  #opened = []
  /** @type {string[]} */
  #closed = []
  #subscribed

  /**
   * @param {import('./partition.js').Partition} partition
   * @param {(channel: Channel, error: Error | null) => void} subscribed called for each channel, in the order of the line
   */
  constructor(partition, subscribed) {
    this.#partition = partition
    this.#subscribed = subscribed
  }

  /** @param {Channel} channel */
  open(channel) {
    this.#opened.push(channel)
  }

  /** @param {string} name of a channel that Redis was asked for */
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
