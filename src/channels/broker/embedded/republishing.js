// Republishing on the bus. Accepted publications reach the process with the republishers through the primary, which
// gives the channels of the embedded engine their order and so keeps it.
//
//   worker -- PUBLISH, or REPUBLISH after the answer of Redis --> host -- REPUBLISH --> process with the republishers
//   worker <- PUBLISHED, ANSWER or FAILED, if it waits --------- host <- CONFIRM ------ of a required one
//   workers <------------------ REPUBLISH_FULL ----------------- host <- REPUBLISH_FULL

import { errors } from '../../../base/errors.js'
import { At, Flag, Frame } from './frames.js'
import { readPublication, writePublication } from './publication.js'

/**
 * @typedef {import('../contract.js').Republication} Republication
 * @typedef {import('../contract.js').Republishing} Republishing
 * @typedef {import('../../../metrics/queue-totals.js').RepublishCounts} RepublishCounts
 * @typedef {import('./link.js').Link} Link
 * @typedef {import('./results.js').Result} Result
 * @typedef {import('./records.js').FrameCursor} FrameCursor
 *
 * @typedef {object} Answer to a worker, when the required republishers have confirmed
 * @property {Link} link @property {number} request
 * @property {number} offset @property {string} epoch
 * @property {Result | null} result of a publication with an idempotency key
 */

/** Memory for publications while there is no process to take them: it is being replaced. */
const MAX_WAITING = 16 * 1024 * 1024
const ALL = 0xffffffff
/** Republishers, source and time to wait, in a frame. */
const ROUTE_BYTES = 9
/** In place of a request number: no answer is wanted. */
const NO_REQUEST = 0xffffffff

/** @param {FrameCursor} cursor before the fields of republishing @returns {number} ms to wait for confirms */
export function waitOf(cursor) {
  cursor.at += 5
  return cursor.u32()
}

/** @param {FrameCursor} cursor before the options of a publication */
function skipOptions(cursor) {
  cursor.at += 20
  cursor.skip()
  cursor.skip()
}

/** @param {FrameCursor} cursor of a REPUBLISH frame @returns {Republication} */
export function readRepublication(cursor) {
  const number = cursor.u32()
  const flags = cursor.u8()
  const offset = cursor.f64()
  const epoch = cursor.epoch()
  const channel = cursor.string()
  const publication = readPublication(cursor, flags, offset, epoch, false)
  skipOptions(cursor)
  const to = cursor.u32()
  const source = cursor.u8()
  cursor.u32()
  return { number, to, source, time: cursor.f64(), channel, meta: cursor.string(), publication }
}

/** In a worker, and in the process with the republishers. @implements {Republishing} */
export class WorkerRepublishing {
  #bus

  /** @param {import('./client.js').Bus} bus */
  constructor(bus) {
    this.#bus = bus
  }

  get full() {
    return this.#bus.republishersFull
  }

  /** @type {Republishing['hand']} */
  hand(channel, data, options, offset, epoch, done) {
    const request = done === null ? NO_REQUEST : this.#bus.number(done)
    const writer = this.#bus.writer.begin(Frame.REPUBLISH).u32(request)
    writePublication(writer, offset, epoch, channel, data, options)
    writer.end()
  }

  /** @type {Republishing['confirm']} */
  confirm(number, confirmed) {
    this.#bus.writer
      .begin(Frame.CONFIRM)
      .u32(number)
      .u8(confirmed ? 1 : 0)
      .end()
  }

  /** @type {Republishing['report']} */
  report(full) {
    this.#bus.writer.begin(Frame.REPUBLISH_FULL).u32(full).end()
  }
}

/**
 * Begins the answer to a publish.
 * @param {Link} link @param {number} request @param {number} offset @param {string} epoch
 */
export function beginPublished(link, request, offset, epoch) {
  const writer = link.writer.begin(Frame.PUBLISHED).u32(request)
  if (offset > 0) writer.f64(offset).epoch(epoch)
}

/** @param {number[]} counts @param {number} to bits of republishers */
function countEach(counts, to) {
  for (let bits = to; bits !== 0; bits &= bits - 1) {
    const index = 31 - Math.clz32(bits & -bits)
    counts[index] = (counts[index] ?? 0) + 1
  }
}

/** In the primary. A process that reads nothing delays no worker: what it does not take is dropped and counted. */
export class HostRepublishing {
  /** @type {RepublishCounts} */
  counts = { unreached: [], handedBefore: [] }
  /** To processes. @type {number[]} */
  #handed = []
  #links
  /** @type {Link | null} to the process */
  #link = null
  /** While there is none. @type {{frame: Buffer, to: number}[]} */
  #waiting = []
  #waitingBytes = 0
  /** @type {Map<number, {answer: Answer, until: number}>} number of a confirm -> who waits for it */
  #pending = new Map()
  #last = 0
  /** What the process has reported. */
  #reported = 0
  /** What the workers know. */
  #full = 0

  /** @param {Set<Link>} links of all workers */
  constructor(links) {
    this.#links = links
  }

  /** @param {Link} link @param {boolean} republishes */
  addLink(link, republishes) {
    if (this.#full !== 0) this.#sendFull(link)
    if (!republishes) return
    if (this.#link !== null) this.removeLink(this.#link)
    this.#link = link
    for (const { frame, to } of this.#waiting) {
      countEach(this.#handed, to)
      link.writer.beginRaw().raw(frame, 0, frame.length)
      link.writer.end()
    }
    this.#waiting = []
    this.#waitingBytes = 0
    this.#reported = 0
    this.#checkFull()
  }

  /** @param {Link} link */
  removeLink(link) {
    if (this.#link !== link) return
    this.#link = null
    this.counts.handedBefore = [...this.#handed]
    this.#reported = 0
    // What the process had in memory is lost.
    for (const [number, { answer }] of this.#pending) {
      this.#pending.delete(number)
      this.#fail(answer)
    }
    this.#checkFull()
  }

  /**
   * @param {Link} sender @param {number} request
   * @param {FrameCursor} cursor of the frame of the publication, after `waitOf`
   * @param {{offset: number, epoch: string}} position
   * @param {number} wait ms; 0: the request is answered by others
   * @param {Result | null} result of a publication with an idempotency key, which a confirm confirms
   */
  forward(sender, request, cursor, { offset, epoch }, wait, result) {
    const link = this.#link
    const to = cursor.buffer.readUInt32LE(cursor.at - ROUTE_BYTES)
    const answer = wait > 0 ? { link: sender, request, offset, epoch, result } : null
    if (link === null ? this.#waitingBytes + cursor.end - cursor.start > MAX_WAITING : link.behind) {
      countEach(this.counts.unreached, to)
      if (answer !== null) this.#fail(answer)
      return this.#checkFull()
    }
    let number = 0
    if (answer !== null) {
      this.#last = (this.#last % 0xfffffffe) + 1
      number = this.#last
      this.#pending.set(number, { answer, until: performance.now() + wait })
    }
    if (link === null) return this.#keep(cursor, to, number, offset, epoch)
    countEach(this.#handed, to)
    const { writer } = link
    writer.beginRaw().raw(cursor.buffer, cursor.start, cursor.end)
    writer.patchRepublication(number, offset, epoch)
    writer.end()
  }

  /** @param {Answer} answer */
  #fail({ link, request }) {
    if (!this.#links.has(link)) return
    link.writer.begin(Frame.FAILED).u32(request).u32(errors.internal.code)
    link.writer.end()
  }

  /**
   * @param {FrameCursor} cursor @param {number} to @param {number} number @param {number} offset
   * @param {string} epoch
   */
  #keep(cursor, to, number, offset, epoch) {
    const frame = Buffer.from(cursor.buffer.subarray(cursor.start, cursor.end))
    frame[At.TYPE] = Frame.REPUBLISH
    frame.writeUInt32LE(number, At.REQUEST)
    if (offset > 0) {
      frame.writeDoubleLE(offset, At.OFFSET)
      frame.write(epoch, At.EPOCH, 8, 'latin1')
    }
    this.#waiting.push({ frame, to })
    this.#waitingBytes += frame.length
  }

  /** A publication that another engine has accepted. @param {Link} link @param {FrameCursor} cursor */
  take(link, cursor) {
    const request = cursor.u32()
    cursor.u8()
    const offset = cursor.f64()
    const epoch = cursor.epoch()
    const wait = this.#waitIn(cursor)
    this.forward(link, request, cursor, { offset, epoch }, request === NO_REQUEST ? 0 : wait, null)
  }

  /** @param {FrameCursor} cursor before the channel @returns {number} ms */
  #waitIn(cursor) {
    const flags = cursor.buffer[cursor.start + At.FLAGS]
    cursor.skip()
    cursor.skip()
    if (flags & Flag.INFO) cursor.skip()
    if (flags & Flag.TAGS) cursor.skip()
    if (flags & Flag.VERSION) cursor.at += 8
    skipOptions(cursor)
    return waitOf(cursor)
  }

  /** @param {Link} link @param {number} number @param {boolean} confirmed */
  confirmed(link, number, confirmed) {
    const pending = link === this.#link ? this.#pending.get(number) : undefined
    if (pending === undefined) return
    this.#pending.delete(number)
    const { answer } = pending
    if (!confirmed) return this.#fail(answer)
    if (answer.result !== null) answer.result.confirmed = true
    if (!this.#links.has(answer.link)) return
    beginPublished(answer.link, answer.request, answer.offset, answer.epoch)
    answer.link.writer.end()
  }

  /** Called once a second. */
  tick() {
    const now = performance.now()
    for (const [number, { answer, until }] of this.#pending) {
      if (until > now) continue
      this.#pending.delete(number)
      this.#fail(answer)
    }
    this.#checkFull()
  }

  /** @param {Link} link @param {number} full */
  report(link, full) {
    if (link !== this.#link) return
    this.#reported = full
    this.#checkFull()
  }

  #checkFull() {
    const stuck = this.#link === null ? this.#waitingBytes > MAX_WAITING / 2 : this.#link.behind
    const full = stuck ? ALL : this.#reported
    if (full === this.#full) return
    this.#full = full
    for (const link of this.#links) this.#sendFull(link)
  }

  /** @param {Link} link */
  #sendFull(link) {
    link.writer.begin(Frame.REPUBLISH_FULL).u32(this.#full)
    link.writer.end()
  }
}
