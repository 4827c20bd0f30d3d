import { Feed } from './feed.js'
import { Place, Poll } from './poll.js'
import { RETRY, refusals } from './refusal.js'

/**
 * @typedef {import('../index.js').Carrier} Carrier
 * @typedef {import('../../server/contract.js').Exchange} Exchange
 * @typedef {import('../../auth/channel-rules.js').Namespace} Namespace
 * @typedef {import('../../broker/contract.js').Publication} Publication
 * @typedef {import('./feed.js').Entry} Entry
 *
 * @typedef {object} ChannelRequest one channel of a poll
 * @property {string} name
 * @property {Namespace} namespace
 * @property {number} offset last offset that the client has, or a Begin
 * @property {string} epoch
 */

/** Polls answered in one turn of the event loop, about 2 ms of work. */
const MAX_PER_TURN = 128
/** How long a channel without polls stays subscribed, ms. */
const IDLE_MS = 3000
const MAX_IDLE = 10_000
/** Bytes after which no publication is added to an answer; the next poll gets the rest. */
const CUT = 1024 * 1024
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
 * The one-way polls of this worker and their channels. Polls with news are answered in slices, so that ten thousand
 * polls that end together do not block the event loop. One answer carries all publications of an event-loop turn.
 * @implements {Carrier}
 */
export class Polls {
  hub
  broker
  fanout
  codec
  #traffic
  #cursors
  #clock
  /** @type {Map<string, Feed>} */
  #feeds = new Map()
  /** @type {Set<Feed>} feeds without polls, the longest idle first */
  #idle = new Set()
  /** @type {Feed[]} feeds with news */
  #news = []
  /** @type {Poll[]} polls to answer, with or without news */
  #ready = []
  #scheduled = false
  #timers
  #slice = () => this.#runSlice()
  /** Shutting down: every poll is answered at once. */
  #closing = false
  /** @type {Answer | null} */
  #last = null

  /**
   * @param {import('../../worker/context.js').WorkerContext} context
   * @param {import('../fanout.js').Fanout} fanout
   * @param {import('./cursor.js').Cursors} cursors
   * @param {import('../../protocol/uni-json.js').PollJsonCodec} codec
   */
  constructor({ hub, broker, clock, timers, config, traffic }, fanout, cursors, codec) {
    this.hub = hub
    this.broker = broker
    this.fanout = fanout
    this.codec = codec
    this.#traffic = traffic.of('uni_poll')
    this.#cursors = cursors
    this.#clock = clock
    /** Publications per history read. */
    this.pageSize = config.client.history_max_publication_limit || MAX_PUBLICATIONS
    this.#timers = timers
  }

  // Polls

  /**
   * Answers a poll when there is news, or when it times out.
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
      feed.enter()
      poll.first = new Place(poll, feed, offset, epoch, poll.first)
    }
    // + 1: the poll is not settled before `find` was called for every place.
    poll.missing = channels.length + 1
    for (let place = poll.first; place !== null; place = place.next) place.feed.find(place)
    if (!poll.due) this.#timers.schedule(poll, this.#clock() + timeout)
    if (--poll.missing === 0) this.#settle(poll, true)
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

  /** @param {Poll} poll all of its places are found */
  settled(poll) {
    this.#settle(poll, false)
  }

  /** @param {Poll} poll @param {boolean} now whether to answer at once instead of in a slice */
  #settle(poll, now) {
    if (poll.exchange === null) return
    if (!poll.due && !this.#closing && !poll.hasNews) {
      for (let place = poll.first; place !== null; place = place.next) place.feed.waiting.add(place)
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
    for (let place = poll.first; place !== null; place = place.next) place.feed.leave(place)
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
    for (const oldest of this.#idle) return this.close(oldest)
  }

  /** @param {Feed} feed without polls */
  close(feed) {
    this.#idle.delete(feed)
    this.#timers.cancel(feed)
    if (this.#feeds.get(feed.name) === feed) this.#feeds.delete(feed.name)
    feed.close()
  }

  /** @param {Poll} poll */
  timedOut(poll) {
    poll.due = true
    if (poll.missing === 0) this.#answerSoon(poll)
  }

  /** Answers all polls: their clients poll another worker. */
  shutDown() {
    this.#closing = true
    for (const { waiting } of this.#feeds.values()) for (const { poll } of waiting) this.#answerSoon(poll)
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
      if (feed.noted || feed.count === 0) continue
      feed.noted = true
      this.#news.push(feed)
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
    for (const feed of this.#news) {
      left = this.#wake(feed, left)
      if (left === 0) break
      feed.noted = false
      feed.told()
      done++
    }
    this.#news.splice(0, done)
    if (this.#ready.length > 0 || this.#news.length > 0) this.#schedule()
    else this.#last = null
  }

  /**
   * @param {Feed} feed with news
   * @param {number} most polls to answer
   * @returns {number} rest of `most`; 0: more polls may be waiting
   */
  #wake(feed, most) {
    let left = most
    for (const place of feed.waiting) {
      if (left === 0 || place.seq === feed.seq) break
      left--
      if (feed.reaches(place.seq)) this.#answer(place.poll)
      else feed.lookAgain(place)
    }
    return left
  }

  /** @param {Poll} poll all of its places are found */
  #answer(poll) {
    const { exchange, head } = poll
    if (exchange === null) return
    const { body, publications } = this.#body(/** @type {Place} */ (poll.first))
    this.#traffic.sent(publications, body.length)
    this.remove(poll)
    exchange.waiter = null
    exchange.reply(200, this.#closing ? { ...head, Connection: 'close' } : head, body)
  }

  /** @param {Place} place first one of a poll @returns {Composed} */
  #body(place) {
    if (place.next !== null) return this.#compose(place)
    const { feed, entries, offset, epoch, seq, lost } = place
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
    const composed = this.#compose(place)
    this.#last = { feed, entries, offset, epoch, seq, end, lost, composed }
    return composed
  }

  /** @param {Place} first first place of a poll @returns {Composed} */
  #compose(first) {
    let list = ''
    let publications = 0
    const lost = []
    const stands = []
    for (let place = /** @type {Place | null} */ (first); place !== null; place = place.next) {
      const { feed, epoch } = place
      let { offset } = place
      if (place.lost) lost.push(feed.name)
      if (list.length < CUT) {
        for (const entry of place.news) {
          list += list === '' ? entry.text : `,${entry.text}`
          publications++
          if (entry.offset > 0) offset = entry.offset
          if (list.length >= CUT) break
        }
      }
      if (feed.positioned) stands.push({ name: feed.name, offset, epoch })
    }
    const tail = lost.length > 0 ? `,"lost":${Buffer.from(JSON.stringify(lost)).toString('latin1')}` : ''
    const text = `{"publications":[${list}]${tail},"cursor":"${this.#cursors.write(stands)}"}`
    return { body: Buffer.from(text, 'latin1'), publications }
  }
}
