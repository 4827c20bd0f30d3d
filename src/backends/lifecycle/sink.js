// A sink of the lifecycle log: a queue of records, bounded in bytes, and their destination.

import { setTimeout as wait } from 'node:timers/promises'

/** @import { Log } from '../../base/log.js' */

/**
 * Destination of records. `write` is called once at a time.
 * @typedef {object} Destination
 * @property {string} name of the sink: file, webhook, redis
 * @property {number} batchSize maximum records of one call
 * @property {(records: string[]) => Promise<void>} write resolves when all are written. After a rejection the next call
 *   has the same records, or fewer if the error has `tooLarge: true`
 * @property {() => Promise<void>} close
 */

/**
 * `maxBytes`: of the queue; `makeDropped`: creates the record of a gap, times in unix ms; `clock`: unix ms.
 * @typedef {{destination: Destination, maxBytes: number, log: Log, clock: () => number,
 *   makeDropped: (records: number, since: number, until: number, reason: string) => string}} SinkParts
 */

const BATCH_BYTES = 512 * 1024
/** Time to collect events into a batch, ms. */
const GATHER_MS = 20
const FIRST_RETRY_MS = 100
const MAX_RETRY_MS = 30_000
const LAST_RETRY_MS = 250
const CLOSE_MS = 1000
const RECORD_OVERHEAD = 32

const NOT_LATIN1 = /[^\0-\xff]/

/** @param {string} record @returns {number} bytes in memory */
const sizeOf = record => (NOT_LATIN1.test(record) ? 2 : 1) * record.length + RECORD_OVERHEAD

export class Sink {
  written = 0
  /** Dropped records by reason. @type {Record<string, number>} */
  dropped = {}
  /** Error of the last call; null: none. @type {string | null} */
  failure = null
  bytes = 0
  #parts
  /** @type {string[]} */
  #queue = []
  /** Written records at the front of the queue. */
  #head = 0
  /** Number of records queued, and removed. */
  #entered = 0
  #left = 0
  #gap = { records: 0, since: 0, until: 0, reason: '' }
  #running = false
  #closing = new AbortController()
  #gaveUp = false
  #limit
  /** @type {{position: number, resolve: () => void}[]} */
  #waiting = []

  /** @param {SinkParts} parts */
  constructor(parts) {
    this.#parts = parts
    this.name = parts.destination.name
    this.#limit = parts.destination.batchSize
  }

  /** Whether half of the queue is free, or the destination fails. */
  get ready() {
    return this.bytes * 2 < this.#parts.maxBytes || this.failure !== null
  }

  /** @param {string} record one line of JSON */
  add(record) {
    if (this.bytes + sizeOf(record) > this.#parts.maxBytes) return this.#drop(1, 'queue_full')
    this.#endGap()
    this.#push(record)
  }

  /** @param {string} record */
  #push(record) {
    this.#queue.push(record)
    this.bytes += sizeOf(record)
    this.#entered++
    if (this.#running) return
    this.#running = true
    this.#run().catch(error =>
      this.#parts.log.error({ err: error, sink: this.name }, 'lifecycle sink stopped'),
    )
  }

  /** @param {number} records @param {string} reason */
  #drop(records, reason) {
    this.dropped[reason] = (this.dropped[reason] ?? 0) + records
    const gap = this.#gap
    if (gap.records === 0) {
      gap.since = this.#parts.clock()
      gap.reason = reason
      this.#parts.log.warn({ sink: this.name, reason }, 'dropping lifecycle events')
    }
    gap.records += records
    gap.until = this.#parts.clock()
  }

  /** Replaces dropped records by one record. */
  #endGap() {
    const { records, since, until, reason } = this.#gap
    if (records === 0) return
    this.#gap.records = 0
    this.#parts.log.warn({ sink: this.name, events: records, reason }, 'lifecycle events dropped')
    this.#push(this.#parts.makeDropped(records, since, until, reason))
  }

  async #run() {
    const { destination } = this.#parts
    let delay = FIRST_RETRY_MS
    /** @type {string[]} */
    let batch = []
    while (this.#queue.length > this.#head || this.#gap.records > 0) {
      if (batch.length === 0) {
        if (this.#queue.length === this.#head) this.#endGap()
        if (this.#queue.length - this.#head < this.#limit) await this.#pause(GATHER_MS)
        batch = this.#next()
      }
      try {
        await destination.write(batch)
        this.written += batch.length
        this.#recovered()
        this.#remove(batch)
        batch = []
        delay = FIRST_RETRY_MS
        this.#limit = Math.min(destination.batchSize, this.#limit * 2)
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

  /** @param {number} ms shorter on shutdown */
  #pause(ms) {
    const { signal } = this.#closing
    if (signal.aborted) return wait(Math.min(ms, LAST_RETRY_MS))
    return wait(ms, undefined, { signal }).catch(() => {})
  }

  #next() {
    const end = Math.min(this.#queue.length, this.#head + this.#limit)
    let to = this.#head
    for (let bytes = 0; to < end && bytes < BATCH_BYTES; to++) bytes += this.#queue[to].length
    return this.#queue.slice(this.#head, to)
  }

  /** @param {string[]} batch at the front of the queue */
  #remove(batch) {
    for (const record of batch) this.bytes -= sizeOf(record)
    this.#head += batch.length
    this.#left += batch.length
    if (this.#head * 2 >= this.#queue.length) {
      this.#queue.splice(0, this.#head)
      this.#head = 0
    }
    while (this.#waiting.length > 0 && this.#waiting[0].position <= this.#left)
      this.#waiting.shift()?.resolve()
  }

  /** @param {Error} error */
  #failed({ message }) {
    const fields = { sink: this.name, reason: message, queued_bytes: this.bytes }
    if (this.failure === null) this.#parts.log.warn(fields, 'lifecycle sink failed: events are queued')
    this.failure = message
  }

  #recovered() {
    if (this.failure === null) return
    this.failure = null
    this.#parts.log.info({ sink: this.name }, 'lifecycle sink is available again')
  }

  /** @returns {Promise<void>} when all records so far have been written or dropped */
  settled() {
    const position = this.#entered
    if (this.#left >= position) return Promise.resolve()
    return new Promise(resolve => this.#waiting.push({ position, resolve }))
  }

  /** Flushes the queue. @param {number} timeout of the destination, ms */
  async close(timeout) {
    this.#closing.abort()
    this.#endGap()
    await within(this.settled(), timeout)
    this.#gaveUp = true
    const lost = this.#queue.length - this.#head
    if (lost > 0) {
      this.dropped.shutdown = lost
      const fields = { sink: this.name, events: lost, reason: this.failure }
      this.#parts.log.error(fields, 'lifecycle events lost')
    }
    // An unresponsive disk must not delay the exit.
    await within(this.#parts.destination.close(), CLOSE_MS)
  }
}

/** @param {Promise<unknown>} work @param {number} timeout ms @returns {Promise<void>} when it is done or timed out */
export async function within(work, timeout) {
  const late = new AbortController()
  await Promise.race([work, wait(timeout, undefined, { signal: late.signal }).catch(() => {})])
  late.abort()
}
