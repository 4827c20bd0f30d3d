import { errors } from '../../../base/errors.js'
import { Timer } from '../../../base/timers.js'
import { WANTS_NOTHING } from '../../session/plan.js'

/** @import { Target } from '../../../channels/broker/target.js' */
/** @import { Publication, SubscribeAnswer } from '../../../channels/broker/contract.js' */
/** @import { Channel, Cohort } from '../../../channels/hub/channel.js' */
/** @import { Subscriber } from '../../../channels/hub/hub.js' */
/** @import { PollGroup } from '../../../channels/hub/targets.js' */
/** @import { PollPosition, Polls } from './polls.js' */

/**
 * An encoded publication: byte string; offset 0 = not in history.
 * @typedef {{text: string, offset: number, tags: Record<string, string> | null, target: Target | null}} Entry
 */

/** Offsets of clients without a position. */
export const StartOffset = Object.freeze({ NOW: -1, EARLIEST: -2 })

const State = Object.freeze({ NEW: 0, OPENING: 1, LIVE: 2, CLOSED: 3 })

const MAX_KEPT = 256
/** The maximum items of a batch: without history there is no other source. */
const MAX_KEPT_WITHOUT_HISTORY = 10_000
const MAX_KEPT_BYTES = 1024 * 1024
/** Maximum bytes of publications per history read. */
const MAX_READ = 1024 * 1024

/** @param {Publication} publication @returns {number} preceding position */
const before = ({ offset, previous = offset - 1 }) => previous

/**
 * A channel of this worker for one-way polls: one hub subscriber for all polls.
 *
 *            first         seq
 *      ......[n-2][n-1][n]       entries, in the feed's numbering, which includes publications without history
 *                  ^ a poll at this position gets [n-1] and [n]
 *
 * The feed stays subscribed for a while without polls: up-to-date clients poll again without a broker call. Missed
 * publications are read from history. Entries are kept until the waiting polls are answered.
 * @implements {Subscriber}
 */
export class Feed extends Timer {
  offset = 0
  epoch = ''
  /** @type {Entry[]} */
  entries = []
  first = 1
  #bytes = 0
  /** @type {Set<PollPosition>} positions of waiting polls, ordered by `seq` */
  waiting = new Set()
  /** Positions of unanswered polls. */
  count = 0
  scheduled = false
  #state = /** @type {number} */ (State.NEW)
  /** @type {Channel | null} */
  #channel = null
  /** @type {Cohort | null} */
  #cohort = null
  /** @type {PollPosition[]} positions waiting for a live feed */
  #opening = []
  /** @type {Map<string, PollPosition[]> | null} position -> positions that share a pending history read */
  #reads = null
  #polls

  /**
   * @param {Polls} polls @param {string} name @param {boolean} positioned whether the channel keeps history
   * @param {number} metaTtl ms
   */
  constructor(polls, name, positioned, metaTtl) {
    super()
    this.#polls = polls
    this.name = name
    this.positioned = positioned
    this.metaTtl = metaTtl
  }

  get seq() {
    return this.first + this.entries.length - 1
  }

  /** For publications with a target; null: no poll waits. @returns {PollGroup | null} */
  get group() {
    return this.#cohort !== null && this.count > 0
      ? { subscriber: this, cohort: this.#cohort, clients: this.count }
      : null
  }

  addPoll() {
    if (++this.count > 1) this.#addClients(1)
  }

  /** @param {PollPosition} position */
  removePoll(position) {
    this.waiting.delete(position)
    if (--this.count > 0) return this.#addClients(-1)
    this.#dropEntries()
    this.#polls.idle(this)
  }

  /** @param {number} change in the client count of the hub's cohort */
  #addClients(change) {
    if (this.#channel && this.#cohort) this.#polls.hub.addClients(this.#channel, this.#cohort, change)
  }

  /** Locates a position, now or later. @param {PollPosition} position */
  locate(position) {
    if (this.#state !== State.LIVE) {
      this.#opening.push(position)
      if (this.#state === State.NEW) this.#open(position.offset, position.epoch)
      return
    }
    const { offset, epoch } = position
    if (!this.positioned || offset === StartOffset.NOW)
      return position.located(this.seq, this.offset, this.epoch)
    if (offset !== this.offset) this.#flush()
    if (offset === this.offset && (epoch === this.epoch || epoch === ''))
      return position.located(this.seq, offset, this.epoch)
    this.#read(position)
  }

  /** @param {number} seq @returns {Entry[]} all entries after `seq`; none if some were dropped */
  entriesAfter(seq) {
    const from = seq + 1 - this.first
    if (!this.hasAllAfter(seq)) return []
    return from <= 0 ? this.entries : this.entries.slice(from)
  }

  /** @param {number} seq @returns {boolean} whether it has all entries after `seq`; true without history */
  hasAllAfter(seq) {
    return !this.positioned || seq + 1 >= this.first
  }

  /** @param {PollPosition} position whose next entries were dropped */
  relocate(position) {
    this.waiting.delete(position)
    position.seq = -1
    position.poll.unlocated++
    this.locate(position)
  }

  onTimer() {
    this.#polls.closeFeed(this)
  }

  /** Subscribes. @param {number} offset to recover from, or a StartOffset @param {string} epoch */
  #open(offset, epoch) {
    const { positioned, metaTtl } = this
    this.#state = State.OPENING
    const recover =
      positioned && offset !== StartOffset.NOW
        ? { offset: Math.max(0, offset), epoch, limit: this.#polls.pageSize, maxBytes: MAX_READ }
        : null
    const wants = { ...WANTS_NOTHING, position: positioned, recover, metaTtl }
    this.#polls.hub.prepare(this.name, wants, (error, channel, answer) => {
      if (this.#state === State.CLOSED) {
        if (!error) this.#polls.hub.release(channel)
        return
      }
      if (error) return this.#fail()
      this.#joined(channel, answer)
      // Contains the missed publications of polls at this position.
      const { publications } = answer
      const whole = recover && answer.recovered && publications.length > 0
      const entries = whole ? this.#encode(publications) : []
      for (const position of this.#opening.splice(0)) {
        if (position.poll.exchange === null) continue
        if (whole && position.offset === offset && position.epoch === epoch)
          position.recovered(entries, before(publications[0]), answer.epoch)
        else this.locate(position)
      }
    })
  }

  /** Sends the channel's batch, which gives the feed its position. */
  #flush() {
    if (this.#channel !== null) this.#polls.hub.batches.flush(this.#channel, 'subscribe')
  }

  /** @param {Channel} channel @param {SubscribeAnswer} answer */
  #joined(channel, { offset, epoch }) {
    const { positioned } = this
    this.#state = State.LIVE
    this.#channel = channel
    this.#flush()
    this.#cohort = this.#polls.hub.join(this, channel, { positioned, events: false, filter: null }).cohort
    if (this.count > 1) this.#addClients(this.count - 1)
    this.#dropEntries()
    this.offset = offset
    this.epoch = epoch
  }

  #fail() {
    this.#state = State.NEW
    for (const position of this.#opening.splice(0)) this.#polls.fail(position.poll)
  }

  /** @param {Publication[]} publications */
  #encode(publications) {
    const { codec } = this
    return publications.map(publication => ({
      text: codec.text(this.name, publication),
      offset: publication.offset,
      tags: publication.tags ?? null,
      target: publication.target ?? null,
    }))
  }

  /** Reads history after a position; equal positions share a read. @param {PollPosition} position */
  #read(position) {
    const { offset, epoch } = position
    const key = `${offset} ${epoch}`
    this.#reads ??= new Map()
    const sharing = this.#reads.get(key)
    if (sharing) {
      sharing.push(position)
      return
    }
    const positions = [position]
    this.#reads.set(key, positions)
    const filter = {
      limit: this.#polls.pageSize,
      sinceOffset: offset === StartOffset.EARLIEST ? undefined : offset,
      sinceEpoch: epoch,
      maxBytes: MAX_READ,
    }
    const finish = () => {
      this.#reads?.delete(key)
      if (this.#reads?.size === 0) this.#reads = null
      return positions.filter(({ poll }) => poll.exchange !== null)
    }
    this.#polls.broker.pubsub.history(this.name, filter, this.metaTtl).then(
      answer => this.#onHistory(finish(), offset, answer),
      error => {
        for (const position of finish()) {
          if (error !== errors.unrecoverablePosition) this.#polls.fail(position.poll)
          else {
            // Continues with all publications of the new epoch.
            position.lost = true
            position.offset = StartOffset.EARLIEST
            position.epoch = ''
            this.locate(position)
          }
        }
      },
    )
  }

  /**
   * @param {PollPosition[]} positions all at `offset`
   * @param {number} offset @param {{publications: Publication[], offset: number, epoch: string}} answer
   */
  #onHistory(positions, offset, { publications, offset: top, epoch }) {
    if (publications.length === 0) this.#flush()
    const start = publications.length > 0 ? before(publications[0]) : top
    const lost = offset !== StartOffset.EARLIEST && start !== offset
    if (lost) for (const position of positions) position.lost = true
    if (publications.length > 0) {
      const entries = this.#encode(publications)
      for (const position of positions) position.recovered(entries, start, epoch)
      return
    }
    // Higher offset: this worker missed publications.
    if (this.#state === State.LIVE && (epoch !== this.epoch || top > this.offset)) this.positionLost()
    for (const position of positions) {
      position.offset = top
      position.epoch = epoch
      this.locate(position)
    }
  }

  /** @param {Publication} publication @param {string} text encoded */
  add({ offset, epoch, tags = null, target = null }, text) {
    if (offset > 0) {
      this.offset = offset
      this.epoch = epoch
    }
    if (this.count === 0) {
      this.first++
      return
    }
    this.entries.push({ text, offset, tags, target })
    this.#bytes += text.length
    const max = this.positioned ? MAX_KEPT : MAX_KEPT_WITHOUT_HISTORY
    // Keep at least one entry of any length.
    while (this.entries.length > max || (this.#bytes > MAX_KEPT_BYTES && this.entries.length > 1)) {
      this.#bytes -= /** @type {Entry} */ (this.entries.shift()).text.length
      this.first++
    }
  }

  /** All waiting polls with new entries have been answered. */
  answered() {
    // Positions not located yet need the entries.
    if (this.count === this.waiting.size) this.#dropEntries()
  }

  #dropEntries() {
    this.first += this.entries.length
    this.entries = []
    this.#bytes = 0
  }

  get codec() {
    return this.#polls.codec
  }

  /** @param {string} topic */
  follow(topic) {
    this.#polls.fanout.follow(this.#polls, this, topic)
  }

  /** @param {string} topic */
  unfollow(topic) {
    this.#polls.fanout.unfollow(this.#polls, this, topic)
  }

  /** This worker missed publications: locates all positions again. */
  positionLost() {
    const { offset, epoch } = this
    this.#leaveHub()
    for (const position of this.waiting) {
      position.seq = -1
      position.poll.unlocated++
      this.#opening.push(position)
    }
    this.waiting.clear()
    this.#open(offset, epoch)
  }

  #leaveHub() {
    if (this.#channel === null || this.#cohort === null) return
    if (this.count > 1) this.#addClients(1 - this.count)
    this.#polls.hub.leave(this, this.#channel, this.#cohort, null)
    this.#channel = this.#cohort = null
  }

  close() {
    this.#leaveHub()
    this.#state = State.CLOSED
    this.#dropEntries()
  }
}
