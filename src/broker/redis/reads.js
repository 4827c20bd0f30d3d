import { errors } from '../../errors.js'
import { newEpoch } from '../epoch.js'
import { decodeEntries } from './envelope.js'
import { read } from './scripts.js'

/**
 * @typedef {import('../contract.js').Publication} Publication
 *
 * @typedef {object} Answer
 * @property {boolean} found whether all requested publications are there; false also for another epoch
 * @property {number} offset top of the stream
 * @property {string} epoch
 * @property {string} batchId of the last publication
 * @property {Publication[]} publications
 * @typedef {(error: Error | null, answer: Answer) => void} Done
 * @typedef {{channel: string, args: string[], done: Done}} Item
 */

/** @type {Answer} */
export const NO_ANSWER = Object.freeze({ found: false, offset: 0, epoch: '', batchId: '', publications: [] })

const MAX_POSITIONS = 128
/** Histories may be large, and Redis drops slow subscribers (client-output-buffer-limit pubsub). */
const MAX_HISTORIES = 16
/** Simultaneous calls for histories. */
const MAX_CALLS = 4
const ONE = 0x31

/** Reads of one turn from the streams of a partition, in few script calls. */
export class Reads {
  #partition
  #emptyTtl
  /** @type {Item[]} */
  #positions = []
  /** @type {Item[]} reads with publications */
  #histories = []
  #pending = 0
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
   * @param {string[]} op of `read` in streams.lua, with its arguments
   * @param {Done} done called in stream order
   */
  add(channel, metaTtl, [op, ...more], done) {
    const item = { channel, args: [op, String(metaTtl), ...more], done }
    if (op === 'p') this.#positions.push(item)
    else this.#histories.push(item)
  }

  flush() {
    const positions = this.#positions
    if (positions.length > 0) {
      this.#positions = []
      for (let i = 0; i < positions.length; i += MAX_POSITIONS)
        this.#send(positions.slice(i, i + MAX_POSITIONS))
    }
    this.#sendHistories()
  }

  #sendHistories() {
    while (
      this.#histories.length > 0 &&
      this.#pending < (this.#batchSize === 1 ? 1 : MAX_CALLS * this.#batchSize)
    ) {
      const items = this.#histories.splice(0, this.#batchSize)
      const { up } = this.#partition
      this.#pending += items.length
      this.#send(items, error => {
        this.#pending -= items.length
        if (error && up) this.#failed = true
        if (this.#pending === 0 && this.#histories.length === 0) this.#adapt(error)
        this.#sendHistories()
      })
    }
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

  /** @param {Item[]} items @param {(error: Error | null) => void} [then] */
  #send(items, then) {
    const partition = this.#partition
    /** @type {string[]} */
    const keys = []
    const args = [newEpoch(), this.#emptyTtl]
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
  #answer({ done }, error, reply) {
    if (error || reply === null) return done(errors.internal, NO_ANSWER)
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
    done(null, { found: reply[0][0] === ONE, offset: Number(offset), epoch, batchId, publications })
  }
}
