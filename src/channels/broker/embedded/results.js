import { IDEMPOTENCY_TTL } from '../contract.js'
import { Aged, RecencyList } from './recency.js'

const KEEP_S = IDEMPOTENCY_TTL / 1000
/** Bytes of a result, excluding its name; measured. */
const OVERHEAD = 200

export class Result extends Aged {
  /** false: a `required` republisher has not confirmed it. */
  confirmed = true

  /** @param {string} name channel and key @param {number} number ascending @param {number} offset @param {string} epoch */
  constructor(name, number, offset, epoch) {
    super()
    this.number = number
    this.name = name
    this.offset = offset
    this.epoch = epoch
  }
}

/** @param {string} name channel and key @returns {number} bytes, two per character */
const cost = name => 2 * name.length + OVERHEAD

/** Results of publications with an idempotency key, in order of expiry and eviction. */
export class Results {
  /** @type {Map<string, Result>} */
  #results = new Map()
  /** @type {RecencyList<Result>} */
  #byAge = new RecencyList()
  #last = 0
  /** Channel -> number of its last cleared result. @type {Map<string, {number: number, at: number}>} */
  #cleared = new Map()
  bytes = 0

  get size() {
    return this.#results.size
  }

  get oldest() {
    return this.#byAge.oldest
  }

  /** @param {string} channel @param {string} key @param {number} now unix s */
  get(channel, key, now) {
    const result = this.#results.get(`${channel}\0${key}`)
    if (result === undefined || now - result.usedAt > KEEP_S) return undefined
    return this.#cleared.size > 0 && this.#isCleared(result) ? undefined : result
  }

  /** @param {Result} result */
  #isCleared({ name, number }) {
    const channel = name.slice(0, name.indexOf('\0'))
    return number <= (this.#cleared.get(channel)?.number ?? 0)
  }

  /** Hides the results of a channel until they expire: finding them all takes long. @param {string} channel @param {number} now unix s */
  clear(channel, now) {
    this.#cleared.delete(channel)
    if (this.size > 0) this.#cleared.set(channel, { number: this.#last, at: now })
  }

  /**
   * @param {string} channel @param {string} key @param {number} offset @param {string} epoch @param {number} now unix s
   * @param {boolean} confirmed
   */
  set(channel, key, offset, epoch, now, confirmed) {
    const result = this.restore(`${channel}\0${key}`, offset, epoch, now)
    result.confirmed = confirmed
    return result
  }

  /** @param {string} name channel and key @param {number} offset @param {string} epoch @param {number} at unix s */
  restore(name, offset, epoch, at) {
    const former = this.#results.get(name)
    if (former) this.forget(former)
    const result = new Result(name, ++this.#last, offset, epoch)
    this.#results.set(name, result)
    this.#byAge.add(result, at)
    this.bytes += cost(name)
    return result
  }

  /** @param {Result} result of this list */
  forget(result) {
    this.#results.delete(result.name)
    this.#byAge.remove(result)
    this.bytes -= cost(result.name)
  }

  /** @param {number} now unix s */
  sweep(now) {
    for (let { oldest } = this; oldest !== null && now - oldest.usedAt > KEEP_S; oldest = this.oldest)
      this.forget(oldest)
    for (const [channel, { at }] of this.#cleared) {
      if (now - at <= KEEP_S) break
      this.#cleared.delete(channel)
    }
  }

  /** From the oldest to the newest. @returns {Generator<Result>} */
  *[Symbol.iterator]() {
    for (const result of this.#byAge) if (!this.#isCleared(result)) yield result
  }
}
