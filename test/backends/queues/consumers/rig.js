// A consumer without a gateway: its messages go to the test.

import { setTimeout as wait } from 'node:timers/promises'
import { TYPES } from '../../../../src/backends/queues/types.js'
import { loadConfig } from '../../../../src/config/load.js'

/** @param {string} type @param {object} block @returns {any} item of `consumers` */
export const item = (type, block) => ({ name: 'orders', enabled: true, type, [type]: block })

/**
 * @param {any} t stops it at its end
 * @param {string} type
 * @param {object} block of the type, as in a configuration
 * @param {(message: any) => any} [handle] outcome of a message, whose payload is in `text`; default: done
 */
export async function makeConsumer(t, type, block, handle = () => 'done') {
  const { config } = loadConfig({ base: { consumers: [item(type, block)] } })
  const { create } = await TYPES[type].consumer()
  const log = level => (fields, msg) => void rig.lines.push({ level, msg, ...fields })
  let running = 0
  const rig = {
    /** Handled messages with their outcomes. */
    messages: [],
    failures: [],
    lines: [],
    lags: [],
    /** Maximum of messages in work at the same time. */
    concurrent: 0,
    get done() {
      return rig.messages.filter(({ outcome }) => outcome !== 'retry')
    },
    get texts() {
      return rig.done.map(({ text }) => text)
    },
    consumer: create(
      /** @type {any} */ ({
        name: 'orders',
        options: config.consumers[0][type],
        node: 'node',
        log: { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') },
        clock: Date.now,
        async handle(message, since) {
          rig.concurrent = Math.max(rig.concurrent, ++running)
          const { payload, headers } = message
          const call = { ...message, headers: { ...headers }, text: payload && String(payload), since }
          const outcome = await handle(call)
          running--
          rig.messages.push({ ...call, outcome })
          return outcome
        },
        failed: error => rig.failures.push(error),
        lag: count => rig.lags.push(count),
        backoff: (tries, signal) =>
          wait(Math.min(5000, 10 * 2 ** tries), undefined, { signal }).catch(() => {}),
      }),
    ),
  }
  t.teardown(() => rig.consumer.stop())
  return rig
}

/** As `makeConsumer`, started. @type {typeof makeConsumer} */
export async function startConsumer(...args) {
  const rig = await makeConsumer(...args)
  await rig.consumer.start()
  return rig
}

/** @param {number} length @param {string} [prefix] @returns {string[]} `0`, `1` ... */
export const numbered = (length, prefix = '') => Array.from({ length }, (_, index) => `${prefix}${index}`)
