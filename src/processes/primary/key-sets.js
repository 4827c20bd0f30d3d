/** @import { KnownKeys } from '../../clients/auth/jwks.js' */

/** Characters. */
const MAX_LENGTH = 1 << 20

/**
 * Keys that workers have fetched from JWKS endpoints. New workers begin with them: otherwise they would refuse all
 * tokens while an endpoint is down.
 */
export class KeySets {
  /** @type {Map<string, string>} by URL, the last change last */
  #sets = new Map()
  #length = 0
  #maxLength

  /** @param {number} [maxLength] of all URLs and keys, characters; the oldest go first */
  constructor(maxLength = MAX_LENGTH) {
    this.#maxLength = maxLength
  }

  /** @param {KnownKeys} set replaces the one of its URL */
  add({ url, keys }) {
    this.#remove(url)
    this.#sets.set(url, keys)
    this.#length += url.length + keys.length
    for (const oldest of this.#sets.keys()) {
      if (this.#length <= this.#maxLength) return
      this.#remove(oldest)
    }
  }

  /** @param {string} url */
  #remove(url) {
    const keys = this.#sets.get(url)
    if (keys === undefined) return
    this.#sets.delete(url)
    this.#length -= url.length + keys.length
  }

  /** @returns {KnownKeys[]} */
  get all() {
    return [...this.#sets].map(([url, keys]) => ({ url, keys }))
  }
}
