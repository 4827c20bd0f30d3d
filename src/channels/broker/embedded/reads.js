import { errors } from '../../../base/errors.js'
import { NOT_SUBSCRIBED } from '../contract.js'
import { OVERHEAD } from '../size.js'
import { Frame, readPublications } from './frames.js'
import { Page } from './pages.js'

/** @import { HistoryAnswer, HistoryFilter, Publication, Recover, SubscribeDone, SubscribeWants } from '../contract.js' */
/** @import { Bus } from './client.js' */
/** @import { Room } from './pages.js' */
/** @import { FrameCursor } from './records.js' */

/** Bytes of a page. Up to MAX_READS pages delay live publications. */
const PAGE_BYTES = 256 * 1024
/** Maximum concurrent reads beyond their first page, to limit incomplete histories in memory. */
const MAX_READS = 4
/** Bytes of a first page: most histories fit. */
const FIRST_BYTES = 32 * 1024
/** With more pending first pages, a new one has only LITTLE_BYTES. */
const MAX_FIRST = 128
const LITTLE_BYTES = 2 * 1024
/** Retries of a cache recovery if its publications were replaced. */
const MAX_RESTARTS = 8

/**
 * A worker's reads of streams in the primary. Limits pending pages, so that they do not delay live publications.
 *
 *   first page -+-> complete: done
 *               +-> wait for a place (MAX_READS) -> page -> page ... last page -> done
 */
export class Reads {
  #first = 0
  #taken = 0
  /** @type {(() => void)[]} reads waiting for a place; each belongs to a client's command or a request */
  #waiting = []

  /** @param {() => void} work called when a place is free; MUST call `leave` once */
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

class Read {
  /** @type {Publication[]} */
  publications = []
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

  /** @param {FrameCursor} _cursor @returns {boolean} whether to request more */
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

/** The first request subscribes the worker; pages contain all later publications; the last page is the result. */
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
    const wants = { metaTtl: this.#wants.metaTtl, latest: this.#latest, recover: this.#recover }
    return { first: false, position: true, client: '', ...wants, room }
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
    // No publication fitted: the next page may have newer ones.
    if (this.#latest && this.publications.length === 0) return true
    this.#recover = {
      offset: this.publications.at(-1)?.offset ?? since,
      epoch,
      // Checked by the first request.
      limit: 0,
      maxBytes: this.#maxBytes && Math.max(1, this.#maxBytes - this.bytes),
    }
    this.#latest = false
    return true
  }

  /** A cache recovery restarts when newer publications arrive. @returns {boolean} whether it may */
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
