import { errors } from '../../../base/errors.js'

// Messages between workers of different nodes: a letter, fields, a line feed, and a body of any bytes. Fields are
// worker uids (letters and digits) and numbers.

/** Kinds of messages with their fields and [body]. */
export const Kind = Object.freeze({
  /** uid, index of the worker [id of its node]: this worker can be reached from now on */
  WORKER_UP: '+',
  /** uid: this worker has ended */
  WORKER_GONE: '-',
  /** uid of the asking worker, number of the survey [JSON: operation, parameters] */
  SURVEY: '?',
  /** number of the survey, uid of the answering worker [JSON] */
  SURVEY_ANSWER: '=',
  /** number of the survey, uid of the answering worker, bytes: the answer is stored in Redis */
  SURVEY_LARGE: '@',
  /** number of the survey, uid of the failed worker */
  SURVEY_FAILED: '!',
  /** an order, see orders.lua: epoch, id of the one before, id, time, 1 if late, uid, number of the survey [JSON] */
  ORDER: '>',
  /** uid of the caller, number of the call, 0 = no answer is wanted [request] */
  CALL: 'c',
  /** number of the call [answer] */
  CALL_ANSWER: 'a',
  /** number of the call: there will be no answer */
  CALL_FAILED: 'f',
  /** uid of the caller [JSON: numbers of its calls]: which of them are unknown? */
  CALL_PROBE: 'p',
})

/**
 * @param {string} kind @param {(string | number)[]} fields @param {string | Buffer} [body]
 * @returns {string | Buffer} a copy
 */
export function encode(kind, fields, body = '') {
  const head = `${kind}${fields.join(' ')}\n`
  return typeof body === 'string' ? head + body : Buffer.concat([Buffer.from(head), body])
}

/**
 * @param {Buffer} message
 * @returns {{kind: string, fields: string[], body: Buffer}} the body is a view of the message
 */
export function decode(message) {
  const end = message.indexOf('\n')
  const head = message.toString('latin1', 0, Math.max(end, 0))
  return { kind: head.slice(0, 1), fields: head.slice(1).split(' '), body: message.subarray(end + 1) }
}

/** Limit of reply bytes that wait for Redis to come back. */
const MAX_UNSENT = 16 * 1024 * 1024

/** The topic of all workers. */
export const ALL = 'workers'

/**
 * @typedef {string | Buffer} Message
 * @typedef {import('./partition.js').Partition} Partition
 */

/**
 * The inboxes of workers, as topics: `worker.<uid>` of one, `workers` of all. Messages of one worker arrive in the
 * order in which it sent them, because all topics are on one server.
 */
export class Inboxes {
  #partition
  #maxAge
  /** @type {{uid: string, message: Message, since: number}[]} replies not sent yet */
  #unsent = []
  #unsentBytes = 0

  /** @param {Partition} partition @param {number} maxAge ms after which an unsent reply is dropped */
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
   * Sends a reply. While Redis is out of reach it is kept, and may then arrive twice.
   * @param {string} uid @param {Message} message
   * @param {Message} fallback a short one, for when too many bytes are kept
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
    // Keep the order.
    if (this.#unsent.length > 0) return keep()
    this.send(uid, message, error => {
      if (error) keep()
    })
  }

  /** Sends the kept replies: called after a reconnect, and once a second. */
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

  /** Called once a second: drops expired replies. */
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
/** Life of a large message in Redis, ms. */
const TTL = 15_000

/** @typedef {(error: Error | null, bytes: Buffer) => void} BytesDone */

/**
 * Messages too large for a topic, where Redis would disconnect a slow subscriber: stored under a key, read in pieces.
 */
export class LargeMessages {
  #partition
  /** @type {{key: string, size: number, wanted: () => boolean, done: BytesDone}[]} fetched one after another */
  #waiting = []

  /** @param {import('./partition.js').Partition} partition */
  constructor(partition) {
    this.#partition = partition
  }

  /** @param {string} key @param {Buffer} bytes not empty @param {(error: Error | null) => void} done */
  put(key, bytes, done) {
    let at = 0
    const next = (/** @type {Error | null} */ error) => {
      if (error || at === bytes.length) return done(error)
      const piece = bytes.subarray(at, at + PIECE)
      const first = at === 0
      at += piece.length
      if (first) this.#partition.send('set', [key, piece, 'PX', TTL], next)
      else this.#partition.send('append', [key, piece], next)
    }
    next(null)
  }

  /**
   * @param {string} key @param {number} size bytes
   * @param {() => boolean} wanted checked when its turn comes, and before `done`
   * @param {BytesDone} done called only if still wanted
   */
  fetch(key, size, wanted, done) {
    this.#waiting.push({ key, size, wanted, done })
    if (this.#waiting.length === 1) this.#fetchNext()
  }

  #fetchNext() {
    while (this.#waiting.length > 0 && !this.#waiting[0].wanted()) this.#waiting.shift()
    if (this.#waiting.length === 0) return
    const { key, size, wanted, done } = this.#waiting[0]
    /** @type {Buffer[]} */
    const pieces = []
    let at = 0
    const finish = (/** @type {Error | null} */ error) => {
      this.#partition.send('del', [key], () => {})
      this.#waiting.shift()
      if (wanted()) done(error, Buffer.concat(pieces))
      this.#fetchNext()
    }
    const next = () => {
      if (at === size || !wanted()) return finish(null)
      this.#partition.send('getrange', [key, at, at + PIECE - 1], (error, piece) => {
        if (error || piece.length === 0) return finish(errors.internal)
        pieces.push(piece)
        at += piece.length
        next()
      })
    }
    next()
  }
}
