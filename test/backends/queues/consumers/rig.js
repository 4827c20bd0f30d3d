// A consumer without a gateway: its messages go to the test.

import { setTimeout as wait } from 'node:timers/promises'

/**
 * @param {any} t stops it at its end
 * @param {(context: any) => any} create of the type
 * @param {Record<string, any>} options all of the type
 * @param {(message: any) => any} [handle] outcome of a message; default: done
 */
export function makeConsumer(t, create, options, handle = () => 'done') {
  /** @type {any[]} */
  const messages = []
  /** @type {Error[]} */
  const failures = []
  /** @type {any[]} */
  const lines = []
  /** @type {number[]} */
  const lags = []
  /** @type {Set<() => void>} */
  const waiting = new Set()
  const changed = () => {
    for (const look of waiting) look()
  }
  const log = (/** @type {string} */ level) => (/** @type {object} */ fields, /** @type {string} */ msg) => {
    lines.push({ level, msg, ...fields })
    changed()
  }
  const consumer = create({
    name: 'orders',
    options,
    node: 'node',
    log: /** @type {any} */ ({
      debug: log('debug'),
      info: log('info'),
      warn: log('warn'),
      error: log('error'),
    }),
    clock: Date.now,
    async handle(message, since) {
      const outcome = await handle(message)
      messages.push({ ...message, since, outcome })
      changed()
      return outcome
    },
    failed(error) {
      failures.push(error)
      changed()
    },
    lag(count) {
      lags.push(count)
      changed()
    },
    backoff: (tries, signal) => wait(Math.min(5000, 10 * 2 ** tries), undefined, { signal }).catch(() => {}),
  })
  t.teardown(() => consumer.stop())
  return {
    consumer,
    messages,
    failures,
    lines,
    lags,
    /** @param {() => any} condition looked at after each event @returns {Promise<void>} */
    until(condition) {
      return new Promise(resolve => {
        const look = () => {
          if (!condition()) return
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        look()
      })
    },
  }
}
