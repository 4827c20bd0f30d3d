// Waiting with a deadline; errors name the missing condition.

import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises'

export { pause, turn }

/** Longer than a failover on a busy machine, ms. */
const TIMEOUT = 120_000
/** Checks in consecutive turns of the event loop. */
const TURNS = 3
/** Checks may be expensive (a program, a request), so the pause grows. */
const PAUSE = { first: 1, longest: 150, growth: 1.5 }

/**
 * @template T
 * @param {Promise<T>} promise @param {string | (() => string)} what for the error
 * @param {{timeout?: number}} [options] timeout: ms
 * @returns {Promise<T>}
 * @throws {Error} pending after the timeout
 */
export function within(promise, what, { timeout = TIMEOUT } = {}) {
  // Its stack has the line of the test.
  const late = new Error('timeout')
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      late.message = `waited ${timeout / 1000} s for ${typeof what === 'string' ? what : what()}`
      reject(late)
    }, timeout).unref()
    promise.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

/**
 * Waits until a condition holds.
 * @template T
 * @param {() => Promise<T> | T} condition an error counts as false
 * @param {string | (() => string)} [what] for the error; default: the source of the condition
 * @param {{timeout?: number, everyTurn?: boolean}} [options] timeout: ms; everyTurn: check in each turn of the event
 *   loop
 * @returns {Promise<NonNullable<T>>} its first truthy value
 * @throws {Error} none before the timeout
 */
export function until(condition, what = '', { timeout, everyTurn = false } = {}) {
  let ended = false
  /** @type {unknown} */
  let last = 'no answer'
  const found = async () => {
    let ms = PAUSE.first
    for (let looks = 1; !ended; looks++) {
      try {
        last = await condition()
        if (last) return /** @type {NonNullable<T>} */ (last)
      } catch (error) {
        last = error
      }
      if (everyTurn || looks <= TURNS) await turn()
      else {
        await pause(ms)
        ms = Math.min(PAUSE.growth * ms, PAUSE.longest)
      }
    }
    return /** @type {any} */ (null)
  }
  const missing = () => {
    ended = true
    const more = typeof what === 'string' ? what : what()
    return `${more || condition.toString().replace(/\s+/g, ' ')}; last: ${last}`
  }
  return within(found(), missing, { timeout })
}

/**
 * Waits until a value is good, for a later assertion.
 * @template T
 * @param {() => T | Promise<T>} read @param {(value: T) => boolean} good @param {{timeout?: number}} [options] timeout:
 *   ms
 * @returns {Promise<T>} the first good value; after the timeout the last one
 */
export async function eventually(read, good, { timeout = TIMEOUT / 2 } = {}) {
  /** @type {any} */
  let value
  await until(async () => good((value = await read())), '', { timeout }).catch(() => {})
  return value
}
