import { SlicedWork } from '../../base/slices.js'

/** @import { IncomingMessage, ServerResponse } from 'node:http' */
/** @import { Socket } from 'node:net' */

/** Requests that are begun at once in a turn of the event loop, over all connections. */
const AT_ONCE = 32
/** Waiting requests of a connection above which no more are read from it. */
const FEW = 16
/** Waiting requests of all connections: each is some 4 KB. */
const MAX_WAITING = 10_000

/** A connection with a request under way. */
class Line {
  /** Requests that wait behind it. @type {{req: IncomingMessage, res: ServerResponse}[]} */
  waiting = []
  /** Nothing is read from the connection. */
  paused = false
}

/**
 * Handles the requests of a connection one after another. node:http has all that the connection has sent in one piece
 * (up to 64 KB) read and emitted at once. Here a request waits until the answer to the one before it has been taken by
 * the kernel, so a client that does not read its answers has one of them in memory; and many requests of one client
 * leave turns of the event loop to the others.
 */
export class NodeRequests {
  #begin
  #host
  #maxWaiting
  /** @type {Map<Socket, Line | null>} null: nothing waits behind its request */
  #lines = new Map()
  /** Sum of waiting requests. */
  #waiting = 0
  /** Connections whose next request may begin, oldest first. @type {Socket[]} */
  #ready = []
  /** Begun at once in this turn. */
  #begun = 0
  #slices = new SlicedWork(() => this.#next())
  #reset = () => {
    this.#begun = 0
  }

  /**
   * @param {(req: IncomingMessage, res: ServerResponse) => void} begin
   * @param {{unanswered: number}} host counts requests that wait
   * @param {number} [maxWaiting] requests of all connections; one that sends more is closed
   */
  constructor(begin, host, maxWaiting = MAX_WAITING) {
    this.#begin = begin
    this.#host = host
    this.#maxWaiting = maxWaiting
  }

  /** @param {IncomingMessage} req @param {ServerResponse} res */
  add(req, res) {
    const { socket } = req
    let line = this.#lines.get(socket)
    if (line === undefined) {
      this.#lines.set(socket, null)
      this.#begin(req, res)
      return
    }
    if (socket.destroyed) return
    if (this.#waiting >= this.#maxWaiting) {
      socket.destroy()
      return
    }
    if (line === null) this.#lines.set(socket, (line = new Line()))
    this.#count(1)
    if (line.waiting.push({ req, res }) <= FEW || line.paused) return
    line.paused = true
    // After the piece that is being read: node:http resumes the socket at the end of each request in it.
    process.nextTick(() => line.paused && socket.pause())
  }

  /** Whether a request is under way. @param {Socket} socket */
  busy(socket) {
    return this.#lines.has(socket)
  }

  /** The answer of the request under way is complete, or its client has left. @param {Socket} socket */
  done(socket) {
    const line = this.#lines.get(socket)
    if (line === undefined) return
    if (line === null || line.waiting.length === 0 || socket.destroyed) {
      this.#lines.delete(socket)
      if (line !== null) this.#count(-line.waiting.length)
      return
    }
    if (this.#begun < AT_ONCE && this.#ready.length === 0) {
      if (this.#begun++ === 0) setImmediate(this.#reset)
      this.#beginNext(socket, line)
      return
    }
    this.#ready.push(socket)
    this.#slices.start()
  }

  #next() {
    const socket = this.#ready.shift()
    if (socket === undefined) return false
    const line = this.#lines.get(socket)
    if (socket.destroyed) this.done(socket)
    else if (line) this.#beginNext(socket, line)
    return true
  }

  /** @param {Socket} socket @param {Line} line */
  #beginNext(socket, line) {
    const { req, res } = /** @type {{req: IncomingMessage, res: ServerResponse}} */ (line.waiting.shift())
    this.#count(-1)
    if (line.paused && line.waiting.length <= FEW) {
      line.paused = false
      socket.resume()
    }
    this.#begin(req, res)
  }

  /** @param {number} change */
  #count(change) {
    this.#waiting += change
    this.#host.unanswered += change
  }
}
