// Consumers read API commands from queues, streams and tables. They run in the queue process of a node
// (src/processes/queues/main.js).

import { runningConsumers } from '../../config/consumers.js'
import { MessageRunner } from './messages.js'
import { backoffDelay, pause } from './timing.js'
import { loadType } from './types.js'

/** @import { Config } from '../../config/options.js' */
/** @import { ApiContext } from '../api/context.js' */
/** @import { LimitedLog } from '../../base/log.js' */
/** @import { Consumer, ConsumerContext } from './contract.js' */
/** @import { ConsumerFigures } from '../../metrics/schema.js' */

/** A failed message that nobody tries again for this long is no longer in work here, ms. */
const FORGET_MS = 60_000

/** Metrics of one consumer. */
class Figures {
  processed = 0
  errors = 0
  retries = 0
  /** @type {number | null} */
  lag = null
  /** @type {Map<string, number>} */
  #skipped = new Map()
  /** Unix ms of the messages in work. @type {Map<object, number>} */
  #working = new Map()
  /** Delays under way. @type {Map<object, number>} */
  #waiting = new Map()
  #oldest = 0
  /** The oldest failed message, and when it failed last. */
  #failed = { since: 0, at: 0 }
  #clock

  /** @param {string} name @param {string} type @param {() => number} clock unix ms */
  constructor(name, type, clock) {
    this.name = name
    this.type = type
    this.#clock = clock
  }

  /** @param {string} reason */
  skipped(reason) {
    this.#skipped.set(reason, (this.#skipped.get(reason) ?? 0) + 1)
  }

  /** @param {object} token of the try @param {number} since unix ms */
  begins(token, since) {
    this.#working.set(token, since)
  }

  /** @param {object} token @param {number | undefined} since @param {boolean} retry */
  ends(token, since, retry) {
    this.#working.delete(token)
    if (since === undefined) return
    const now = this.#clock()
    this.#oldest = Math.max(this.#oldest, now - since)
    if (retry && (this.#failed.since === 0 || since <= this.#failed.since)) this.#failed = { since, at: now }
    else if (!retry && since === this.#failed.since) this.#failed = { since: 0, at: 0 }
  }

  /** @param {object} token @param {number} ms */
  waits(token, ms) {
    this.#waiting.set(token, ms)
  }

  /** @param {object} token */
  waited(token) {
    this.#waiting.delete(token)
  }

  /** @returns {ConsumerFigures} */
  sample() {
    const now = this.#clock()
    const { name, type, processed, errors, retries, lag } = this
    let age = this.#oldest
    this.#oldest = 0
    for (const since of this.#working.values()) age = Math.max(age, now - since)
    if (this.#failed.since > 0 && now - this.#failed.at < FORGET_MS)
      age = Math.max(age, now - this.#failed.since)
    const backoff = Math.max(0, ...this.#waiting.values())
    return {
      name,
      type,
      processed,
      skipped: Object.fromEntries(this.#skipped),
      errors,
      retries,
      age: Math.max(0, age),
      backoff,
      lag,
    }
  }
}

/**
 * @param {LimitedLog} log @param {string} consumer its name
 * @returns {LimitedLog} adds the name to every line, and limits by consumer
 */
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
  return /** @type {any} */ ({
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
  })
}

/** All consumers of a node. */
export class Consumers {
  #config
  #api
  #node
  #origin
  #log
  #clock
  /** @type {{name: string, consumer: Consumer, started: Promise<void>}[]} */
  #running = []
  /** @type {Figures[]} */
  #figures = []
  #stopping = new AbortController()

  /**
   * @param {object} parts @param {Config} parts.config @param {ApiContext} parts.api
   * @param {string} parts.node uid of the node
   * @param {string} [parts.origin] this cluster in `halley-origin`: consumers skip its messages
   * @param {LimitedLog} parts.log @param {() => number} parts.clock unix ms
   */
  constructor({ config, api, node, origin = '', log, clock }) {
    this.#config = config
    this.#api = api
    this.#node = node
    this.#origin = origin
    this.#log = log
    this.#clock = clock
  }

  /**
   * Starts all enabled consumers.
   * @param {boolean} first whether the gateway starts: then a server that cannot be reached is an error. Otherwise its
   *   consumer keeps trying
   * @throws {Error} in one line that names the consumer
   */
  async start(first) {
    const consumers = runningConsumers(this.#config)
    const modules = await Promise.all(consumers.map(({ name, type }) => loadType('consumer', name, type)))
    for (const [i, { name, type, own_origin: ownOrigin, [type]: options }] of consumers.entries()) {
      const figures = new Figures(name, type, this.#clock)
      this.#figures.push(figures)
      const context = this.#contextOf(name, options, figures, ownOrigin ? '' : this.#origin)
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

  /** Tries until the consumer starts or `stop` is called. @param {string} name @param {Consumer} consumer */
  async #startWithRetries(name, consumer) {
    const { signal } = this.#stopping
    for (let tries = 1; !signal.aborted; tries++) {
      try {
        return await consumer.start()
      } catch ({ message }) {
        this.#log.error({ consumer: name, reason: message }, 'consumer not started')
      }
      await pause(backoffDelay(tries), signal)
    }
  }

  /**
   * @param {string} name @param {any} options @param {Figures} figures @param {string} origin see MessageRunner
   * @returns {ConsumerContext}
   */
  #contextOf(name, options, figures, origin) {
    const log = logOf(this.#log, name)
    const runner = new MessageRunner(this.#api, options.publication_data_mode, origin)
    return {
      name,
      options,
      node: this.#node,
      log,
      clock: this.#clock,
      async handle(message, since) {
        const token = {}
        if (since !== undefined) figures.begins(token, since)
        const result = await runner.run(message)
        const retry = result.outcome === 'retry'
        figures.ends(token, since, retry)
        if (retry) {
          figures.errors++
          figures.retries++
          log.error({}, 'a message failed, and is tried again')
        } else figures.processed++
        if (result.outcome === 'skipped') {
          const { reason, what: error } = result
          figures.skipped(reason)
          log.warn({ reason, error }, 'a message was skipped', reason)
        }
        return result.outcome
      },
      failed(error) {
        figures.errors++
        log.error({ reason: error.message }, 'the source of a consumer failed')
      },
      lag(messages) {
        figures.lag = messages
      },
      async backoff(tries, signal) {
        const token = {}
        const ms = backoffDelay(tries)
        figures.waits(token, ms)
        await pause(ms, signal)
        figures.waited(token)
      },
    }
  }

  /** Stops reading. @returns {Promise<void>} when all messages in work are finished and acknowledged */
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
