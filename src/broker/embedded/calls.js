import { errors } from '../../errors.js'
import { Frame } from './frames.js'

/**
 * @typedef {import('./frames.js').FrameWriter} FrameWriter
 * @typedef {import('./frames.js').FrameCursor} FrameCursor
 *
 * @typedef {object} CallLink what the host's calls know of a worker
 * @property {FrameWriter} writer
 * @property {number} worker index of the worker, -1: nobody can call it
 * @property {number} number a number of its own among all links there ever were
 * @property {number} calls how many calls it has made
 */

/** In the place of a request's number: nobody waits for an answer. */
const UNASKED = 0xffffffff

/**
 * The host's half of the calls between workers: it passes frames on, and remembers none of them. When a worker goes, every
 * other one is told, with the number of its own calls that had been passed on by then, and so knows which ones went to the
 * worker that has gone and which ones will reach the next in its place.
 *
 *   caller -- CALL --> host -- CALLED --> worker
 *   caller <- ANSWER - host <- RETURN --- worker
 *   caller <-- GONE -- host <-- (closed)
 *
 * @template {CallLink} L
 */
export class Calls {
  /** @type {Map<number, L>} index of a worker -> the link to it */
  #workers = new Map()
  /** @type {Map<number, L>} number of a link -> link */
  #links = new Map()
  #sent

  /** @param {(link: L) => void} sent ends a frame to a worker */
  constructor(sent) {
    this.#sent = sent
  }

  /** @param {L} link */
  addLink(link) {
    this.#links.set(link.number, link)
    if (link.worker < 0) return
    // The one before may be dead without its socket having closed yet.
    if (this.#workers.has(link.worker)) this.#announceGone(link.worker)
    this.#workers.set(link.worker, link)
  }

  /** @param {L} link */
  removeLink(link) {
    this.#links.delete(link.number)
    if (this.#workers.get(link.worker) !== link) return
    this.#workers.delete(link.worker)
    this.#announceGone(link.worker)
  }

  /** @param {number} worker */
  #announceGone(worker) {
    for (const link of this.#links.values()) {
      link.writer.begin(Frame.GONE).u32(worker).f64(link.calls)
      this.#sent(link)
    }
  }

  /**
   * @param {L} caller
   * @param {FrameCursor} cursor
   */
  call(caller, cursor) {
    caller.calls++
    const request = cursor.u32()
    const target = this.#workers.get(cursor.u32())
    if (target !== undefined) {
      target.writer.begin(Frame.CALLED).u32(caller.number).u32(request)
      target.writer.raw(cursor.buffer, cursor.at, cursor.end)
      this.#sent(target)
    } else if (request !== UNASKED) {
      caller.writer.begin(Frame.FAILED).u32(request).u32(errors.notFound.code)
      this.#sent(caller)
    }
  }

  /**
   * @param {L} link
   * @param {FrameCursor} cursor
   */
  answer(link, cursor) {
    const caller = this.#links.get(cursor.u32())
    // The calls of one that has been replaced have failed already, and their numbers may be in use again.
    if (caller === undefined || this.#workers.get(link.worker) !== link) return
    caller.writer.begin(Frame.ANSWER).raw(cursor.buffer, cursor.at, cursor.end)
    this.#sent(caller)
  }
}

/**
 * A worker's half: which of its calls are on their way to whom.
 */
export class OwnCalls {
  /** @type {Map<number, {worker: number, request: number}>} the how-manieth call -> where it went */
  #pending = new Map()
  #made = 0
  #writer
  #take
  #fail

  /**
   * @param {FrameWriter} writer
   * @param {(done: (error: Error | null, cursor: FrameCursor | null) => void) => number} take a number for a request
   * @param {(request: number) => void} fail ends a request with errors.notFound
   */
  constructor(writer, take, fail) {
    this.#writer = writer
    this.#take = take
    this.#fail = fail
  }

  /**
   * @param {number} worker
   * @param {string | Buffer} request
   * @param {((error: Error | null, answer: Buffer) => void) | null} done
   */
  call(worker, request, done) {
    const call = ++this.#made
    let number = UNASKED
    if (done !== null) {
      number = this.#take((error, cursor) => {
        this.#pending.delete(call)
        done(error, cursor === null ? NOTHING : cursor.buffer.subarray(cursor.at, cursor.end))
      })
      this.#pending.set(call, { worker, request: number })
    }
    this.#writer.begin(Frame.CALL).u32(number).u32(worker).bare(request).end()
  }

  /**
   * @param {FrameCursor} cursor
   * @returns {number} index of the worker
   */
  gone(cursor) {
    const worker = cursor.u32()
    const passedOn = cursor.f64()
    for (const [call, pending] of this.#pending) {
      if (call > passedOn) break
      if (pending.worker === worker) this.#fail(pending.request)
    }
    return worker
  }

  /**
   * Another worker calls this one.
   * @param {FrameCursor} cursor
   * @param {import('../contract.js').BrokerEvents} events
   */
  called(cursor, events) {
    const caller = cursor.u32()
    const request = cursor.u32()
    let open = request !== UNASKED
    events.called(cursor.buffer.subarray(cursor.at, cursor.end), bytes => {
      if (!open) return
      // The caller's number may be in use again after the first answer.
      open = false
      this.#writer.begin(Frame.RETURN).u32(caller).u32(request).bare(bytes).end()
    })
  }
}

const NOTHING = Buffer.alloc(0)
