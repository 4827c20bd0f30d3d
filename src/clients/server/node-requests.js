import { SlicedWork } from '../../base/slices.js'

/** @import { IncomingMessage, ServerResponse } from 'node:http' */
/** @import { Socket } from 'node:net' */

/** Requests of all connections started per turn without slicing. */
const AT_ONCE = 32
/** Maximum waiting requests of a connection before reading pauses. */
const FEW = 16
/** Maximum waiting requests of all connections: some 4 KB each. */
const MAX_WAITING = 10_000

/**
 * @typedef {{waiting: {req: IncomingMessage, res: ServerResponse}[], paused: boolean}} Line behind the current request
 */

/**
 * Handles the requests of a connection sequentially: node:http emits all requests of a read (up to 64 KB) together.
 * A request waits until the kernel has accepted the previous response, which limits memory and turn length.
 */
export class NodeRequests {
  #begin
  #host
  #maxWaiting
  /** Connections with an active request; null: none waiting. @type {Map<Socket, Line | null>} */
  #lines = new Map()
  #waiting = 0
  /** Connections ready for their next request, oldest first. @type {Socket[]} */
  #ready = []
  #begun = 0
  #slices = new SlicedWork(() => this.#next())
  #reset = () => {
    this.#begun = 0
  }

  /**
   * @param {(req: IncomingMessage, res: ServerResponse) => void} begin
   * @param {{unanswered: number}} host includes waiting requests
   * @param {number} [maxWaiting] of all connections; exceeding it closes the connection
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
    if (this.#waiting >= this.#maxWaiting) return socket.destroy()
    if (line === null) this.#lines.set(socket, (line = { waiting: [], paused: false }))
    this.#count(1)
    if (line.waiting.push({ req, res }) <= FEW || line.paused) return
    line.paused = true
    // After the current piece: node:http resumes the socket at the end of each request in it.
    process.nextTick(() => line.paused && socket.pause())
  }

  /** @param {Socket} socket */
  busy(socket) {
    return this.#lines.has(socket)
  }

  /** @param {Socket} socket with a complete response, or disconnected */
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
