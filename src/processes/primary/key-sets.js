/** @import { KnownKeys } from '../../clients/auth/jwks.js' */

/** Characters. */
const MAX_LENGTH = 1 << 20

/** Keys fetched from JWKS endpoints, for new workers: they accept tokens while an endpoint is down. */
export class KeySets {
  /** @type {Map<string, string>} URL -> keys, oldest change first */
  #sets = new Map()
  #maxLength

  /** @param {number} [maxLength] of all URLs and keys, characters; the oldest are removed */
  constructor(maxLength = MAX_LENGTH) {
    this.#maxLength = maxLength
  }

  /** @param {KnownKeys} set replaces the one of its URL */
  add({ url, keys }) {
    this.#sets.delete(url)
    this.#sets.set(url, keys)
    let length = [...this.#sets].flat().reduce((sum, text) => sum + text.length, 0)
    for (const [oldest, { length: size }] of this.#sets) {
      if (length <= this.#maxLength) return
      this.#sets.delete(oldest)
      length -= oldest.length + size
    }
  }

  /** @returns {KnownKeys[]} */
  get all() {
    return [...this.#sets].map(([url, keys]) => ({ url, keys }))
  }
}
