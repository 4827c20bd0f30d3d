/** @typedef {Pick<import('./schema.js').GatewayEvent, 'level' | 'kind' | 'text' | 'worker'>} RedisEvent */

/**
 * Which workers are without Redis: it is lost when the first one loses it, and back when the last one has it.
 */
export class RedisWatch {
  /** @type {Set<number>} */
  #without = new Set()
  #since = 0

  /**
   * @param {number} worker
   * @param {boolean} up
   * @param {number} now ms
   * @returns {RedisEvent | null} what there is to say of it
   */
  take(worker, up, now) {
    const without = this.#without
    if (up === !without.has(worker)) return null
    if (!up) {
      without.add(worker)
      if (without.size > 1) return null
      this.#since = now
      return { level: 'error', kind: 'redis_lost', text: `worker ${worker} has lost Redis`, worker }
    }
    without.delete(worker)
    if (without.size > 0) return null
    const seconds = ((now - this.#since) / 1000).toFixed(1)
    return {
      level: 'info',
      kind: 'redis_back',
      text: `Redis is back in all workers after ${seconds} s`,
      worker: null,
    }
  }
}
