/**
 * @typedef {import('./feed.js').Feed} Feed
 * @typedef {import('./feed.js').Entry} Entry
 */

/** Offsets of places that are not found yet. */
export const Begin = Object.freeze({ NOW: -1, EARLIEST: -2 })

/** What there is to say may change until it is said; nothing of it is kept while a poll waits. @type {Entry[]} */
const NO_ENTRIES = []

/**
 * Where a poll stands in one of its channels.
 */
export class Place {
  /** What comes after this number, in the feed's own count, is new to the poll. -1: not found yet. */
  seq = -1
  /** @type {Entry[]} read from history for this poll: they come before what the feed has */
  entries = NO_ENTRIES
  /** Something between its cursor and what is told now is gone. */
  lost = false

  /**
   * @param {Poll} poll
   * @param {Feed} feed
   * @param {number} offset what the client has; 0 where there is no history
   * @param {string} epoch '' = whatever it is
   * @param {Place | null} next of the same poll
   */
  constructor(poll, feed, offset, epoch, next) {
    this.poll = poll
    this.feed = feed
    this.offset = offset
    this.epoch = epoch
    this.next = next
  }

  /** What a cursor is made of. */
  get name() {
    return this.feed.name
  }

  /** Whether there is something to say. */
  get hasNews() {
    return this.lost || this.entries.length > 0 || (this.seq >= 0 && this.seq < this.feed.seq)
  }

  /** @returns {readonly Entry[]} what there is to say */
  get news() {
    if (this.entries.length > 0) return this.entries
    return this.seq < 0 || this.seq === this.feed.seq ? NO_ENTRIES : this.feed.after(this.seq)
  }

  /**
   * The place is found.
   * @param {number} seq
   * @param {number} offset
   * @param {string} epoch
   */
  stand(seq, offset, epoch) {
    this.seq = seq
    this.offset = offset
    this.epoch = epoch
    this.poll.found()
  }

  /**
   * The place is found, and there is something to say from there on.
   * @param {Entry[]} entries
   * @param {number} offset before them
   * @param {string} epoch
   */
  tell(entries, offset, epoch) {
    this.entries = entries
    this.offset = offset
    this.epoch = epoch
    this.poll.found()
  }
}

/**
 * A request that waits for its answer. There may be very many of them: nothing of the request is kept but where it
 * stands.
 */
export class Poll {
  /** @type {Place | null} the first one of its channels */
  first = null
  /** Places that are not found yet. */
  missing = 0
  /** Its time is up: answered as soon as all places are found. */
  due = false
  /** Its time, and its place in the wheel, to which both belong. */
  dueAt = 0
  slot = -1

  /**
   * @param {import('./polls.js').Polls} polls
   * @param {import('../../server/contract.js').Exchange} exchange
   * @param {Readonly<Record<string, string>>} head of the answer
   */
  constructor(polls, exchange, head) {
    this.polls = polls
    /** @type {import('../../server/contract.js').Exchange | null} null: answered, or its client has left */
    this.exchange = exchange
    this.head = head
  }

  get hasNews() {
    for (let place = this.first; place !== null; place = place.next) if (place.hasNews) return true
    return false
  }

  /** One more place is found. */
  found() {
    if (--this.missing === 0) this.polls.settled(this)
  }

  /** The client has left: what an exchange asks of its waiter. */
  abandoned() {
    this.polls.remove(this)
  }
}
