import { setTimeout as wait } from 'node:timers/promises'

const BASE_MS = 10
const SPREAD_MS = 10
const MAX_MS = 5000
/** From here on every delay is the longest. */
const MAX_TRIES = 9

/**
 * Delay before the n-th retry: (10 ms + random 0 to 9 ms) × 2^n, at most 5 s; as in Centrifugo.
 * @param {number} tries n, from 1 @param {() => number} [random] 0 to below 1
 * @returns {number} ms
 */
export function backoffDelay(tries, random = Math.random) {
  if (tries >= MAX_TRIES) return MAX_MS
  return Math.min(MAX_MS, (BASE_MS + Math.floor(random() * SPREAD_MS)) * 2 ** Math.max(1, tries))
}

/** @param {number} ms @param {AbortSignal} signal @returns {Promise<void>} after `ms`, or on abort; never rejects */
export const pause = (ms, signal) => wait(ms, undefined, { signal }).catch(() => {})
