/** Bytes of a block. A body wastes less than one. */
const BLOCK = 16_384
/** Bytes of the bodies that a worker is receiving: sixteen of the largest that any route takes. */
const MAX_BODIES = 256 * 1024 * 1024
const EMPTY = Buffer.alloc(0)

/** What the unfinished bodies of a server hold. */
export class Bodies {
  bytes = 0
  #max

  /** @param {number} [max] bytes */
  constructor(max = MAX_BODIES) {
    this.#max = max
  }

  get full() {
    return this.bytes > this.#max
  }
}

/**
 * The body of a request while it arrives. A piece of the body, which may be one byte long, is a Buffer of some 100 bytes
 * and its memory; so small ones are copied into blocks.
 */
export class Body {
  size = 0
  #bodies
  /** @type {Buffer[]} full ones */
  #blocks = []
  /** @type {Buffer | null} being filled */
  #block = null
  #used = 0

  /** @param {Bodies} bodies */
  constructor(bodies) {
    this.#bodies = bodies
  }

  /** Memory of its blocks, bytes. */
  get capacity() {
    return this.#blocks.reduce((sum, { length }) => sum + length, this.#block?.length ?? 0)
  }

  /** @param {Buffer} piece */
  add(piece) {
    this.size += piece.length
    this.#bodies.bytes += piece.length
    if (this.#block === null && piece.length >= BLOCK) {
      this.#blocks.push(piece)
      return
    }
    for (let at = 0; at < piece.length; ) {
      this.#block ??= Buffer.allocUnsafeSlow(BLOCK)
      const copied = piece.copy(this.#block, this.#used, at)
      at += copied
      this.#used += copied
      if (this.#used < BLOCK) return
      this.#blocks.push(this.#block)
      this.#block = null
      this.#used = 0
    }
  }

  /** @returns {Buffer} all of it, which is no longer held */
  take() {
    const { size } = this
    const blocks =
      this.#block === null ? this.#blocks : [...this.#blocks, this.#block.subarray(0, this.#used)]
    this.drop()
    return blocks.length === 0 ? EMPTY : blocks.length === 1 ? blocks[0] : Buffer.concat(blocks, size)
  }

  drop() {
    this.#bodies.bytes -= this.size
    this.size = 0
    this.#blocks = []
    this.#block = null
    this.#used = 0
  }
}
