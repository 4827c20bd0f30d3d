/**
 * @typedef {import('../broker/contract.js').Publication} Publication
 * @typedef {import('../protocol/delta.js').DeltaEncoder} DeltaEncoder
 */

const MAX_BYTES = 1024 * 1024
/** Approximate cost of an entry besides its delta and its key. */
const ENTRY_OVERHEAD = 200

/** Deltas between recovered publications: many subscribers that return at the same time recover the same ones. */
export class DeltaCache {
  /** @type {Map<string, Buffer | null>} oldest first */
  #deltas = new Map()
  #bytes = 0
  #encoder

  /** @param {DeltaEncoder} encoder */
  constructor(encoder) {
    this.#encoder = encoder
  }

  /**
   * @param {string} channel @param {Publication[]} publications ascending
   * @returns {(Buffer | null)[]} for each the delta against the previous one, null: send in full
   */
  between(channel, publications) {
    return publications.map((publication, index) => {
      const before = publications[index - 1]
      if (before?.offset !== publication.offset - 1) return null
      return this.#delta(channel, before, publication)
    })
  }

  /** @param {string} channel @param {Publication} before @param {Publication} publication */
  #delta(channel, before, { offset, epoch, data }) {
    const key = `${epoch}${offset} ${channel}`
    const known = this.#deltas.get(key)
    if (known !== undefined) return known
    const delta = this.#encoder.encode(before.data, data)
    this.#deltas.set(key, delta)
    this.#bytes += cost(key, delta)
    for (const [oldest, old] of this.#deltas) {
      if (this.#bytes <= MAX_BYTES) break
      this.#deltas.delete(oldest)
      this.#bytes -= cost(oldest, old)
    }
    return delta
  }
}

/** @param {string} key @param {Buffer | null} delta */
const cost = (key, delta) => 2 * key.length + (delta?.length ?? 0) + ENTRY_OVERHEAD
