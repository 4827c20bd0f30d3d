/** @typedef {null | string | Uint8Array | (string | Uint8Array)[]} Pending writes of one turn of the event loop */

/** @param {Pending} pending @param {string | Uint8Array} piece */
export function withPiece(pending, piece) {
  if (pending === null) return piece
  if (!Array.isArray(pending)) return [pending, piece]
  pending.push(piece)
  return pending
}

/** Joins pending data into one chunk. A message for many streams is converted or joined once. */
export class ChunkMaker {
  #text = ''
  /** Bytes of `#text` since its second use. @type {Buffer | null} */
  #bytes = null
  /** @type {(string | Uint8Array)[]} */
  #pieces = []
  /** @type {Buffer | null} */
  #joined = null

  /** @param {NonNullable<Pending>} pending @returns {string | Uint8Array} */
  make(pending) {
    if (typeof pending === 'string') return this.#once(pending)
    if (!Array.isArray(pending)) return pending
    if (this.#joined === null || !isSame(pending, this.#pieces)) {
      this.#pieces = pending
      this.#joined = Buffer.concat(pending.map(toBytes))
    }
    return this.#joined
  }

  /** @param {string | Uint8Array} chunk @returns {Uint8Array} */
  bytes(chunk) {
    if (typeof chunk !== 'string') return chunk
    if (chunk !== this.#text || this.#bytes === null) {
      this.#text = chunk
      this.#bytes = Buffer.from(chunk)
    }
    return this.#bytes
  }

  clear() {
    this.#text = ''
    this.#bytes = null
    this.#pieces = []
    this.#joined = null
  }

  /** Returns text on its first use: the library converts it for a single stream. @param {string} text */
  #once(text) {
    if (text === this.#text) return (this.#bytes ??= Buffer.from(text))
    this.#text = text
    this.#bytes = null
    return text
  }
}

/** @param {string | Uint8Array} piece */
const toBytes = piece => (typeof piece === 'string' ? Buffer.from(piece) : piece)

/** @param {(string | Uint8Array)[]} one @param {(string | Uint8Array)[]} other */
function isSame(one, other) {
  if (one.length !== other.length) return false
  for (let i = 0; i < one.length; i++) if (one[i] !== other[i]) return false
  return true
}
