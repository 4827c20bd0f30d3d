import { Feed } from './feed.js'
import { Poll, PollPosition } from './poll.js'
import { RETRY, refusals } from './refusal.js'

/** @import { Namespace } from '../../auth/channel-rules.js' */
/** @import { Publication } from '../../../channels/broker/contract.js' */
/** @import { PollJsonCodec } from '../../protocol/uni-json.js' */
/** @import { Exchange } from '../../server/contract.js' */
/** @import { WorkerContext } from '../../session/context.js' */
/** @import { Fanout } from '../fanout.js' */
/** @import { Carrier } from '../index.js' */
/** @import { Cursors } from './cursor.js' */
/** @import { Entry } from './feed.js' */

/**
 * @typedef {object} ChannelRequest one channel of a poll
 * @property {string} name
 * @property {Namespace} namespace
 * @property {number} offset last offset that the client has, or a StartOffset
 * @property {string} epoch
 */

/** Polls answered in one turn of the event loop, about 2 ms of work. */
const MAX_PER_TURN = 128
/** How long a channel without polls stays subscribed, ms. */
const IDLE_MS = 3000
const MAX_IDLE = 10_000
/** Bytes after which no publication is added to an answer; the next poll gets the rest. */
const MAX_ANSWER_BYTES = 1024 * 1024
/** Publications in one answer if the configuration sets no limit. */
const MAX_PUBLICATIONS = 1000

/**
 * The last answer: polls at the same position share its body.
 *
 * @typedef {object} Answer
 * @property {Feed} feed
 * @property {readonly Entry[]} entries
 * @property {number} offset
 * @property {string} epoch
 * @property {number} seq
 * @property {number} end `feed.seq` at that time
 * @property {boolean} lost
 * @property {Composed} composed
 *
 * @typedef {{body: Buffer, publications: number}} Composed
 */

/**
 * The one-way polls of this worker and their channels. Polls with new entries are answered in slices, so that ten
 * thousand polls that end together do not block the event loop. One answer carries all publications of an event-loop
 * turn.
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
  /** @type {Set<Feed>} feeds without polls, the longest idle first */
  #idle = new Set()
  /** @type {Feed[]} feeds with new entries */
  #updated = []
  /** @type {Poll[]} polls to answer, with or without publications */
  #ready = []
  #scheduled = false
  #timers
  #slice = () => this.#runSlice()
  /** The worker ends: polls do not wait. */
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
  }

  /** Publications per history read. */
  get pageSize() {
    return this.#context.config.client.history_max_publication_limit || MAX_PUBLICATIONS
  }

  // Polls

  /**
   * Answers a poll when there are publications, or when it times out.
   * @param {Exchange} exchange
   * @param {Readonly<Record<string, string>>} head
   * @param {ChannelRequest[]} channels
   * @param {number} timeout ms
   */
  begin(exchange, head, channels, timeout) {
    const poll = new Poll(this, exchange, head)
    // Counted as a connection, not as a connect, because the client polls again at once.
    this.#traffic.json++
    poll.due = timeout === 0
    // Reversed, so that the linked list has the order of the request.
    for (const { name, namespace, offset, epoch } of channels.toReversed()) {
      const feed = this.#feed(name, namespace)
      feed.addPoll()
      poll.first = new PollPosition(poll, feed, offset, epoch, poll.first)
    }
    // + 1: the poll is not settled before `locate` was called for every position.
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
    // A configuration reload may switch the history of the channel on or off.
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

  /** @param {Poll} poll all of its positions are located @param {boolean} now answer at once instead of in a slice */
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

  /** @param {Poll} poll answered, or its client has left */
  remove(poll) {
    poll.exchange = null
    this.#traffic.json--
    this.#timers.cancel(poll)
    for (let position = poll.first; position !== null; position = position.next)
      position.feed.removePoll(position)
  }

  /** The broker is unavailable. @param {Poll} poll */
  fail(poll) {
    const { exchange, head } = poll
    if (exchange === null) return
    this.remove(poll)
    exchange.reply(refusals.unavailable.status, { ...head, ...RETRY }, refusals.unavailable.body)
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

  /**
   * From now on polls are answered without waiting: their clients poll another worker.
   * @returns {Poll[]} those that wait, for `release`
   */
  close() {
    this.#closing = true
    this.hub.batches.flushAll()
    const polls = new Set()
    for (const { waiting } of this.#feeds.values()) for (const { poll } of waiting) polls.add(poll)
    return [...polls]
  }

  /** @param {Poll} poll its client polls another worker */
  release(poll) {
    if (poll.exchange !== null) this.#answerSoon(poll)
  }

  // Answers

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

  /**
   * @param {Feed} feed with new entries @param {number} most polls to answer
   * @returns {number} rest of `most`; 0: more polls may be waiting
   */
  #answerWaiting(feed, most) {
    let left = most
    for (const position of feed.waiting) {
      if (left === 0 || position.seq === feed.seq) break
      left--
      if (feed.hasAllAfter(position.seq)) this.#answer(position.poll)
      else feed.relocate(position)
    }
    return left
  }

  /** @param {Poll} poll all of its positions are located */
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
    const { feed, entries, offset, epoch, seq, lost } = position
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
      last.lost === lost
    if (same) return last.composed
    const composed = this.#compose(position)
    this.#last = { feed, entries, offset, epoch, seq, end, lost, composed }
    return composed
  }

  /** @param {PollPosition} first of a poll @returns {Composed} */
  #compose(first) {
    let list = ''
    let publications = 0
    const lost = []
    const ends = []
    for (
      let position = /** @type {PollPosition | null} */ (first);
      position !== null;
      position = position.next
    ) {
      const { feed, epoch } = position
      let { offset } = position
      if (position.lost) lost.push(feed.name)
      if (list.length < MAX_ANSWER_BYTES) {
        for (const entry of position.pending) {
          list += list === '' ? entry.text : `,${entry.text}`
          publications++
          if (entry.offset > 0) offset = entry.offset
          if (list.length >= MAX_ANSWER_BYTES) break
        }
      }
      if (feed.positioned) ends.push({ name: feed.name, offset, epoch })
    }
    const tail = lost.length > 0 ? `,"lost":${Buffer.from(JSON.stringify(lost)).toString('latin1')}` : ''
    const text = `{"publications":[${list}]${tail},"cursor":"${this.#cursors.write(ends)}"}`
    return { body: Buffer.from(text, 'latin1'), publications }
  }
}
