import { Timer } from '../../../base/timers.js'
import { reaches } from '../../../channels/broker/target.js'
import { Feed } from './feed.js'
import { refusals } from './refusal.js'

/** @import { Namespace } from '../../auth/channel-rules.js' */
/** @import { Identity } from '../../auth/tokens.js' */
/** @import { Filter } from '../../protocol/filter.js' */
/** @import { Publication } from '../../../channels/broker/contract.js' */
/** @import { PollJsonCodec } from '../../protocol/uni-json.js' */
/** @import { Exchange } from '../../server/contract.js' */
/** @import { WorkerContext } from '../../session/context.js' */
/** @import { Fanout } from '../fanout.js' */
/** @import { Carrier } from '../index.js' */
/** @import { Cursors } from './cursor.js' */
/** @import { Entry } from './feed.js' */
/** @import { Refusal } from './refusal.js' */

/** Polls answered per turn of the event loop: about 2 ms. */
const MAX_PER_TURN = 128
/** Subscription lifetime of a channel without polls, ms. */
const IDLE_MS = 3000
const MAX_IDLE = 10_000
/** Response size limit, bytes; checked before each publication. The next poll gets the rest. */
const MAX_ANSWER_BYTES = 1024 * 1024
/** Maximum publications per response without a configured limit. */
const MAX_PUBLICATIONS = 1000

/** @type {Entry[]} */
const NO_ENTRIES = []

export class PollPosition {
  /** The poll's last entry, in the feed's numbering; -1: not located yet. */
  seq = -1
  /** @type {Entry[]} from history, before the feed's entries */
  entries = NO_ENTRIES
  /** History no longer has all publications after the cursor. */
  lost = false

  /**
   * @param {Poll} poll @param {Feed} feed @param {number} offset the client's last offset; 0 without history
   * @param {string} epoch '' = any @param {Filter | null} filter the backend's
   * @param {PollPosition | null} next in the same poll
   */
  constructor(poll, feed, offset, epoch, filter, next) {
    this.poll = poll
    this.feed = feed
    this.offset = offset
    this.epoch = epoch
    this.filter = filter
    this.next = next
  }

  get hasPending() {
    return this.lost || this.entries.length > 0 || (this.seq >= 0 && this.seq < this.feed.seq)
  }

  /** @returns {readonly Entry[]} entries to send, read on response: waiting polls keep none */
  get pending() {
    if (this.entries.length > 0) return this.entries
    return this.seq < 0 || this.seq === this.feed.seq ? NO_ENTRIES : this.feed.entriesAfter(this.seq)
  }

  /** @param {Entry} entry @returns {boolean} whether its target, if any, includes the poll's user */
  isWithin({ target }) {
    return target === null || reaches(target, this.poll.user, '')
  }

  /** Skips the pending entries if the poll receives none of them. @returns {boolean} whether it has */
  skip() {
    const { feed, pending } = this
    if (this.lost || pending.length === 0 || pending.some(entry => this.isWithin(entry))) return false
    this.seq = feed.seq
    for (const { offset } of pending) if (offset > 0) this.offset = offset
    // Waiting positions are ordered.
    feed.waiting.delete(this)
    feed.waiting.add(this)
    return true
  }

  /** @param {number} seq @param {number} offset @param {string} epoch */
  located(seq, offset, epoch) {
    this.seq = seq
    this.offset = offset
    this.epoch = epoch
    this.poll.positionLocated()
  }

  /** Located, with entries to send. @param {Entry[]} entries @param {number} offset preceding @param {string} epoch */
  recovered(entries, offset, epoch) {
    this.entries = entries
    this.offset = offset
    this.epoch = epoch
    this.poll.positionLocated()
  }
}

/** A waiting request. Keeps only positions: many polls wait concurrently. */
class Poll extends Timer {
  /** @type {PollPosition | null} linked list of its channels */
  first = null
  unlocated = 0
  /** Timed out: responds once all positions are located. */
  due = false

  /**
   * @param {Polls} polls @param {Exchange} exchange @param {Readonly<Record<string, string>>} head response headers
   * @param {Identity} identity
   */
  constructor(polls, exchange, head, { user, stamp }) {
    super()
    this.polls = polls
    this.user = user
    this.stamp = stamp
    /** @type {Exchange | null} null: answered, or client disconnected */
    this.exchange = exchange
    this.head = head
    this.user = user
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

  abandoned() {
    this.polls.remove(this)
  }
}

/** @typedef {{body: Buffer, publications: number, targeted: boolean}} Composed `targeted`: for the polls of one user */
/**
 * The last response: polls at the same position share its body.
 * @typedef {Pick<PollPosition, 'feed' | 'entries' | 'offset' | 'epoch' | 'seq' | 'lost' | 'filter'> &
 *   {end: number, user: string, composed: Composed}} Answer `end`: its `feed.seq`
 */

/**
 * One-way polls of this worker and their channels. Responses are sent in slices: ten thousand polls that end together
 * do not block the event loop. A response has all publications of one turn of the event loop.
 * @implements {Carrier}
 */
export class Polls {
  joins = false
  hub
  broker
  fanout
  codec
  #context
  #traffic
  #cursors
  #clock
  /** @type {Map<string, Feed>} */
  #feeds = new Map()
  /** @type {Set<Feed>} feeds without polls, longest idle first */
  #idle = new Set()
  /** @type {Feed[]} feeds with new entries */
  #updated = []
  /** @type {Poll[]} polls to answer, with or without publications */
  #ready = []
  #scheduled = false
  #timers
  #slice = () => this.#runSlice()
  /** The worker shuts down: polls do not wait. */
  #closing = false
  /** @type {Answer | null} */
  #last = null

  /** @param {WorkerContext} context @param {Fanout} fanout @param {Cursors} cursors @param {PollJsonCodec} codec */
  constructor(context, fanout, cursors, codec) {
    const { hub, broker, clock, timers, traffic } = context
    this.#context = context
    this.hub = hub
    this.broker = broker
    this.fanout = fanout
    this.codec = codec
    this.#traffic = traffic.of('uni_poll')
    this.#cursors = cursors
    this.#clock = clock
    this.#timers = timers
    hub.targets.polls = channel => this.#feeds.get(channel)?.group ?? null
  }

  get pageSize() {
    return this.#context.config.client.history_max_publication_limit || MAX_PUBLICATIONS
  }

  /**
   * Responds to a poll on publications or timeout.
   * @param {Exchange} exchange @param {Readonly<Record<string, string>>} head
   * @param {{name: string, namespace: Namespace, filter: Filter | null, offset: number, epoch: string}[]} channels
   * @param {Identity} identity @param {number} timeout ms
   */
  begin(exchange, head, channels, identity, timeout) {
    const poll = new Poll(this, exchange, head, identity)
    // Counted as a connection, not a connect: the client polls again immediately.
    this.#traffic.json++
    poll.due = timeout === 0
    // Reversed: the linked list is in request order.
    for (const { name, namespace, filter, offset, epoch } of channels.toReversed()) {
      const feed = this.#feed(name, namespace)
      feed.addPoll()
      poll.first = new PollPosition(poll, feed, offset, epoch, filter, poll.first)
    }
    // + 1: not settled until `locate` is called for all positions.
    poll.unlocated = channels.length + 1
    for (let position = poll.first; position !== null; position = position.next)
      position.feed.locate(position)
    if (!poll.due) this.#timers.schedule(poll, this.#clock() + timeout)
    if (--poll.unlocated === 0) this.settle(poll, true)
    if (poll.exchange !== null) exchange.waiter = poll
  }

  /** @param {string} name @param {Namespace} namespace @returns {Feed} */
  #feed(name, { historyOn, metaTtl }) {
    let feed = this.#feeds.get(name)
    // A reload may switch history on or off.
    if (feed === undefined || feed.positioned !== historyOn) {
      this.#feeds.set(name, (feed = new Feed(this, name, historyOn, metaTtl)))
    } else {
      feed.metaTtl = metaTtl
      if (feed.count === 0) {
        this.#idle.delete(feed)
        this.#timers.cancel(feed)
      }
    }
    return feed
  }

  /** @param {Poll} poll with located positions @param {boolean} now immediately instead of in a slice */
  settle(poll, now) {
    if (poll.exchange === null) return
    if (!poll.due && !this.#closing && !poll.hasPending) {
      for (let position = poll.first; position !== null; position = position.next)
        position.feed.waiting.add(position)
    } else if (now) this.#answer(poll)
    else this.#answerSoon(poll)
  }

  /** @param {Poll} poll */
  #answerSoon(poll) {
    this.#ready.push(poll)
    this.#schedule()
  }

  /** @param {Poll} poll answered, or client disconnected */
  remove(poll) {
    poll.exchange = null
    this.#traffic.json--
    this.#timers.cancel(poll)
    for (let position = poll.first; position !== null; position = position.next)
      position.feed.removePoll(position)
  }

  /** The broker is unavailable. @param {Poll} poll */
  fail(poll) {
    this.#refuse(poll, refusals.unavailable)
  }

  /** @param {Poll} poll @param {Refusal} refusal */
  #refuse(poll, { status, head: more, body }) {
    const { exchange, head } = poll
    if (exchange === null) return
    this.remove(poll)
    exchange.waiter = null
    exchange.reply(status, { ...head, ...more }, body)
  }

  /** Refuses the waiting polls that the denylist denies. */
  denied() {
    const { denylist } = this.#context
    for (const { waiting } of this.#feeds.values()) {
      for (const { poll } of [...waiting]) {
        const { user, stamp } = poll
        if (denylist.blocks(user)) this.#refuse(poll, refusals.blocked)
        else if (stamp && denylist.rejects(stamp, user, '')) this.#refuse(poll, refusals.revoked)
      }
    }
  }

  /** @param {Feed} feed without polls */
  idle(feed) {
    this.#idle.add(feed)
    this.#timers.schedule(feed, this.#clock() + IDLE_MS)
    if (this.#idle.size <= MAX_IDLE) return
    for (const oldest of this.#idle) return this.closeFeed(oldest)
  }

  /** @param {Feed} feed without polls */
  closeFeed(feed) {
    this.#idle.delete(feed)
    this.#timers.cancel(feed)
    if (this.#feeds.get(feed.name) === feed) this.#feeds.delete(feed.name)
    feed.close()
  }

  /** @param {Poll} poll */
  timedOut(poll) {
    poll.due = true
    if (poll.unlocated === 0) this.#answerSoon(poll)
  }

  /** @returns {Poll[]} waiting polls, for `release` */
  close() {
    this.#closing = true
    this.hub.batches.flushAll()
    const polls = new Set()
    for (const { waiting } of this.#feeds.values()) for (const { poll } of waiting) polls.add(poll)
    return [...polls]
  }

  /** @param {Poll} poll of a client that polls another worker */
  release(poll) {
    if (poll.exchange !== null) this.#answerSoon(poll)
  }

  /** @type {Carrier['deliver']} */
  deliver(members, message, publication) {
    let clients = 0
    for (const feed of members) {
      // A feed without polls counts as one client.
      clients += Math.max(1, feed.count)
      const text = /** @type {Buffer} */ (message).toString('latin1')
      feed.add(/** @type {Publication} */ (publication), text)
      if (feed.scheduled || feed.count === 0) continue
      feed.scheduled = true
      this.#updated.push(feed)
      this.#schedule()
    }
    return clients
  }

  #schedule() {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(this.#slice)
  }

  #runSlice() {
    this.#scheduled = false
    const ready = this.#ready.splice(0, MAX_PER_TURN)
    for (const poll of ready) this.#answer(poll)
    let left = MAX_PER_TURN - ready.length
    let done = 0
    for (const feed of this.#updated) {
      left = this.#answerWaiting(feed, left)
      if (left === 0) break
      feed.scheduled = false
      feed.answered()
      done++
    }
    this.#updated.splice(0, done)
    if (this.#ready.length > 0 || this.#updated.length > 0) this.#schedule()
    else this.#last = null
  }

  /** @param {Feed} feed with new entries @param {number} max @returns {number} rest of `max`; 0: polls may remain */
  #answerWaiting(feed, max) {
    let left = max
    for (const position of feed.waiting) {
      if (left === 0 || position.seq === feed.seq) break
      left--
      if (!feed.hasAllAfter(position.seq)) feed.relocate(position)
      else if (!position.skip()) this.#answer(position.poll)
    }
    return left
  }

  /** @param {Poll} poll with located positions */
  #answer(poll) {
    const { exchange, head } = poll
    if (exchange === null) return
    const { body, publications } = this.#body(/** @type {PollPosition} */ (poll.first))
    this.#traffic.sent(publications, body.length)
    this.remove(poll)
    exchange.waiter = null
    exchange.reply(200, head, body)
  }

  /** @param {PollPosition} position first of a poll @returns {Composed} */
  #body(position) {
    if (position.next !== null) return this.#compose(position)
    const { feed, entries, offset, epoch, seq, lost, filter } = position
    const { user } = position.poll
    const end = feed.seq
    const last = this.#last
    const same =
      last !== null &&
      last.feed === feed &&
      last.entries === entries &&
      last.offset === offset &&
      last.epoch === epoch &&
      last.seq === seq &&
      last.end === end &&
      last.lost === lost &&
      last.filter?.key === filter?.key &&
      (last.user === user || !last.composed.targeted)
    if (same) return last.composed
    const composed = this.#compose(position)
    this.#last = { feed, entries, offset, epoch, seq, end, lost, filter, user, composed }
    return composed
  }

  /** @param {PollPosition} first of a poll @returns {Composed} */
  #compose(first) {
    let list = ''
    let publications = 0
    let targeted = false
    const lost = []
    const ends = []
    for (
      let position = /** @type {PollPosition | null} */ (first);
      position !== null;
      position = position.next
    ) {
      const { feed, epoch, filter } = position
      let { offset } = position
      if (position.lost) lost.push(feed.name)
      if (list.length < MAX_ANSWER_BYTES) {
        for (const entry of position.pending) {
          if (entry.target !== null) targeted = true
          if ((filter === null || filter.matches(entry.tags)) && position.isWithin(entry)) {
            list += list === '' ? entry.text : `,${entry.text}`
            publications++
          }
          if (entry.offset > 0) offset = entry.offset
          if (list.length >= MAX_ANSWER_BYTES) break
        }
      }
      if (feed.positioned) ends.push({ name: feed.name, offset, epoch })
    }
    const tail = lost.length > 0 ? `,"lost":${Buffer.from(JSON.stringify(lost)).toString('latin1')}` : ''
    const text = `{"publications":[${list}]${tail},"cursor":"${this.#cursors.write(ends)}"}`
    return { body: Buffer.from(text, 'latin1'), publications, targeted }
  }
}
