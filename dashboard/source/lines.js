/** A hello with the history of many workers is some megabytes. */
export const MAX_LINE = 64 * 1024 * 1024

const NEWLINE = 10

/**
 * Bytes in, lines out, without ever keeping more than one line.
 */
export class Lines {
  /** @type {Buffer[]} of the line that has not ended yet */
  #parts = []
  #length = 0
  #most

  /** @param {number} [most] bytes of a line */
  constructor(most = MAX_LINE) {
    this.#most = most
  }

  /**
   * @param {Buffer} chunk
   * @param {(line: string) => void} take
   * @throws {Error} for a line that is too long; nothing may be pushed after it
   */
  push(chunk, take) {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      this.#keep(chunk.subarray(start, end))
      const line = this.#parts.length === 1 ? this.#parts[0] : Buffer.concat(this.#parts)
      this.#parts = []
      this.#length = 0
      start = end + 1
      if (line.length > 0) take(line.toString())
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start))
  }

  /** @param {Buffer} part */
  #keep(part) {
    this.#length += part.length
    if (this.#length > this.#most) throw new Error('this is no stream of statistics: a line is too long')
    this.#parts.push(part)
  }
}
