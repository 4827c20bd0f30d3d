import { IDEMPOTENCY_TTL } from '../contract.js'
import { Aged, RecencyList } from './recency.js'

const KEEP_S = IDEMPOTENCY_TTL / 1000
/** Bytes of a result besides its name, as measured. */
const OVERHEAD = 200

/** The result of a publication with an idempotency key. */
export class Result extends Aged {
  /** false: a republisher that is `required` has not confirmed it. */
  confirmed = true

  /** @param {string} name channel and key @param {number} offset @param {string} epoch */
  constructor(name, offset, epoch) {
    super()
    this.name = name
    this.offset = offset
    this.epoch = epoch
  }
}

/** @param {string} name channel and key @returns {number} bytes, with two for each character */
const cost = name => 2 * name.length + OVERHEAD

/**
 * The results of publications with an idempotency key. All live equally long: the oldest expires first. No TimerWheel:
 * the list is also the order in which a full memory drops them, and the store sweeps it once a second.
 */
export class Results {
  /** @type {Map<string, Result>} */
  #results = new Map()
  /** @type {RecencyList<Result>} */
  #byAge = new RecencyList()
  bytes = 0

  get size() {
    return this.#results.size
  }

  /** @returns {Result | null} */
  get oldest() {
    return this.#byAge.oldest
  }

  /** @param {string} channel @param {string} key @param {number} now unix s */
  get(channel, key, now) {
    const result = this.#results.get(`${channel}\0${key}`)
    return result && now - result.usedAt <= KEEP_S ? result : undefined
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
    const result = new Result(name, offset, epoch)
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
  }

  /** From the oldest to the newest. */
  [Symbol.iterator]() {
    return this.#byAge[Symbol.iterator]()
  }
}
