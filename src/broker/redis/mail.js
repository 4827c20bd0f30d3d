/** Bytes of replies that may wait for Redis to come back. */
const MAX_KEPT = 16 * 1024 * 1024

/** The topic of all workers. */
export const EVERYBODY = 'workers'

/**
 * @typedef {string | Buffer} Message
 * @typedef {import('./partition.js').Partition} Partition
 */

/**
 * The topics by which workers of all nodes reach each other: `worker.<uid>` is that of one, `workers` that of all. What is sent by one
 * worker arrives in the order in which it was sent, for all topics are on one server.
 */
export class Mail {
  #partition
  #patience
  /** @type {{uid: string, message: Message, since: number}[]} replies that have not left */
  #kept = []
  #keptBytes = 0

  /**
   * @param {Partition} partition
   * @param {number} patience ms after which nobody waits for a reply any more that could not leave
   */
  constructor(partition, patience) {
    this.#partition = partition
    this.#patience = patience
  }

  get everybody() {
    return this.#partition.prefix + EVERYBODY
  }

  /** @param {string} uid */
  topicOf(uid) {
    return this.#partition.key('worker', uid)
  }

  /**
   * @param {string} uid
   * @param {Message} message
   * @param {(error: Error | null, receivers: number) => void} done
   */
  send(uid, message, done) {
    this.#partition.send(this.#partition.publishCommand, [this.topicOf(uid), message], done)
  }

  /**
   * @param {Message} message
   * @param {(error: Error | null) => void} done
   */
  broadcast(message, done) {
    this.#partition.send(this.#partition.publishCommand, [this.everybody, message], done)
  }

  /**
   * Sends what somebody waits for. If Redis is away, it leaves when Redis is back, and may then arrive twice.
   * @param {string} uid
   * @param {Message} message
   * @param {Message} instead a short one, if too many wait for Redis already
   */
  reply(uid, message, instead) {
    this.#reply(uid, message, instead, performance.now())
  }

  /**
   * @param {string} uid
   * @param {Message} message
   * @param {Message} instead
   * @param {number} since
   */
  #reply(uid, message, instead, since) {
    const keep = () => {
      const kept = this.#keptBytes + message.length > MAX_KEPT ? instead : message
      this.#keptBytes += kept.length
      this.#kept.push({ uid, message: kept, since })
    }
    // Not past those that wait.
    if (this.#kept.length > 0) return keep()
    this.send(uid, message, error => {
      if (error) keep()
    })
  }

  /** Sends what could not leave before: to be called when Redis is back, and now and then. */
  flush() {
    if (this.#kept.length === 0 || !this.#partition.up) return
    const kept = this.#kept
    this.#kept = []
    this.#keptBytes = 0
    const oldest = performance.now() - this.#patience
    for (const { uid, message, since } of kept) {
      if (since >= oldest) this.#reply(uid, message, message, since)
    }
  }

  /** Forgets what nobody waits for any more. */
  tick() {
    const oldest = performance.now() - this.#patience
    this.#kept = this.#kept.filter(({ message, since }) => {
      if (since >= oldest) return true
      this.#keptBytes -= message.length
      return false
    })
    this.flush()
  }
}
