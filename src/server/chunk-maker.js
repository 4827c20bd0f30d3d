/** @typedef {null | string | Uint8Array | (string | Uint8Array)[]} Pending what one turn of the event loop has written to a stream */

/**
 * @param {Pending} pending
 * @param {string | Uint8Array} piece
 */
export function withPiece(pending, piece) {
  if (pending === null) return piece
  if (!Array.isArray(pending)) return [pending, piece]
  pending.push(piece)
  return pending
}

/**
 * Makes one chunk of what is pending. When a message goes to many streams, one after the other
 * asks for the same: what is converted or joined for the first of them serves the rest.
 */
export class ChunkMaker {
  #text = ''
  /** @type {Buffer | null} the bytes of `#text`, once it is asked for a second time */
  #bytes = null
  /** @type {(string | Uint8Array)[]} */
  #pieces = []
  /** @type {Buffer | null} */
  #joined = null

  /**
   * @param {NonNullable<Pending>} pending
   * @returns {string | Uint8Array}
   */
  make(pending) {
    if (typeof pending === 'string') return this.#once(pending)
    if (!Array.isArray(pending)) return pending
    if (this.#joined === null || !same(pending, this.#pieces)) {
      this.#pieces = pending
      this.#joined = Buffer.concat(pending.map(toBytes))
    }
    return this.#joined
  }

  /**
   * The same as bytes, whose length is known.
   *
   * @param {string | Uint8Array} chunk
   * @returns {Uint8Array}
   */
  bytes(chunk) {
    if (typeof chunk !== 'string') return chunk
    if (chunk !== this.#text || this.#bytes === null) {
      this.#text = chunk
      this.#bytes = Buffer.from(chunk)
    }
    return this.#bytes
  }

  /** The turn is over: keeps nothing alive. */
  clear() {
    this.#text = ''
    this.#bytes = null
    this.#pieces = []
    this.#joined = null
  }

  /**
   * Text for one stream is left to the library to convert.
   *
   * @param {string} text
   */
  #once(text) {
    if (text === this.#text) return (this.#bytes ??= Buffer.from(text))
    this.#text = text
    this.#bytes = null
    return text
  }
}

/** @param {string | Uint8Array} piece */
function toBytes(piece) {
  return typeof piece === 'string' ? Buffer.from(piece) : piece
}

/**
 * @param {(string | Uint8Array)[]} one
 * @param {(string | Uint8Array)[]} other
 */
function same(one, other) {
  if (one.length !== other.length) return false
  for (let i = 0; i < one.length; i++) if (one[i] !== other[i]) return false
  return true
}
