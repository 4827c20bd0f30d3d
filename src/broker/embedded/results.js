/** Validity of an idempotency key (server API, publish). */
const KEEP_MS = 5 * 60 * 1000
const OVERHEAD = 160

/**
 * The results of publications with an idempotency key. All live equally long, so the Map is in order of expiry: no
 * timer wheel is needed.
 */
export class Results {
  /** @type {Map<string, {offset: number, epoch: string, expireAt: number}>} */
  #results = new Map()
  bytes = 0

  /** @param {string} channel @param {string} key @param {number} now ms */
  get(channel, key, now) {
    const result = this.#results.get(`${channel}\0${key}`)
    return result && result.expireAt > now ? result : undefined
  }

  /**
   * @param {string} channel @param {string} key @param {number} offset @param {string} epoch @param {number} now ms
   */
  set(channel, key, offset, epoch, now) {
    const name = `${channel}\0${key}`
    this.#forget(name)
    this.#results.set(name, { offset, epoch, expireAt: now + KEEP_MS })
    this.bytes += name.length + OVERHEAD
  }

  /** @param {string} name */
  #forget(name) {
    if (this.#results.delete(name)) this.bytes -= name.length + OVERHEAD
  }

  /** @param {number} now ms */
  sweep(now) {
    for (const [name, result] of this.#results) {
      if (result.expireAt > now) break
      this.#forget(name)
    }
  }

  /** @returns {boolean} false: there is none */
  forgetOldest() {
    for (const name of this.#results.keys()) {
      this.#forget(name)
      return true
    }
    return false
  }
}
