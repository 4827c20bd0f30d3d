// Token buckets of one owner, a session or a user, for all of its limits: one array of numbers, because there may be a
// million owners. Each limit has a record in it, from its first command on:
//
//   id of the limit, number of buckets, time (ms), tokens of each bucket at that time

/** @import { Bucket } from '../../config/rate-limits.js' */

/** @typedef {{rates: number[] | null}} Owner */

/** Rounding errors of refilled buckets. */
const ONE = 1 - 1e-9

/** Buckets that are charged together. */
export class Limit {
  /**
   * @param {number} id of the key @param {string} key of its tokens, equal in all configurations
   * @param {string} label of metrics @param {readonly Bucket[]} buckets
   */
  constructor(id, key, label, buckets) {
    this.id = id
    this.key = key
    this.label = label
    this.capacities = buckets.map(({ rate }) => rate)
    /** Tokens per ms. */
    this.rates = buckets.map(({ rate, interval }) => rate / interval)
    /** For RateStore: capacity, interval (ms), capacity ... */
    this.buckets = buckets.flatMap(({ rate, interval }) => [rate, interval])
  }
}

/** @param {readonly number[]} values @param {number} id of a limit @returns {number} index of its record, or the end */
function indexOf(values, id) {
  let at = 0
  while (at < values.length && values[at] !== id) at += 3 + values[at + 1]
  return at
}

/** @param {readonly number[]} values @param {Limit} limit @returns {number} index of its record; -1: none of this size */
function find(values, { id, capacities }) {
  const at = indexOf(values, id)
  return at < values.length && values[at + 1] === capacities.length ? at : -1
}

/**
 * Adds a record with full buckets, or the buckets that a reload has added.
 * @param {number[]} values @param {Limit} limit @param {number} now ms
 * @returns {number[]} of exactly this size: arrays that grow by `push` reserve space for 16 more
 */
function withRecord(values, { id, capacities }, now) {
  const at = indexOf(values, id)
  if (at === values.length) return values.concat([id, capacities.length, now, ...capacities])
  const count = values[at + 1]
  const tokens = capacities.map((capacity, i) => (i < count ? values[at + 3 + i] : capacity))
  const record = [id, capacities.length, values[at + 2], ...tokens]
  return values.slice(0, at).concat(record, values.slice(at + 3 + count))
}

/** @param {number[]} values @param {number} at @param {Limit} limit @param {number} i bucket @param {number} now ms */
const tokensOf = (values, at, { capacities, rates }, i, now) =>
  Math.min(capacities[i], values[at + 3 + i] + (now - values[at + 2]) * rates[i])

/** @param {number[]} values @param {number} at @param {Limit} limit @param {number} now ms */
function hasTokens(values, at, limit, now) {
  for (let i = 0; i < limit.capacities.length; i++)
    if (tokensOf(values, at, limit, i, now) < ONE) return false
  return true
}

/** Takes those that are left. @param {number[]} values @param {number} at @param {Limit} limit @param {number} now ms */
function takeTokens(values, at, limit, now) {
  for (let i = 0; i < limit.capacities.length; i++)
    values[at + 3 + i] = Math.max(0, tokensOf(values, at, limit, i, now) - 1)
  values[at + 2] = now
}

/**
 * Takes a token of each bucket of one or two limits.
 * @param {Owner} owner @param {Limit} first @param {Limit | null} second @param {number} now ms
 * @param {boolean} always takes what is left even if a limit refuses
 * @returns {Limit | null} the limit that refuses
 */
export function charge(owner, first, second, now, always) {
  let values = (owner.rates ??= [])
  let at = find(values, first)
  let next = second === null ? 0 : find(values, second)
  if (at < 0 || next < 0) {
    if (at < 0) values = withRecord(values, first, now)
    if (second !== null && next < 0) values = withRecord(values, second, now)
    owner.rates = values
    at = find(values, first)
    if (second !== null) next = find(values, second)
  }
  let over = null
  if (!hasTokens(values, at, first, now)) over = first
  else if (second !== null && !hasTokens(values, next, second, now)) over = second
  if (over !== null && !always) return over
  takeTokens(values, at, first, now)
  if (second !== null) takeTokens(values, next, second, now)
  return over
}

/**
 * @param {Owner} owner @param {readonly (Limit | null)[]} limits by id; null: no longer configured
 * @param {number} now ms
 * @returns {number} ms until all buckets are full
 */
export function untilFull({ rates: values }, limits, now) {
  let ms = 0
  if (values === null) return ms
  for (let at = 0; at < values.length; at += 3 + values[at + 1]) {
    const limit = limits[values[at]]
    for (let i = 0; limit && i < Math.min(values[at + 1], limit.capacities.length); i++) {
      const missing = limit.capacities[i] - tokensOf(values, at, limit, i, now)
      ms = Math.max(ms, missing / limit.rates[i])
    }
  }
  return ms
}
