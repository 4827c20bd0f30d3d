/**
 * The close frame can be sent only as the last act on a connection of uWebSockets.js: `end()` takes the handle away, and
 * about four seconds later the library cuts the connection, whatever is still unsent. So a connection that has a backlog
 * waits here until the peer has read it, or until its time is over.
 */

/**
 * @typedef {object} Farewell
 * @property {number} code
 * @property {string} reason
 * @property {number} deadline ms on the clock of `performance.now()`
 */

export class Closing {
  /** @type {Map<any, Farewell>} connection -> what it will be told; a Map, because it is short and rarely used */
  #waiting = new Map()
  #patience

  /** @param {number} patience ms a peer has to read its backlog */
  constructor(patience) {
    this.#patience = patience
  }

  /**
   * @param {any} ws
   * @param {number} code
   * @param {string} reason
   */
  add(ws, code, reason) {
    this.#waiting.set(ws, { code, reason, deadline: performance.now() + this.#patience })
  }

  /**
   * The connection is gone.
   *
   * @param {any} ws
   * @returns {Farewell | undefined}
   */
  take(ws) {
    const farewell = this.#waiting.get(ws)
    if (farewell !== undefined) this.#waiting.delete(ws)
    return farewell
  }

  /** The peer has read something. @param {any} ws */
  drained(ws) {
    const farewell = this.#waiting.get(ws)
    if (farewell !== undefined && ws.getBufferedAmount() === 0) ws.end(farewell.code, farewell.reason)
  }

  /** Cuts those who took too long. */
  sweep() {
    if (this.#waiting.size === 0) return
    const now = performance.now()
    for (const [ws, farewell] of this.#waiting) if (farewell.deadline <= now) ws.close()
  }
}
