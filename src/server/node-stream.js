/** A client that does not read the end of its stream is cut off after this time, ms. */
const CLOSE_PATIENCE = 5000

/** @typedef {import('./contract.js').StreamRoute} StreamRoute */

/**
 * The stream of the node server: a response of node:http, which chunks, buffers and counts.
 */
export class NodeStream {
  /** @type {any} what the transport hangs on it */
  session = null
  #res
  #socket
  #route
  /** What was written in this turn of the event loop waits in the response. */
  #held = true
  /** Nothing more may be written. */
  #over = false
  /** The route has been told. */
  #closed = false
  /** @type {NodeJS.Timeout | undefined} */
  #patience

  /**
   * @param {import('node:http').ServerResponse} res
   * @param {import('node:net').Socket} socket which the response may still have to wait for
   * @param {StreamRoute} route
   */
  constructor(res, socket, route) {
    this.#res = res
    this.#socket = socket
    this.#route = route
    const close = () => this.#close()
    res.once('close', close)
    if (res.socket === null) onceClosed(socket, close)
    // A client that leaves in the middle of a write is no fault of ours; `close` follows.
    res.on('error', () => {})
  }

  /**
   * Begins the response. The caller releases the stream at the end of this turn of the event loop.
   *
   * @param {number} status
   * @param {Record<string, string> | null} headers
   */
  begin(status, headers) {
    this.#res.writeHead(status, headers ?? {})
    this.#res.cork()
    this.#res.flushHeaders()
  }

  /**
   * @param {string | Uint8Array} data
   * @returns {boolean} whether the stream is to be released at the end of this turn of the event loop
   */
  write(data) {
    if (this.#over || data.length === 0) return false
    const first = !this.#held
    if (first) {
      this.#held = true
      this.#res.cork()
    }
    this.#res.write(data)
    return first
  }

  /** Lets go what one turn of the event loop has written. */
  release() {
    this.#held = false
    this.#res.uncork()
    if (!this.#over && this.#res.writableLength > this.#route.maxBuffered) this.#route.overflow(this)
  }

  /** @param {string | Uint8Array} data */
  end(data) {
    if (this.#over) return
    this.#over = true
    this.#patience = setTimeout(() => this.#socket.destroy(), CLOSE_PATIENCE)
    this.#patience.unref()
    this.#res.end(data)
  }

  cut() {
    if (this.#closed) return
    this.#over = true
    this.#socket.destroy()
  }

  #close() {
    if (this.#closed) return
    this.#closed = true
    this.#over = true
    clearTimeout(this.#patience)
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
