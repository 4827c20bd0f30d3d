import { Timer } from '../../../base/timers.js'

/** @import { Exchange } from '../../server/contract.js' */
/** @import { Entry, Feed } from './feed.js' */
/** @import { Polls } from './polls.js' */

/** Offsets of clients without a position. */
export const StartOffset = Object.freeze({ NOW: -1, EARLIEST: -2 })

/** @type {Entry[]} */
const NO_ENTRIES = []

/** One channel of a poll, and the position of its client there. */
export class PollPosition {
  /** Last entry that the poll has, in the feed's own count; -1: not located yet. */
  seq = -1
  /** @type {Entry[]} read from history for this poll; they precede the feed's entries */
  entries = NO_ENTRIES
  /** Publications after its cursor are no longer in history. */
  lost = false

  /**
   * @param {Poll} poll @param {Feed} feed @param {number} offset last offset that the client has; 0 without history
   * @param {string} epoch '' = any @param {PollPosition | null} next of the same poll
   */
  constructor(poll, feed, offset, epoch, next) {
    this.poll = poll
    this.feed = feed
    this.offset = offset
    this.epoch = epoch
    this.next = next
  }

  /** For the cursor. */
  get name() {
    return this.feed.name
  }

  get hasPending() {
    return this.lost || this.entries.length > 0 || (this.seq >= 0 && this.seq < this.feed.seq)
  }

  /** @returns {readonly Entry[]} entries to send; read when the poll is answered, so a waiting poll keeps none */
  get pending() {
    if (this.entries.length > 0) return this.entries
    return this.seq < 0 || this.seq === this.feed.seq ? NO_ENTRIES : this.feed.entriesAfter(this.seq)
  }

  /** The position is located. @param {number} seq @param {number} offset @param {string} epoch */
  located(seq, offset, epoch) {
    this.seq = seq
    this.offset = offset
    this.epoch = epoch
    this.poll.positionLocated()
  }

  /**
   * The position is located, with entries to send.
   * @param {Entry[]} entries
   * @param {number} offset before them
   * @param {string} epoch
   */
  recovered(entries, offset, epoch) {
    this.entries = entries
    this.offset = offset
    this.epoch = epoch
    this.poll.positionLocated()
  }
}

/** A request that waits for its answer. Keeps its position only, because many polls wait at the same time. */
export class Poll extends Timer {
  /** @type {PollPosition | null} linked list of its channels */
  first = null
  /** Positions not located yet. */
  unlocated = 0
  /** Timed out: answer as soon as all positions are located. */
  due = false

  /** @param {Polls} polls @param {Exchange} exchange @param {Readonly<Record<string, string>>} head of the answer */
  constructor(polls, exchange, head) {
    super()
    this.polls = polls
    /** @type {Exchange | null} null: answered, or its client has left */
    this.exchange = exchange
    this.head = head
  }

  get hasPending() {
    for (let position = this.first; position !== null; position = position.next)
      if (position.hasPending) return true
    return false
  }

  positionLocated() {
    if (--this.unlocated === 0) this.polls.settle(this, false)
  }

  onTimer() {
    this.polls.timedOut(this)
  }

  /** Called by the exchange: the client has left. */
  abandoned() {
    this.polls.remove(this)
  }
}
