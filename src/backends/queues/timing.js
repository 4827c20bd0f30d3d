// Delays and time limits of consumers and republishers.

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

const FIRST_RECONNECT_MS = 100

/** @param {number} failures from 1 @returns {number} ms until a destination connects again */
export const reconnectDelay = failures =>
  Math.min(MAX_MS, FIRST_RECONNECT_MS * 2 ** Math.min(failures - 1, 10)) * (0.75 + Math.random() / 2)

/**
 * @template T
 * @param {Promise<T>} work @param {number} ms @param {string} text of the error when time is over
 * @returns {Promise<T>}
 */
export async function limited(work, ms, text) {
  /** @type {NodeJS.Timeout | undefined} */
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(text)), ms)
  })
  try {
    return await Promise.race([work, /** @type {Promise<never>} */ (late)])
  } finally {
    clearTimeout(timer)
  }
}

/** @param {Promise<any>} work @param {number} ms @returns {Promise<void>} when it has ended or failed, or time is over */
export const within = (work, ms) =>
  limited(work, ms, 'late').then(
    () => {},
    () => {},
  )
