// Waiting that says what it has waited for in vain, where the time limit of a test file would not.

import { setTimeout as pause } from 'node:timers/promises'
import { pauses } from '../../../kit/pauses.js'

export { pause }

/** Nothing takes so long, not even a failover on a busy machine, ms. */
const LIMIT = 120_000

/**
 * @template T
 * @param {Promise<T>} promise
 * @param {() => string} what it is that comes with it
 * @returns {Promise<T>} rejects when it takes too long
 */
export function within(promise, what) {
  // Made here, it names the line of the test.
  const late = new Error('waited in vain')
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      late.message = `waited ${LIMIT / 1000} s for ${what()}`
      reject(late)
    }, LIMIT)
    promise.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

/**
 * @template T
 * @param {() => Promise<T> | T} condition what it throws counts as no
 * @param {() => string} [more] about what was waited for in vain
 * @returns {Promise<NonNullable<T>>} its first value that is true; rejects when there is none for long
 */
export function until(condition, more = () => '') {
  let ended = false
  /** @type {unknown} */
  let last
  const found = async () => {
    for (const ms of pauses()) {
      if (ended) break
      try {
        last = 'no answer'
        last = await condition()
        if (last) return /** @type {NonNullable<T>} */ (last)
      } catch (error) {
        last = error
      }
      await pause(ms)
    }
    return /** @type {any} */ (null)
  }
  return within(found(), () => {
    ended = true
    return `${condition.toString().replace(/\s+/g, ' ')}, at last: ${last} ${more()}`.trim()
  })
}
