// The primary forwards accepted publications in order to the republishers' process.
//
//   worker -- PUBLISH, or REPUBLISH after the reply of Redis ---> host -- REPUBLISH --> process with the republishers
//   worker <- PUBLISHED, ANSWER or FAILED, if it waits --------- host <- CONFIRM ------ of a required one
//   workers <------------------ REPUBLISH_FULL ----------------- host <- REPUBLISH_FULL

import { errors } from '../../../base/errors.js'
import { NO_REQUEST } from './control.js'
import { At, Flag, Frame, readPublication, writePublication } from './frames.js'

/** @import { RepublishCounts } from '../../../metrics/queue-totals.js' */
/** @import { Republication, Republishing } from '../contract.js' */
/** @import { Bus } from './client.js' */
/** @import { Link } from './host.js' */
/** @import { FrameCursor } from './records.js' */
/** @import { Result } from './results.js' */

/**
 * Response to a worker, sent after the required republishers' confirms.
 * @typedef {{link: Link, request: number, offset: number, epoch: string, result: Result | null}} Answer
 */

/** Bytes of publications queued while the republishers' process is being replaced. */
const MAX_WAITING = 16 * 1024 * 1024
const ALL = 0xffffffff
/** Republishers, source and timeout in a frame. */
const ROUTE_BYTES = 9

/** @param {FrameCursor} cursor before the republishing fields @returns {number} timeout of confirms, ms */
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
  const flags = cursor.u16()
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

/** In workers and in the republishers' process. @implements {Republishing} */
export class WorkerRepublishing {
  #bus

  /** @param {Bus} bus */
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
    const writer = this.#bus.writer.begin(Frame.CONFIRM).u32(number)
    writer.u8(confirmed ? 1 : 0).end()
  }

  /** @type {Republishing['report']} */
  report(full) {
    this.#bus.writer.begin(Frame.REPUBLISH_FULL).u32(full).end()
  }
}

/** Begins a response. @param {Link} link @param {number} request @param {number} offset @param {string} epoch */
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

/** In the primary. A blocked process delays no worker: excess publications are dropped and counted. */
export class HostRepublishing {
  /** @type {RepublishCounts} */
  counts = { unreached: [], handedBefore: [] }
  /** To processes. @type {number[]} */
  #handed = []
  #links
  /** @type {Link | null} to the process */
  #link = null
  /** Without a process. @type {{frame: Buffer, to: number}[]} */
  #waiting = []
  #waitingBytes = 0
  /** @type {Map<number, {answer: Answer, until: number}>} confirm number -> pending response */
  #pending = new Map()
  #last = 0
  #reported = 0
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
    // The process has lost its publications.
    for (const [number, { answer }] of this.#pending) {
      this.#pending.delete(number)
      this.#fail(answer)
    }
    this.#checkFull()
  }

  /**
   * @param {Link} sender @param {number} request
   * @param {FrameCursor} cursor of the publication's frame, after `waitOf`
   * @param {{offset: number, epoch: string}} position
   * @param {number} wait ms; 0: the caller sends the response
   * @param {Result | null} result of a publication with an idempotency key, confirmed with it
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

  /** Takes a publication accepted by another engine. @param {Link} link @param {FrameCursor} cursor */
  take(link, cursor) {
    const request = cursor.u32()
    cursor.u16()
    const offset = cursor.f64()
    const epoch = cursor.epoch()
    const wait = this.#waitIn(cursor)
    this.forward(link, request, cursor, { offset, epoch }, request === NO_REQUEST ? 0 : wait, null)
  }

  /** @param {FrameCursor} cursor before the channel @returns {number} ms */
  #waitIn(cursor) {
    const flags = cursor.buffer.readUInt16LE(cursor.start + At.FLAGS)
    cursor.skip()
    cursor.skip()
    if (flags & Flag.INFO) cursor.skip()
    if (flags & Flag.TAGS) cursor.skip()
    if (flags & Flag.VERSION) cursor.at += 8
    if (flags & Flag.KEYED) {
      cursor.at += 9
      cursor.skip()
    }
    if (flags & Flag.TARGET) cursor.skip()
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
