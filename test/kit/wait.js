// Waiting with a deadline: an error that says what was missing, where the time limit of a test file would not.

import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises'

export { pause, turn }

/** Nothing takes longer, not even a failover on a busy machine, ms. */
const TIMEOUT = 120_000
/** Looks that follow each other at once, for what another turn of the event loop does. */
const TURNS = 3
/** A look can be expensive (a program, a request) and slows down what is waited for: looks become less frequent. */
const PAUSE = { first: 1, longest: 150, growth: 1.5 }

/**
 * @template T
 * @param {Promise<T>} promise
 * @param {string | (() => string)} what it brings, for the error
 * @param {{timeout?: number}} [options] timeout: ms
 * @returns {Promise<T>}
 * @throws {Error} it is still pending after the timeout
 */
export function within(promise, what, { timeout = TIMEOUT } = {}) {
  // Created here, its stack names the line of the test.
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
 * @param {() => Promise<T> | T} condition an error that it throws counts as false
 * @param {string | (() => string)} [what] is missing, for the error; default: the source text of the condition
 * @param {{timeout?: number, everyTurn?: boolean}} [options] timeout: ms; everyTurn: look in each turn of the event
 *   loop, for a condition that does work
 * @returns {Promise<NonNullable<T>>} its first truthy value
 * @throws {Error} there is none before the timeout
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
 * Waits until a value is as expected.
 * @template T
 * @param {() => T | Promise<T>} read
 * @param {(value: T) => boolean} good
 * @param {{timeout?: number}} [options] timeout: ms
 * @returns {Promise<T>} the first good value; after the timeout the last one, for the test to compare
 */
export async function eventually(read, good, { timeout = TIMEOUT / 2 } = {}) {
  /** @type {any} */
  let value
  await until(async () => good((value = await read())), '', { timeout }).catch(() => {})
  return value
}
