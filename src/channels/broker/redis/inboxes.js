// Messages between workers of all nodes: a letter, fields (worker uids, numbers), a line feed, a body of any bytes.

import { errors } from '../../../base/errors.js'
import { replyTo } from './partition.js'

/** @import { Partition } from './partition.js' */

export const Kind = Object.freeze({
  /** uid, index of the worker [id of its node]: this worker is now reachable */
  WORKER_UP: '+',
  /** uid: this worker has exited */
  WORKER_GONE: '-',
  /** uid of the requesting worker, number of the survey [JSON: operation, parameters] */
  SURVEY: '?',
  /** number of the survey, uid of the responding worker [JSON] */
  SURVEY_ANSWER: '=',
  /** number of the survey, uid of the responding worker, bytes: the response is stored in Redis */
  SURVEY_LARGE: '@',
  /** number of the survey, uid of the failed worker */
  SURVEY_FAILED: '!',
  /** an order, see orders.lua: epoch, previous id, id, time, 1 if late, uid, number of the survey [JSON] */
  ORDER: '>',
  /** uid of the caller, number of the call, 0 = no response expected [request] */
  CALL: 'c',
  /** number of the call [response] */
  CALL_ANSWER: 'a',
  /** number of the call, which gets no response */
  CALL_FAILED: 'f',
  /** uid of the caller [JSON: numbers of its calls]: fails unknown ones */
  CALL_PROBE: 'p',
  /** number of a partition of the states of channels: its leader has something to do */
  STATE: 's',
})

/** @param {string} kind @param {(string | number)[]} fields @param {Message} [body] @returns {Message} a copy */
export function encode(kind, fields, body = '') {
  const head = `${kind}${fields.join(' ')}\n`
  return typeof body === 'string' ? head + body : Buffer.concat([Buffer.from(head), body])
}

/** @param {Buffer} message @returns {{kind: string, fields: string[], body: Buffer}} the body is a view of the message */
export function decode(message) {
  const end = message.indexOf('\n')
  const head = message.toString('latin1', 0, Math.max(end, 0))
  return { kind: head.slice(0, 1), fields: head.slice(1).split(' '), body: message.subarray(end + 1) }
}

/** Maximum bytes of replies queued during an outage. */
const MAX_UNSENT = 16 * 1024 * 1024

export const ALL = 'workers'

/** @typedef {string | Buffer} Message */

/** Topics of workers, `worker.<uid>` and `workers` (all), on one server: messages of one sender keep their order. */
export class Inboxes {
  #partition
  #maxAge
  /** @type {{uid: string, message: Message, since: number}[]} unsent replies */
  #unsent = []
  #unsentBytes = 0

  /** @param {Partition} partition @param {number} maxAge lifetime of an unsent reply, ms */
  constructor(partition, maxAge) {
    this.#partition = partition
    this.#maxAge = maxAge
  }

  get all() {
    return this.#partition.prefix + ALL
  }

  /** @param {string} uid */
  topicOf(uid) {
    return this.#partition.key('worker', uid)
  }

  /** @param {string} uid @param {Message} message @param {(error: Error | null, receivers: number) => void} done */
  send(uid, message, done) {
    this.#partition.send(this.#partition.publishCommand, [this.topicOf(uid), message], done)
  }

  /** @param {Message} message @param {(error: Error | null) => void} done */
  broadcast(message, done) {
    this.#partition.send(this.#partition.publishCommand, [this.all, message], done)
  }

  /**
   * Sends a reply. During an outage it is queued, and may arrive twice.
   * @param {string} uid @param {Message} message @param {Message} fallback short one, if the queue is full
   */
  reply(uid, message, fallback) {
    this.#reply(uid, message, fallback, performance.now())
  }

  /** @param {string} uid @param {Message} message @param {Message} fallback @param {number} since */
  #reply(uid, message, fallback, since) {
    const keep = () => {
      const kept = this.#unsentBytes + message.length > MAX_UNSENT ? fallback : message
      this.#unsentBytes += kept.length
      this.#unsent.push({ uid, message: kept, since })
    }
    if (this.#unsent.length > 0) return keep()
    this.send(uid, message, error => {
      if (error) keep()
    })
  }

  /** Sends queued replies: call after a reconnect and once a second. */
  flush() {
    if (this.#unsent.length === 0 || !this.#partition.connected) return
    const kept = this.#unsent
    this.#unsent = []
    this.#unsentBytes = 0
    const oldest = performance.now() - this.#maxAge
    for (const { uid, message, since } of kept) {
      if (since >= oldest) this.#reply(uid, message, message, since)
    }
  }

  tick() {
    const oldest = performance.now() - this.#maxAge
    this.#unsent = this.#unsent.filter(({ message, since }) => {
      if (since >= oldest) return true
      this.#unsentBytes -= message.length
      return false
    })
    this.flush()
  }
}

const PIECE = 512 * 1024
const TTL = 15_000

/** Messages too large for a topic (Redis would disconnect slow subscribers): stored in a key, read in pieces. */
export class LargeMessages {
  #partition
  /** End of the last fetch: they run sequentially. @type {Promise<unknown>} */
  #fetched = Promise.resolve()

  /** @param {Partition} partition */
  constructor(partition) {
    this.#partition = partition
  }

  /** @param {string} key @param {Buffer} bytes not empty @returns {Promise<void>} */
  async put(key, bytes) {
    const first = bytes.subarray(0, PIECE)
    await replyTo(done => this.#partition.send('set', [key, first, 'PX', TTL], done))
    for (let at = PIECE; at < bytes.length; at += PIECE) {
      const piece = bytes.subarray(at, at + PIECE)
      await replyTo(done => this.#partition.send('append', [key, piece], done))
    }
  }

  /**
   * @param {string} key @param {number} size bytes @param {() => boolean} wanted checked before each step
   * @returns {Promise<Buffer | null>} null: no longer needed
   */
  fetch(key, size, wanted) {
    const fetched = this.#fetched.then(() => this.#fetch(key, size, wanted))
    this.#fetched = fetched.catch(() => {})
    return fetched
  }

  /** @param {string} key @param {number} size @param {() => boolean} wanted */
  async #fetch(key, size, wanted) {
    if (!wanted()) return null
    /** @type {Buffer[]} */
    const pieces = []
    try {
      for (let at = 0; at < size && wanted(); at += PIECE) {
        const piece = await replyTo(done => this.#partition.send('getrange', [key, at, at + PIECE - 1], done))
        if (piece.length === 0) throw errors.internal
        pieces.push(piece)
      }
    } finally {
      this.#partition.send('del', [key], () => {})
    }
    return wanted() ? Buffer.concat(pieces) : null
  }
}
