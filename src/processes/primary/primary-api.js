import { setTimeout as wait } from 'node:timers/promises'
import { ApiError } from '../../backends/api/api-error.js'
import { NodeInfo } from '../../backends/api/info.js'
import { Publisher } from '../../backends/api/publish.js'
import { Requests } from '../../backends/api/requests.js'
import { runCall } from '../../backends/api/run.js'
import { limitCalls } from '../../backends/api/wire.js'
import { LimitedLog } from '../../base/log.js'
import { ChannelRules } from '../../clients/auth/channel-rules.js'
import { Call } from '../../clients/transport/calls.js'
import { derive } from '../../config/derive.js'
import { usesStatusRedis } from '../../config/user-status.js'
import { Traffic } from '../../metrics/traffic.js'

/** @import { Logger } from 'pino' */
/** @import { ApiContext } from '../../backends/api/context.js' */
/** @import { Counts } from '../../metrics/schema.js' */
/** @import { WorkerPool } from './worker-pool.js' */

/** Maximum attempts of a call, each on another worker. */
const MAX_ATTEMPTS = 3
/** Time for calls in flight on shutdown, ms. */
const END_TIMEOUT_MS = 1000

/**
 * The server API in the primary, for the embedding program. With the embedded engine, calls run here, on the broker of
 * this process. With another engine, or with the status of users in Redis, only workers are connected to it: the first responsive worker runs all calls, so
 * they keep their order.
 */
export class PrimaryApi {
  #pool
  #log
  #bus
  /** @type {ApiContext | null} null: workers run the calls */
  #context = null
  #ended = false
  #calls = limitCalls(async (name, text, repeatable) => {
    const context = this.#context
    return JSON.parse(
      await (context ? runCall(name, text, context) : this.#runInWorker(name, text, repeatable)),
    )
  })
  /** @type {Set<Promise<unknown>>} */
  #open = new Set()

  /** @param {WorkerPool} pool not started yet @param {Logger} log */
  constructor(pool, log) {
    this.#pool = pool
    this.#log = new LimitedLog(log)
    this.#bus = pool.connectWithin(this.#log)
    const { config } = pool
    if (config.engine.type === 'memory' && !usesStatusRedis(config)) this.#context = this.#createContext()
  }

  /** @returns {ApiContext} */
  #createContext() {
    const { node, config } = this.#pool
    const { pubsub, presence, maps, polls, denials, control, republishing } = this.#bus
    const rules = derive(
      () => this.#pool.config,
      config => new ChannelRules(config),
    )
    const resolving = { resolve: (/** @type {string} */ channel) => rules().resolve(channel) }
    const traffic = new Traffic([])
    const { enabled, expire_interval } = config.user_status
    const statuses = enabled ? this.#bus.statuses(expire_interval) : null
    const state = { ready: () => true, start: async () => {}, close() {} }
    return {
      rules: resolving,
      broker: {
        pubsub,
        presence,
        maps,
        polls,
        denials,
        control,
        local: control,
        republishing,
        statuses,
        ...state,
      },
      publisher: new Publisher(resolving, pubsub, traffic),
      requests: new Requests(control, () => this.#pool.config.client.acks, traffic),
      nodeInfo: new NodeInfo(node, control, config.node.info_metrics_aggregate_interval, Date.now),
      traffic,
      logger: this.#log,
    }
  }

  /** @type {import('../../backends/api/server-api.js').Send} */
  async send(name, text, repeatable, wait) {
    if (this.#ended || this.#pool.stopping) throw new ApiError('the gateway has stopped')
    const call = this.#calls(name, text, repeatable, wait)
    this.#open.add(call)
    try {
      return await call
    } finally {
      this.#open.delete(call)
    }
  }

  /** @param {string} name @param {string} text @param {boolean} repeatable @returns {Promise<string>} */
  async #runInWorker(name, text, repeatable) {
    /** Numbers of exited workers: their slots may not be updated yet. */
    const failed = new Set()
    for (;;) {
      const serving = this.#pool.slots
        .map(({ current }) => current)
        .filter(process => process?.listening && !process.draining && !failed.has(process.number))
      // On a busy machine all samples may be late: a late response is better than none.
      const chosen = serving.find(process => process?.healthy) ?? serving[0]
      if (!chosen) throw new ApiError('internal server error: no worker available', { code: 100 })
      const { number } = chosen
      try {
        return await this.#call(number, name, text)
      } catch (error) {
        failed.add(number)
        if (repeatable && failed.size < MAX_ATTEMPTS && !this.#ended) continue
        const what =
          'internal server error: the worker exited before responding; the call may have taken effect'
        throw new ApiError(what, { code: 100, cause: error })
      }
    }
  }

  /** @param {number} worker @param {string} name @param {string} text @returns {Promise<string>} */
  #call(worker, name, text) {
    const request = `${String.fromCharCode(Call.API)}${name}\n${text}`
    return new Promise((resolve, reject) =>
      this.#bus.control.call('', worker, request, (error, answer) =>
        error ? reject(error) : resolve(answer.toString()),
      ),
    )
  }

  /** @returns {Counts | null} since the last call; null: workers run the calls and count them */
  drainCounts() {
    return this.#context?.traffic.drain() ?? null
  }

  /** Finishes calls in flight and rejects later ones. */
  async end() {
    this.#ended = true
    this.#context?.requests?.close()
    const late = new AbortController()
    const limit = wait(END_TIMEOUT_MS, undefined, { signal: late.signal }).catch(() => {})
    await Promise.race([Promise.allSettled(this.#open), limit])
    late.abort()
    this.#bus.close()
  }
}
