/** A client that does not read the end of its stream is cut off after this time, ms. */
const CLOSE_PATIENCE = 5000

/**
 * The stream of the node server: the response of node:http.
 */
export class NodeStream {
  /** @type {any} what the transport hangs on it */
  session = null
  /** What was written in this turn of the event loop waits in the response. */
  #held = false
  #over = false

  /**
   * @param {import('node:http').ServerResponse} response whose head has been written
   * @param {import('./contract.js').StreamRoute} route
   */
  constructor(response, route) {
    this.response = response
    this.route = route
    response.once('close', () => {
      this.#over = true
      route.close(this)
    })
    // A client that leaves in the middle of a write is no fault of ours; `close` follows.
    response.on('error', () => {})
  }

  /** @param {string | Uint8Array} data */
  write(data) {
    if (this.#over || data.length === 0) return
    if (!this.#held) {
      this.#held = true
      this.response.cork()
      setImmediate(release, this)
    }
    this.response.write(data)
  }

  /** Lets go what one turn of the event loop has written. */
  release() {
    this.#held = false
    this.response.uncork()
    if (!this.#over && this.response.writableLength > this.route.maxBuffered) this.route.overflow(this)
  }

  /** @param {string | Uint8Array} data */
  end(data) {
    if (this.#over) return
    this.#over = true
    this.response.end(data)
    const { socket } = this.response
    if (this.response.writableLength > 0 && socket) setTimeout(() => socket.destroy(), CLOSE_PATIENCE).unref()
  }

  cut() {
    this.#over = true
    this.response.destroy()
  }
}

/** @param {NodeStream} stream */
function release(stream) {
  stream.release()
}
