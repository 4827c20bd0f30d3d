import { Timer } from '../../timer-wheel.js'

/**
 * @typedef {import('./feed.js').Feed} Feed
 * @typedef {import('./feed.js').Entry} Entry
 */

/** Offsets of places without a position. */
export const Begin = Object.freeze({ NOW: -1, EARLIEST: -2 })

/** @type {Entry[]} */
const NO_ENTRIES = []

/** Position of a poll in one of its channels. */
export class Place {
  /** Last entry that the poll has, in the feed's own count; -1: not found yet. */
  seq = -1
  /** @type {Entry[]} read from history for this poll; they precede the feed's entries */
  entries = NO_ENTRIES
  /** Publications after its cursor are no longer in history. */
  lost = false

  /**
   * @param {Poll} poll
   * @param {Feed} feed
   * @param {number} offset last offset that the client has; 0 without history
   * @param {string} epoch '' = any
   * @param {Place | null} next of the same poll
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

  get hasNews() {
    return this.lost || this.entries.length > 0 || (this.seq >= 0 && this.seq < this.feed.seq)
  }

  /** @returns {readonly Entry[]} entries to send; read when the poll is answered, so a waiting poll keeps none */
  get news() {
    if (this.entries.length > 0) return this.entries
    return this.seq < 0 || this.seq === this.feed.seq ? NO_ENTRIES : this.feed.after(this.seq)
  }

  /** The place is found. @param {number} seq @param {number} offset @param {string} epoch */
  located(seq, offset, epoch) {
    this.seq = seq
    this.offset = offset
    this.epoch = epoch
    this.poll.found()
  }

  /**
   * The place is found, with entries to send.
   * @param {Entry[]} entries
   * @param {number} offset before them
   * @param {string} epoch
   */
  recovered(entries, offset, epoch) {
    this.entries = entries
    this.offset = offset
    this.epoch = epoch
    this.poll.found()
  }
}

/** A request that waits for its answer. Keeps its position only, because many polls wait at the same time. */
export class Poll extends Timer {
  /** @type {Place | null} linked list of its channels */
  first = null
  /** Places not found yet. */
  missing = 0
  /** Timed out: answer as soon as all places are found. */
  due = false

  /**
   * @param {import('./polls.js').Polls} polls
   * @param {import('../../server/contract.js').Exchange} exchange
   * @param {Readonly<Record<string, string>>} head of the answer
   */
  constructor(polls, exchange, head) {
    super()
    this.polls = polls
    /** @type {import('../../server/contract.js').Exchange | null} null: answered, or its client has left */
    this.exchange = exchange
    this.head = head
  }

  get hasNews() {
    for (let place = this.first; place !== null; place = place.next) if (place.hasNews) return true
    return false
  }

  found() {
    if (--this.missing === 0) this.polls.settled(this)
  }

  onTimer() {
    this.polls.timedOut(this)
  }

  /** Called by the exchange: the client has left. */
  abandoned() {
    this.polls.remove(this)
  }
}
