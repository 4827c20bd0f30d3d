import { withPiece } from './chunk-maker.js'

/** A client that does not read the end of its stream is cut off after this time, ms. */
const CLOSE_TIMEOUT = 5000

/**
 * @typedef {import('./contract.js').StreamRoute} StreamRoute
 * @typedef {import('./chunk-maker.js').ChunkMaker} ChunkMaker
 */

/**
 * The stream of the node server: a response of node:http, which chunks, buffers and counts.
 */
export class NodeStream {
  /** @type {any} what the transport hangs on it */
  session = null
  #res
  #socket
  #host
  #route
  /** @type {import('./chunk-maker.js').Pending} what this turn of the event loop has written */
  #pending = null
  #held = false
  /** Nothing more may be written. */
  #over = false
  /** The route has been told. */
  #closed = false
  /** @type {NodeJS.Timeout | undefined} */
  #closeTimer

  /**
   * @param {import('node:http').ServerResponse} res
   * @param {import('node:net').Socket} socket which the response may still have to wait for
   * @param {StreamRoute} route
   * @param {import('./node-exchange.js').Host} host
   */
  constructor(res, socket, route, host) {
    this.#res = res
    this.#socket = socket
    this.#route = route
    this.#host = host
    const close = () => this.#close()
    res.once('close', close)
    if (res.socket === null) onceClosed(socket, close)
    // A client that leaves in the middle of a write is no fault of ours; `close` follows.
    res.on('error', () => {})
    this.#hold()
  }

  /** @param {string | Uint8Array} data */
  write(data) {
    if (this.#over || data.length === 0) return
    this.#pending = withPiece(this.#pending, data)
    this.#hold()
  }

  /** The turn of the event loop is over. @param {ChunkMaker} chunks */
  release(chunks) {
    this.#held = false
    this.flush(chunks)
  }

  /** Lets go what has been written. @param {ChunkMaker} chunks */
  flush(chunks) {
    if (this.#over) return
    if (this.#pending === null) this.#res.flushHeaders()
    else this.#res.write(chunks.make(this.#pending))
    this.#pending = null
    const { unread } = this
    if (unread === 0) return
    this.#host.slow.add(this)
    if (unread > this.#route.maxBuffered) this.#route.overflow(this)
  }

  /** Bytes that its client has not taken. */
  get unread() {
    return this.#closed ? 0 : this.#res.writableLength
  }

  /** @param {string | Uint8Array} data */
  end(data) {
    if (this.#over) return
    this.#over = true
    this.#closeTimer = setTimeout(() => this.#socket.destroy(), CLOSE_TIMEOUT)
    this.#closeTimer.unref()
    this.#res.end(this.#host.chunks.make(withPiece(this.#pending, data)))
    this.#pending = null
  }

  cut() {
    if (this.#closed) return
    this.#over = true
    this.#pending = null
    this.#socket.destroy()
  }

  #hold() {
    if (this.#held) return
    this.#held = true
    this.#host.hold(this)
  }

  #close() {
    if (this.#closed) return
    this.#closed = true
    this.#over = true
    this.#pending = null
    clearTimeout(this.#closeTimer)
    this.#route.close(this)
  }
}

/**
 * A response that waits for its turn is not told when its client leaves.
 *
 * @param {import('node:net').Socket} socket
 * @param {() => void} listener
 */
export function onceClosed(socket, listener) {
  // As many as the client has sent requests in one go.
  socket.setMaxListeners(0)
  socket.once('close', listener)
}
