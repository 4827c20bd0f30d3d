import { errors } from '../../../base/errors.js'
import { NOT_SUBSCRIBED } from '../contract.js'
import { OVERHEAD } from '../size.js'
import { Frame } from './frames.js'
import { Page } from './pages.js'
import { readPublications } from './publication.js'

/**
 * @typedef {import('../contract.js').HistoryAnswer} HistoryAnswer
 * @typedef {import('../contract.js').HistoryFilter} HistoryFilter
 * @typedef {import('../contract.js').Publication} Publication
 * @typedef {import('../contract.js').Recover} Recover
 * @typedef {import('../contract.js').SubscribeAnswer} SubscribeAnswer
 * @typedef {import('../contract.js').SubscribeDone} SubscribeDone
 * @typedef {import('../contract.js').SubscribeWants} SubscribeWants
 * @typedef {import('./client.js').Bus} Bus
 * @typedef {import('./records.js').FrameCursor} FrameCursor
 * @typedef {import('./pages.js').Room} Room
 */

/** Bytes of a page. Live publications wait behind at most MAX_READS pages. */
const PAGE_BYTES = 256 * 1024
/** Reads with pages under way; the others wait, so that few incomplete histories are in memory. */
const MAX_READS = 4
/** Bytes of a first page, which needs no place: most histories end with it. */
const FIRST_BYTES = 32 * 1024
/** With more first pages under way, a further one has only LITTLE_BYTES. */
const MAX_FIRST = 128
const LITTLE_BYTES = 2 * 1024

/** Times that the newest publications are read again because newer ones have replaced them meanwhile. */
const MAX_RESTARTS = 8

/**
 * The reads of a worker from streams in the primary. A read gets the next page when it has got the last one, and few
 * reads have pages under way. So the primary never sends more than the worker takes, keeps nothing between pages, and
 * live publications find a nearly empty bus.
 *
 *   first page -+-> that was all: done
 *               +-> wait for a place (MAX_READS) -> page -> page ... last page -> done
 */
export class Reads {
  /** First pages under way. */
  #first = 0
  /** Taken places. */
  #taken = 0
  /** @type {(() => void)[]} reads that wait for a place; each belongs to a command of a client, or to a request */
  #waiting = []

  /** @param {() => void} work called when there is a place; MUST lead to one call of `leave` */
  enter(work) {
    if (this.#taken === MAX_READS) {
      this.#waiting.push(work)
      return
    }
    this.#taken++
    work()
  }

  leave() {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#taken--
  }

  /** @returns {Room} `firstDone` MUST follow */
  firstRoom() {
    return { bytes: this.#first++ < MAX_FIRST ? FIRST_BYTES : LITTLE_BYTES, least: 0 }
  }

  firstDone() {
    this.#first--
  }
}

/** One read, page by page. A subclass makes the requests and reads the answers. */
class Read {
  /** @type {Publication[]} */
  publications = []
  /** Bytes of the publications. */
  bytes = 0
  #placed = false
  #bus
  #reads
  #type
  #channel

  /** @param {Bus} bus @param {Reads} reads @param {number} type of the frame @param {string} channel */
  constructor(bus, reads, type, channel) {
    this.#bus = bus
    this.#reads = reads
    this.#type = type
    this.#channel = channel
  }

  start() {
    this.#ask(this.request(this.#reads.firstRoom()))
  }

  /** @param {object} request */
  #ask(request) {
    const writer = this.#bus.request(this.#type, (error, cursor) => this.#answered(error, cursor))
    writer.string(this.#channel).string(JSON.stringify(request)).end()
  }

  #next() {
    this.#placed = true
    this.#ask(this.request({ bytes: PAGE_BYTES, least: 1 }))
  }

  /** @param {Error | null} error @param {FrameCursor | null} cursor */
  #answered(error, cursor) {
    const reads = this.#reads
    if (!this.#placed) reads.firstDone()
    const more = !error && cursor !== null && this.page(cursor)
    if (more && this.#placed) return this.#next()
    if (more) return reads.enter(() => this.#next())
    if (this.#placed) reads.leave()
    this.done(error ?? (cursor === null ? errors.internal : null))
  }

  /** @param {Room} _room @returns {object} body of the next request */
  request(_room) {
    return {}
  }

  /** @param {FrameCursor} _cursor @returns {boolean} whether to ask for more */
  page(_cursor) {
    return false
  }

  /** @param {Error | null} _error */
  done(_error) {}

  /** @param {FrameCursor} cursor at the publications of a page @param {string} epoch */
  add(cursor, epoch) {
    const { at } = cursor
    const page = readPublications(cursor, epoch)
    for (const publication of page) this.publications.push(publication)
    if (page.length > 0) this.bytes += cursor.at - at + page.length * OVERHEAD
  }
}

/**
 * A subscription with recovery. The worker is subscribed from the first request on. What is published meanwhile is in
 * the pages too, and the last one is the answer, in stream order.
 */
export class Recovery extends Read {
  #wants
  /** @type {Recover} */
  #recover
  #latest
  #maxBytes
  #done
  #answer = NOT_SUBSCRIBED
  #first = true
  #restarts = 0

  /**
   * @param {Bus} bus @param {Reads} reads @param {string} channel @param {SubscribeWants} wants
   * @param {Recover} recover of `wants` @param {SubscribeDone} done
   */
  constructor(bus, reads, channel, wants, recover, done) {
    super(bus, reads, Frame.SUBSCRIBE, channel)
    this.#wants = wants
    this.#recover = recover
    this.#latest = wants.latest
    this.#maxBytes = recover.maxBytes ?? 0
    this.#done = done
  }

  /** @param {Room} room */
  request(room) {
    if (this.#first) return { ...this.#wants, room }
    const { metaTtl } = this.#wants
    return {
      first: false,
      position: true,
      recover: this.#recover,
      latest: this.#latest,
      metaTtl,
      client: '',
      room,
    }
  }

  /** @param {FrameCursor} cursor */
  page(cursor) {
    this.#first = false
    const offset = cursor.f64()
    const epoch = cursor.epoch()
    const page = cursor.u8()
    const since = cursor.f64()
    this.add(cursor, epoch)
    if (page === Page.NONE && this.#mayRestart()) return true
    if (page !== Page.MORE) {
      const recovered = page === Page.LAST
      this.#answer = { offset, epoch, recovered, publications: recovered ? this.publications : [] }
      return false
    }
    // None of the newest has fitted: other ones may be the newest for the next page.
    if (this.#latest && this.publications.length === 0) return true
    this.#recover = {
      offset: this.publications.at(-1)?.offset ?? since,
      epoch,
      // It was checked against what was missed at first.
      limit: 0,
      maxBytes: this.#maxBytes && Math.max(1, this.#maxBytes - this.bytes),
    }
    this.#latest = false
    return true
  }

  /**
   * A cache recovery does not fail because of publications that come while it is read: it begins again with the newest.
   * @returns {boolean} false: it is none, or has begun too often
   */
  #mayRestart() {
    const { latest, recover } = this.#wants
    if (!latest || recover === null || this.#restarts === MAX_RESTARTS) return false
    this.#restarts++
    this.publications = []
    this.bytes = 0
    this.#recover = recover
    this.#latest = true
    return true
  }

  /** @param {Error | null} error */
  done(error) {
    this.#done(error, error ? NOT_SUBSCRIBED : this.#answer)
  }
}

/** A read of history. */
export class HistoryRead extends Read {
  #filter
  #metaTtl
  #done
  #complete = true
  #offset = 0
  #epoch = ''

  /**
   * @param {Bus} bus @param {Reads} reads @param {string} channel @param {HistoryFilter} filter
   * @param {number} metaTtl ms @param {(error: Error | null, answer: HistoryAnswer) => void} done
   */
  constructor(bus, reads, channel, filter, metaTtl, done) {
    super(bus, reads, Frame.HISTORY, channel)
    this.#filter = filter
    this.#metaTtl = metaTtl
    this.#done = done
  }

  /** Bytes that may still be read. */
  get #left() {
    return (this.#filter.maxBytes || Infinity) - this.bytes
  }

  /** @param {Room} room */
  request({ bytes, least }) {
    const { limit, sinceOffset, sinceEpoch, reverse } = this.#filter
    const { publications } = this
    const last = publications.at(-1)
    return {
      filter: {
        limit: limit < 0 ? limit : limit - publications.length,
        sinceOffset: last?.offset ?? sinceOffset,
        sinceEpoch: last ? this.#epoch : sinceEpoch,
        reverse,
      },
      continued: last !== undefined,
      metaTtl: this.#metaTtl,
      // The first publication is read even if it is too large.
      room: { bytes: Math.min(bytes, this.#left), least, most: last && this.#left },
    }
  }

  /** @param {FrameCursor} cursor */
  page(cursor) {
    this.#offset = cursor.f64()
    this.#epoch = cursor.epoch()
    const more = cursor.u8() === Page.MORE
    const before = this.publications.length
    this.add(cursor, this.#epoch)
    const full = before > 0 && this.publications.length === before
    this.#complete = !more
    return more && !full && this.#left > 0
  }

  /** @param {Error | null} error */
  done(error) {
    const { publications } = this
    this.#done(error, { publications, offset: this.#offset, epoch: this.#epoch, complete: this.#complete })
  }
}
