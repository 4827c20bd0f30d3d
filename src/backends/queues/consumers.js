// Consumers read API commands from queues, streams and tables. They run in the queue process of a node
// (src/processes/queues/main.js). contract.js says what a consumer must do; TYPES below is the only list of the types.
// This folder imports api and below.

import { runningConsumers } from '../../config/consumers.js'
import { backoffDelay, pause } from './backoff.js'
import { Figures } from './figures.js'
import { MessageRunner } from './messages.js'

/** @import { ApiContext } from '../api/context.js' */
/** @import { LimitedLog } from '../../base/log.js' */
/** @import { Consumer, ConsumerContext } from './consumer-contract.js' */
/** @import { ConsumerFigures } from '../../metrics/schema.js' */

/**
 * @typedef {{create: (context: ConsumerContext) => Consumer}} TypeModule
 * @typedef {object} Type
 * @property {string} type @property {() => Promise<TypeModule>} load
 * @property {readonly string[]} packages optional packages that it needs, as arguments of `npm install`
 */

/** @type {readonly Type[]} */
const TYPES = Object.freeze([
  { type: 'aws_sqs', load: () => import('./sqs/consumer.js'), packages: ['@aws-sdk/client-sqs@3'] },
  {
    type: 'nats_jetstream',
    load: () => import('./nats/consumer.js'),
    packages: ['@nats-io/transport-node@3', '@nats-io/jetstream@3'],
  },
  { type: 'postgresql', load: () => import('./postgresql/consumer.js'), packages: ['pg@8'] },
  { type: 'redis_stream', load: () => import('./redis/consumer.js'), packages: [] },
  { type: 'kafka', load: () => import('./kafka/consumer.js'), packages: ['@platformatic/kafka@2'] },
  { type: 'rabbitmq', load: () => import('./rabbitmq/consumer.js'), packages: ['amqplib@2'] },
])

/** @param {string} spec `@scope/name@2` @returns {string} `@scope/name` */
const packageOf = spec => spec.replace(/(?!^)@.*$/, '')

/**
 * @param {string} name of the consumer @param {string} type @returns {Promise<TypeModule>}
 * @throws {Error} in one line if a package is not installed
 */
async function load(name, type) {
  const known = /** @type {Type} */ (TYPES.find(candidate => candidate.type === type))
  try {
    return await known.load()
  } catch (error) {
    // `import` has the first code; `require`, in a CommonJS package, has the second.
    const missing =
      ['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND'].includes(error.code) &&
      known.packages.find(spec => error.message.includes(`'${packageOf(spec)}'`))
    if (!missing) throw error
    const needs = `needs the package ${packageOf(missing)}: npm install ${known.packages.join(' ')}`
    throw new Error(`consumer "${name}": type ${type} ${needs}`)
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
   * @param {object} parts @param {any} parts.config @param {ApiContext} parts.api
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
    const modules = await Promise.all(consumers.map(({ name, type }) => load(name, type)))
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
