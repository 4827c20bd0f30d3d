import { errors } from '../../../base/errors.js'
import { newEpoch } from '../epoch.js'
import { decodeEntries } from './envelope.js'
import { read } from './scripts.js'

/**
 * @typedef {import('../contract.js').Publication} Publication
 *
 * @typedef {object} Answer
 * @property {boolean} found whether all requested publications are there; false also for another epoch
 * @property {boolean} complete false: the limit of bytes has ended the list; `c`: offset and batch id are then those of
 *   its last publication
 * @property {number} offset top of the stream
 * @property {string} epoch
 * @property {string} batchId of the last publication
 * @property {Publication[]} publications
 * @typedef {(error: Error | null, answer: Answer) => void} Done
 * @typedef {object} Item
 * @property {string} channel
 * @property {string[]} args of the item in the script
 * @property {number} maxBytes limit of the answer, 0: none
 * @property {Done} done
 */

/** @type {Answer} */
export const NO_ANSWER = Object.freeze({
  found: false,
  complete: true,
  offset: 0,
  epoch: '',
  batchId: '',
  publications: [],
})

const MAX_POSITIONS = 128
/** Histories may be large, and Redis drops slow subscribers (client-output-buffer-limit pubsub). */
const MAX_HISTORIES = 16
/** Bytes of the histories of one call; a larger one is read alone. */
const CALL_BYTES = 1024 * 1024
/** Bytes of simultaneous histories that are read alone, by their limits; one is always read. */
const LARGE_BYTES = 8 * 1024 * 1024
/** Simultaneous calls for histories. */
const MAX_CALLS = 4
const ZERO = 0x30
const CUT = 0x32
const ALONE = 0x3e // >

/** Reads of one turn from the streams of a partition, in few script calls. */
export class Reads {
  #partition
  #emptyTtl
  /** @type {Item[]} */
  #positions = []
  /** @type {Item[]} reads with publications */
  #histories = []
  #pending = 0
  /** @type {Item[]} histories that are read alone */
  #large = []
  /** Bytes of those under way. */
  #largeBytes = 0
  /** Histories in one call. */
  #batchSize = MAX_HISTORIES
  /** Whether a connection was lost with pending histories. */
  #failed = false
  /** Such losses in a row: too many simultaneous histories may be the cause, so fewer are read then. */
  #losses = 0
  #log

  /**
   * @param {import('./partition.js').Partition} partition
   * @param {number} emptyTtl ms that the position of a channel without publications outlives its last use
   * @param {import('pino').Logger} log
   */
  constructor(partition, emptyTtl, log) {
    this.#partition = partition
    this.#emptyTtl = String(emptyTtl)
    this.#log = log
  }

  /**
   * @param {string} channel @param {number} metaTtl ms
   * @param {string[]} op of `read` in streams.lua, with its arguments but the last
   * @param {number} maxBytes the last argument
   * @param {Done} done called in stream order
   */
  add(channel, metaTtl, [op, ...more], maxBytes, done) {
    const args = op === 'p' ? [op, String(metaTtl)] : [op, String(metaTtl), ...more, String(maxBytes)]
    const item = { channel, args, maxBytes, done }
    if (op === 'p') this.#positions.push(item)
    else this.#histories.push(item)
  }

  flush() {
    const positions = this.#positions
    if (positions.length > 0) {
      this.#positions = []
      for (let i = 0; i < positions.length; i += MAX_POSITIONS)
        this.#send(positions.slice(i, i + MAX_POSITIONS), 0)
    }
    this.#sendHistories()
  }

  #sendHistories() {
    const most = this.#batchSize === 1 ? 1 : MAX_CALLS * this.#batchSize
    while (this.#histories.length > 0 && this.#pending < most)
      this.#sendCall(this.#histories.splice(0, this.#batchSize), CALL_BYTES, 0)
    while (this.#large.length > 0 && this.#pending < most) {
      const bytes = this.#large[0].maxBytes || LARGE_BYTES
      if (this.#largeBytes > 0 && this.#largeBytes + bytes > LARGE_BYTES) return
      this.#sendCall(this.#large.splice(0, 1), 0, bytes)
    }
  }

  /**
   * @param {Item[]} items @param {number} limit of all answers, bytes; 0: none
   * @param {number} large bytes read alone
   */
  #sendCall(items, limit, large) {
    const { up } = this.#partition
    this.#pending += items.length
    this.#largeBytes += large
    this.#send(items, limit, error => {
      this.#pending -= items.length
      this.#largeBytes -= large
      if (error && up) this.#failed = true
      if (this.#pending + this.#histories.length + this.#large.length === 0) this.#adapt(error)
      this.#sendHistories()
    })
  }

  /** Adapts #batchSize after all reads, or a lost connection. @param {Error | null} error of the last call */
  #adapt(error) {
    if (this.#failed) {
      if (++this.#losses > 1) this.#batchSize = Math.ceil(this.#batchSize / 2)
    } else if (!error) {
      this.#losses = 0
      this.#batchSize = Math.min(MAX_HISTORIES, this.#batchSize * 2)
    }
    this.#failed = false
  }

  /** @param {Item[]} items @param {number} limit @param {(error: Error | null) => void} [then] */
  #send(items, limit, then) {
    const partition = this.#partition
    /** @type {string[]} */
    const keys = []
    const args = [newEpoch(), partition.branch ?? '', this.#emptyTtl, String(limit)]
    for (const { channel, args: own } of items) {
      keys.push(partition.key('meta', channel), partition.key('stream', channel))
      for (let i = 0; i < own.length; i++) args.push(own[i])
    }
    partition.run(read, keys, args, (error, replies) => {
      for (let i = 0; i < items.length; i++) {
        try {
          this.#answer(items[i], error, error ? null : replies[i])
        } catch (err) {
          this.#log.error({ err }, 'callback of a read failed')
        }
      }
      then?.(error)
    })
  }

  /** @param {Item} item @param {Error | null} error @param {Buffer[] | null} reply */
  #answer(item, error, reply) {
    const { done } = item
    if (error || reply === null) return done(errors.internal, NO_ANSWER)
    if (reply[0][0] === ALONE) return void this.#large.push(item)
    const head = reply[0].toString('latin1', 0, reply[0].length)
    if (head[0] === '!') {
      this.#partition.connection?.fault(head.slice(1), 'read')
      return done(errors.internal, NO_ANSWER)
    }
    const [, offset, epoch, batchId] = head.split(' ')
    let publications = NO_ANSWER.publications
    try {
      if (reply.length > 1) publications = decodeEntries(reply, epoch)
    } catch (error) {
      this.#partition.connection?.fault(`not a history: ${error.message}`, 'read')
      return done(errors.internal, NO_ANSWER)
    }
    const [mark] = reply[0]
    done(null, {
      found: mark !== ZERO,
      complete: mark !== CUT,
      offset: Number(offset),
      epoch,
      batchId,
      publications,
    })
  }
}
