import { errors } from '../../../base/errors.js'
import { newEpoch } from '../epoch.js'
import { decodeEntries } from './envelope.js'
import { read } from './scripts.js'

/** @import { Logger } from 'pino' */
/** @import { Publication } from '../contract.js' */
/** @import { Partition } from './partition.js' */

/**
 * `found`: all requested publications exist; `complete`: false if the byte limit cut the list (of `c`: offset and
 * batch id are those of its last publication); `offset`: top of the stream.
 * @typedef {{found: boolean, complete: boolean, offset: number, epoch: string, batchId: string,
 *   publications: Publication[]}} Answer
 * @typedef {(error: Error | null, answer: Answer) => void} Done
 * @typedef {{channel: string, args: string[], maxBytes: number, done: Done}} Item maxBytes: 0: no limit
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
/** Histories may be large: Redis disconnects slow subscribers (client-output-buffer-limit pubsub). */
const MAX_HISTORIES = 16
/** Maximum bytes of histories per call; larger ones are read alone. */
const CALL_BYTES = 1024 * 1024
/** Maximum total limit of simultaneous histories read alone, bytes; one is always read. */
const LARGE_BYTES = 8 * 1024 * 1024
const MAX_CALLS = 4
const ZERO = 0x30
const CUT = 0x32
const ALONE = 0x3e // >

export class Reads {
  #partition
  #emptyTtl
  #schedule
  /** @type {Item[]} */
  #positions = []
  /** @type {Item[]} reads with publications */
  #histories = []
  #pending = 0
  /** @type {Item[]} histories to read alone */
  #large = []
  /** Bytes of pending ones. */
  #largeBytes = 0
  #batchSize = MAX_HISTORIES
  #failed = false
  /** Consecutive losses, possibly caused by too many simultaneous histories: fewer are read then. */
  #losses = 0
  #log

  /**
   * @param {Partition} partition @param {number} emptyTtl ms, see RedisPubSub @param {Logger} log
   * @param {() => void} schedule schedules `flush`
   */
  constructor(partition, emptyTtl, log, schedule) {
    this.#partition = partition
    this.#schedule = schedule
    this.#emptyTtl = String(emptyTtl)
    this.#log = log
  }

  /**
   * @param {string} channel @param {number} metaTtl ms @param {string[]} op of `read` in streams.lua, without its limit
   * @param {number} maxBytes its limit @param {Done} done called in stream order
   */
  add(channel, metaTtl, [op, ...more], maxBytes, done) {
    const args = op === 'p' ? [op, String(metaTtl)] : [op, String(metaTtl), ...more, String(maxBytes)]
    const item = { channel, args, maxBytes, done }
    if (op === 'p') this.#positions.push(item)
    else this.#histories.push(item)
    this.#schedule()
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
    const max = this.#batchSize === 1 ? 1 : MAX_CALLS * this.#batchSize
    while (this.#histories.length > 0 && this.#pending < max)
      this.#sendCall(this.#histories.splice(0, this.#batchSize), CALL_BYTES, 0)
    while (this.#large.length > 0 && this.#pending < max) {
      const bytes = this.#large[0].maxBytes || LARGE_BYTES
      if (this.#largeBytes > 0 && this.#largeBytes + bytes > LARGE_BYTES) return
      this.#sendCall(this.#large.splice(0, 1), 0, bytes)
    }
  }

  /** @param {Item[]} items @param {number} limit of all replies, bytes @param {number} large bytes read alone */
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
          this.#log.error({ err }, 'read callback failed')
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
