// Consumers: read API commands from queues, streams and tables in the queue process.

import { runningConsumers } from '../../config/consumers.js'
import { MessageRunner } from './messages.js'
import { backoffDelay, pause } from './timing.js'
import { loadType } from './types.js'

/** @import { Config } from '../../config/options.js' */
/** @import { ApiContext } from '../api/context.js' */
/** @import { LimitedLog } from '../../base/log.js' */
/** @import { Consumer, ConsumerContext } from './contract.js' */
/** @import { ConsumerFigures } from '../../metrics/schema.js' */
/** @import { Result } from './messages.js' */

/** Time after which a failed message without retry no longer counts as in progress, ms. */
const FORGET_MS = 60_000

class Figures {
  errors = 0
  /** @type {number | null} */
  lag = null
  #processed = 0
  #retries = 0
  /** @type {Record<string, number>} */
  #skipped = {}
  /** Unix ms of messages in progress. @type {Map<object, number>} */
  #working = new Map()
  /** Pending delays, ms. @type {Map<object, number>} */
  #waiting = new Map()
  #oldest = 0
  /** Oldest failed message and its last failure. */
  #failed = { since: 0, at: 0 }
  #clock

  /** @param {string} name @param {string} type @param {() => number} clock unix ms */
  constructor(name, type, clock) {
    this.name = name
    this.type = type
    this.#clock = clock
  }

  /** Counts a message. @param {Promise<Result>} work @param {number} [since] unix ms @returns {Promise<Result>} */
  async count(work, since) {
    const token = {}
    if (since !== undefined) this.#working.set(token, since)
    const result = await work
    this.#working.delete(token)
    const retry = result.outcome === 'retry'
    if (retry) {
      this.errors++
      this.#retries++
    } else this.#processed++
    if (result.outcome === 'skipped') this.#skipped[result.reason] = (this.#skipped[result.reason] ?? 0) + 1
    if (since === undefined) return result
    const now = this.#clock()
    this.#oldest = Math.max(this.#oldest, now - since)
    if (retry && (this.#failed.since === 0 || since <= this.#failed.since)) this.#failed = { since, at: now }
    else if (!retry && since === this.#failed.since) this.#failed = { since: 0, at: 0 }
    return result
  }

  /** @param {number} ms @param {AbortSignal} signal */
  async pause(ms, signal) {
    const token = {}
    this.#waiting.set(token, ms)
    await pause(ms, signal)
    this.#waiting.delete(token)
  }

  /** @returns {ConsumerFigures} */
  sample() {
    const now = this.#clock()
    const { name, type, errors, lag } = this
    const { since, at } = this.#failed
    const failed = since > 0 && now - at < FORGET_MS ? now - since : 0
    const ages = [...this.#working.values()].map(since => now - since)
    const age = Math.max(0, this.#oldest, failed, ...ages)
    this.#oldest = 0
    const backoff = Math.max(0, ...this.#waiting.values())
    const counts = {
      processed: this.#processed,
      skipped: { ...this.#skipped },
      errors,
      retries: this.#retries,
    }
    return { name, type, ...counts, age, backoff, lag }
  }
}

/** Adds the consumer name to every line and rate-limits by it. @param {LimitedLog} log @param {string} consumer */
function logOf(log, consumer) {
  /** @param {'debug' | 'info' | 'warn' | 'error'} level */
  const write =
    level =>
    (/** @type {any} */ fields, /** @type {string} */ message, /** @type {string} */ key = '') =>
      log[level](
        () => ({ consumer, ...(typeof fields === 'function' ? fields() : fields) }),
        message,
        `${consumer} ${message} ${key}`,
      )
  const [debug, info, warn, error] = [write('debug'), write('info'), write('warn'), write('error')]
  return /** @type {any} */ ({ debug, info, warn, error })
}

/**
 * `node`: uid; `origin`: this cluster in `halley-origin`: its messages are skipped; `clock`: unix ms.
 * @typedef {{config: Config, api: ApiContext, node: string, origin?: string, log: LimitedLog,
 *   clock: () => number}} Parts
 */

export class Consumers {
  #parts
  /** @type {{name: string, consumer: Consumer, started: Promise<void>}[]} */
  #running = []
  /** @type {Figures[]} */
  #figures = []
  #stopping = new AbortController()

  /** @param {Parts} parts */
  constructor(parts) {
    this.#parts = parts
  }

  /**
   * @param {boolean} first gateway startup: an unreachable server is an error; otherwise its consumer keeps retrying
   * @throws {Error} one line naming the consumer
   */
  async start(first) {
    const { config, clock, origin = '' } = this.#parts
    const consumers = runningConsumers(config)
    const modules = await Promise.all(consumers.map(({ name, type }) => loadType('consumer', name, type)))
    for (const [i, { name, type, own_origin: ownOrigin, [type]: options }] of consumers.entries()) {
      const figures = new Figures(name, type, clock)
      this.#figures.push(figures)
      const context = this.#contextOf(name, options, figures, ownOrigin ? '' : origin)
      this.#running.push({ name, consumer: modules[i].create(context), started: Promise.resolve() })
    }
    for (const running of this.#running) {
      const { name, consumer } = running
      running.started = first
        ? consumer.start().catch(({ message }) => {
            throw new Error(`consumer "${name}": ${message}`)
          })
        : this.#startWithRetries(name, consumer)
    }
    if (first) await Promise.all(this.#running.map(({ started }) => started))
  }

  /** Retries until the consumer starts or `stop` is called. @param {string} name @param {Consumer} consumer */
  async #startWithRetries(name, consumer) {
    const { signal } = this.#stopping
    for (let tries = 1; !signal.aborted; tries++) {
      try {
        return await consumer.start()
      } catch ({ message }) {
        this.#parts.log.error({ consumer: name, reason: message }, 'consumer not started')
      }
      await pause(backoffDelay(tries), signal)
    }
  }

  /**
   * @param {string} name @param {any} options @param {Figures} figures @param {string} origin see MessageRunner
   * @returns {ConsumerContext<any>}
   */
  #contextOf(name, options, figures, origin) {
    const { api, node, clock } = this.#parts
    const log = logOf(this.#parts.log, name)
    const runner = new MessageRunner(api, options.publication_data_mode, origin)
    return {
      name,
      options,
      node,
      log,
      clock,
      async handle(message, since) {
        const result = await figures.count(runner.run(message), since)
        if (result.outcome === 'retry') log.error({}, 'message failed and will be retried')
        else if (result.outcome === 'skipped') {
          const { reason, what: error } = result
          log.warn({ reason, error }, 'message skipped', reason)
        }
        return result.outcome
      },
      failed(error) {
        figures.errors++
        log.error({ reason: error.message }, 'consumer source failed')
      },
      lag(messages) {
        figures.lag = messages
      },
      backoff: (tries, signal) => figures.pause(backoffDelay(tries), signal),
    }
  }

  /** Stops reading. @returns {Promise<void>} when messages in progress are finished and acknowledged */
  async stop() {
    this.#stopping.abort()
    await Promise.all(
      this.#running.map(async ({ consumer, started }) => {
        await started.catch(() => {})
        await consumer.stop()
      }),
    )
  }

  /** @returns {ConsumerFigures[]} */
  sample() {
    return this.#figures.map(figures => figures.sample())
  }
}
