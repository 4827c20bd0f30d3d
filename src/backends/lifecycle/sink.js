// A sink of the lifecycle log: a queue of records, bounded in bytes, and a destination to which they go in order.

import { setTimeout as wait } from 'node:timers/promises'

/** @import { Log } from '../../base/log.js' */

/**
 * The contract of a destination. One call of `write` at a time.
 * @typedef {object} Destination
 * @property {string} name of the sink: file, webhook, redis
 * @property {number} batchSize maximum records of one call
 * @property {(records: string[]) => Promise<void>} write resolves when the destination has all of them. Rejects
 *   otherwise: the next call has the same records. The error has `tooLarge: true` if fewer may succeed: then the next
 *   call has fewer of them
 * @property {() => Promise<void>} close
 */

/** @typedef {(records: number, since: number, until: number, reason: string) => string} MakeDropped */

/** Bytes of one call of `write`, about. */
const BATCH_BYTES = 512 * 1024
/** Events of this time share a batch, ms. */
const GATHER_MS = 20
const FIRST_RETRY_MS = 100
const MAX_RETRY_MS = 30_000
/** Longest delay of a retry when the gateway ends, ms. */
const LAST_RETRY_MS = 250
/** Time for the destination to close, ms. */
const CLOSE_MS = 1000
/** Memory of a queued record besides its text, bytes. */
const RECORD_OVERHEAD = 32

const NOT_LATIN1 = /[^\0-\xff]/

/** @param {string} record @returns {number} bytes in memory */
const sizeOf = record => (NOT_LATIN1.test(record) ? 2 : 1) * record.length + RECORD_OVERHEAD

export class Sink {
  /** Records that the destination has taken since the start. */
  written = 0
  /** Records dropped since the start, by reason. @type {Record<string, number>} */
  dropped = {}
  /** Why the last call failed; null: it did not. @type {string | null} */
  failure = null
  /** In the queue. */
  bytes = 0
  #destination
  #maxBytes
  #makeDropped
  #log
  #clock
  /** @type {string[]} */
  #queue = []
  /** Records of the queue that are written, at its front. */
  #gone = 0
  /** Records that have entered the queue, and left it. */
  #entered = 0
  #left = 0
  #gap = { records: 0, since: 0, until: 0, reason: '' }
  #running = false
  #closing = new AbortController()
  #limit
  /** @type {{position: number, resolve: () => void}[]} */
  #waiting = []

  /**
   * @param {object} parts @param {Destination} parts.destination @param {number} parts.maxBytes of the queue
   * @param {MakeDropped} parts.makeDropped makes a record of dropped ones; times in unix ms
   * @param {Log} parts.log @param {() => number} parts.clock unix ms
   */
  constructor({ destination, maxBytes, makeDropped, log, clock }) {
    this.name = destination.name
    this.#destination = destination
    this.#maxBytes = maxBytes
    this.#makeDropped = makeDropped
    this.#log = log
    this.#clock = clock
    this.#limit = destination.batchSize
  }

  /** Whether half of the queue is free, or waiting would not help. */
  get ready() {
    return this.bytes * 2 < this.#maxBytes || this.failure !== null
  }

  /** @param {string} record one line of JSON */
  add(record) {
    const size = sizeOf(record)
    if (this.bytes + size > this.#maxBytes) return this.#drop(1, 'queue_full')
    this.#endGap()
    this.#push(record, size)
  }

  /** @param {string} record @param {number} size */
  #push(record, size) {
    this.#queue.push(record)
    this.bytes += size
    this.#entered++
    if (this.#running) return
    this.#running = true
    this.#run().catch(error => this.#log.error({ err: error, sink: this.name }, 'a lifecycle sink stopped'))
  }

  /** @param {number} records @param {string} reason */
  #drop(records, reason) {
    this.dropped[reason] = (this.dropped[reason] ?? 0) + records
    const gap = this.#gap
    if (gap.records === 0) {
      gap.since = this.#clock()
      gap.reason = reason
      this.#log.warn({ sink: this.name, reason }, 'lifecycle events are dropped')
    }
    gap.records += records
    gap.until = this.#clock()
  }

  /** Puts a record in the place of the dropped ones. */
  #endGap() {
    const { records, since, until, reason } = this.#gap
    if (records === 0) return
    this.#gap.records = 0
    this.#log.warn({ sink: this.name, events: records, reason }, 'lifecycle events were dropped')
    const record = this.#makeDropped(records, since, until, reason)
    this.#push(record, sizeOf(record))
  }

  async #run() {
    let delay = FIRST_RETRY_MS
    /** @type {string[]} */
    let batch = []
    while (this.#queue.length > this.#gone || this.#gap.records > 0) {
      if (batch.length === 0) {
        if (this.#queue.length === this.#gone) this.#endGap()
        if (this.#queue.length - this.#gone < this.#limit) await this.#pause(GATHER_MS)
        batch = this.#next()
      }
      try {
        await this.#destination.write(batch)
        this.written += batch.length
        this.#recovered()
        this.#remove(batch)
        batch = []
        delay = FIRST_RETRY_MS
        this.#limit = Math.min(this.#destination.batchSize, this.#limit * 2)
      } catch (error) {
        if (error.tooLarge) {
          this.#limit = Math.ceil(batch.length / 2)
          if (batch.length === 1) {
            this.#remove(batch)
            this.#drop(1, 'too_large')
          }
          batch = []
        } else {
          this.#failed(error)
          if (this.#gaveUp) break
          await this.#pause(delay * (0.5 + Math.random() / 2))
          delay = Math.min(delay * 2, this.#closing.signal.aborted ? LAST_RETRY_MS : MAX_RETRY_MS)
        }
      }
    }
    this.#running = false
  }

  /** @param {number} ms shorter when the gateway ends */
  #pause(ms) {
    const { signal } = this.#closing
    if (signal.aborted) return wait(Math.min(ms, LAST_RETRY_MS))
    return wait(ms, undefined, { signal }).catch(() => {})
  }

  /** @returns {string[]} */
  #next() {
    const end = Math.min(this.#queue.length, this.#gone + this.#limit)
    let to = this.#gone
    for (let bytes = 0; to < end && bytes < BATCH_BYTES; to++) bytes += this.#queue[to].length
    return this.#queue.slice(this.#gone, to)
  }

  /** @param {string[]} batch at the front of the queue */
  #remove(batch) {
    for (const record of batch) this.bytes -= sizeOf(record)
    this.#gone += batch.length
    this.#left += batch.length
    if (this.#gone * 2 >= this.#queue.length) {
      this.#queue.splice(0, this.#gone)
      this.#gone = 0
    }
    const reached = this.#waiting.filter(({ position }) => position <= this.#left)
    if (reached.length === 0) return
    this.#waiting = this.#waiting.filter(({ position }) => position > this.#left)
    for (const { resolve } of reached) resolve()
  }

  /** @param {Error} error */
  #failed({ message }) {
    if (this.failure === null) {
      const { bytes: queued_bytes, name: sink } = this
      this.#log.warn({ sink, reason: message, queued_bytes }, 'a lifecycle sink fails: events wait')
    }
    this.failure = message
  }

  #recovered() {
    if (this.failure === null) return
    this.failure = null
    this.#log.info({ sink: this.name }, 'a lifecycle sink takes events again')
  }

  /** @returns {Promise<void>} when all that was added until now has been written or dropped */
  settled() {
    const position = this.#entered
    if (this.#left >= position) return Promise.resolve()
    return new Promise(resolve => this.#waiting.push({ position, resolve: () => resolve() }))
  }

  #gaveUp = false

  /** Writes what it has. @param {number} timeout ms, for a destination that does not take it */
  async close(timeout) {
    this.#closing.abort()
    this.#endGap()
    await within(this.settled(), timeout)
    this.#gaveUp = true
    const lost = this.#queue.length - this.#gone
    if (lost > 0) {
      this.dropped.shutdown = lost
      this.#log.error({ sink: this.name, events: lost, reason: this.failure }, 'lifecycle events are lost')
    }
    // A disk that does not answer must not hold the end up.
    await within(this.#destination.close(), CLOSE_MS)
  }
}

/** @param {Promise<void>} work @param {number} timeout ms @returns {Promise<void>} when it is done, or too late */
async function within(work, timeout) {
  const late = new AbortController()
  await Promise.race([work, wait(timeout, undefined, { signal: late.signal }).catch(() => {})])
  late.abort()
}
