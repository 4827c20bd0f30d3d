import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { runningConsumers } from '../../config/consumers.js'
import { enabledRepublishers } from '../../config/republish.js'
import { receive } from '../messages.js'
import { childFlags, Forked, QUEUES_SLOT, STDIO } from './forked.js'
import { LIVENESS_TICK_MS } from './liveness.js'
import { RestartDelays } from './restarts.js'

/** @import { Config } from '../../config/options.js' */
/** @import { BrokerHost } from '../../channels/broker/embedded/host.js' */
/** @import { Log } from '../../base/log.js' */
/** @import { ConfigSwitch } from './config-switch.js' */
/** @import { FromQueues, Handlers, Message, QueuesStart, ToQueues } from '../messages.js' */

const PROGRAM = fileURLToPath(new URL('../queues/main.js', import.meta.url))
/** Share of `shutdown.timeout` that consumers have to finish the messages they are handling. */
const DRAIN_SHARE = 0.5
/** Time that republishers have to empty their queues: at most this, and this share of `shutdown.timeout`. */
const REPUBLISH_MS = 5000
const REPUBLISH_SHARE = 0.2

/** One generation of the queue process. @extends {Forked<ToQueues>} */
class Generation extends Forked {
  started = false
  /** Whether it was told to finish. Then its end is expected. */
  draining = false
  /** @type {() => void} */
  onDrained = () => {}

  /**
   * @param {number} generation
   * @param {Config} config
   */
  constructor(generation, config) {
    const child = fork(PROGRAM, [], { execArgv: childFlags(process.execArgv), stdio: [...STDIO] })
    super(child, { slot: QUEUES_SLOT, generation, title: 'queue process', name: 'queues' }, config)
    /** @type {Promise<void>} it has finished, has ended, or was too slow */
    this.drained = new Promise(resolve => (this.onDrained = () => resolve()))
    /** @type {Promise<string>} reason of its end */
    this.ended = new Promise(resolve => {
      this.child.once('exit', (code, signal) => {
        this.onDrained()
        resolve(this.reason || (signal ? `signal ${signal}` : `exit code ${code}`))
      })
      this.child.once('error', error => {
        if (!this.forked) resolve(error.message)
      })
    })
  }
}

/**
 * @typedef {object} QueuesParts
 * @property {() => Config} config the current configuration
 * @property {BrokerHost} host
 * @property {() => Omit<QueuesStart, 'type' | 'config' | 'number' | 'first'>} facts other fields of the start message
 * @property {() => ConfigSwitch} configSwitch
 * @property {Log} log
 */

/** @typedef {{messages: Partial<Handlers<FromQueues>>, ended: () => void}} QueuesObserver */

/**
 * Supervises the queue process of a node, which runs consumers and republishers. Starts it when the workers listen,
 * restarts it when it dies, and drains it before the clients are disconnected. A configuration without consumers and
 * republishers has no queue process.
 */
export class QueueProcess {
  /** @type {QueuesObserver | null} */
  observer = null
  #parts
  /** @type {Generation | null} */
  #current = null
  /** Number of processes forked so far. */
  #generations = 0
  /** Consecutive failed starts. */
  #failures = 0
  #delays = new RestartDelays(1, () => performance.now())
  #stopping = false
  /** @type {NodeJS.Timeout | undefined} */
  #restartTimer
  /** @type {Promise<void> | null} */
  #start = null
  /** @type {Promise<void> | null} replacement in progress */
  #replacing = null

  /** @param {QueuesParts} parts */
  constructor(parts) {
    this.#parts = parts
  }

  /** Members of a ConfigSwitch: the process, once it has a configuration. */
  get members() {
    return this.#current?.config ? [this.#current] : []
  }

  /** @returns {number | null} null: no process runs */
  get pid() {
    return this.#current?.pid ?? null
  }

  /** @returns {import('../../metrics/queue-totals.js').RepublishCounts} */
  get republishCounts() {
    return this.#parts.host.republishing.counts
  }

  /** Whether the configuration has a consumer or a republisher. */
  get needed() {
    const config = this.#parts.config()
    return runningConsumers(config).length + enabledRepublishers(config).length > 0
  }

  /** @returns {Promise<void>} when the process has started, if one is needed @throws {Error} in one line */
  start() {
    this.#start ??= this.needed ? this.#fork(true) : Promise.resolve()
    return this.#start
  }

  /**
   * @param {boolean} first whether the gateway starts: then a failed start is not repeated
   * @returns {Promise<void>} when the process has started @throws {Error} if it ends before that
   */
  #fork(first) {
    const generation = new Generation(this.#generations++, this.#parts.config())
    this.#current = generation
    const { bus, name, number, child } = generation
    const { config, facts, configSwitch, host, log } = this.#parts
    // It has no clients, so surveys leave it out.
    if (bus) host.attach(bus, name, number, { surveyed: false, republishes: true })
    return new Promise((resolve, reject) => {
      /** @type {Partial<Handlers<FromQueues>>} */
      const handlers = {
        ready() {
          // A process that starts during a configuration switch would miss its outcome.
          configSwitch().idle.then(() => {
            generation.config = config()
            generation.send({ type: 'start', ...facts(), config: config(), number, first })
          })
        },
        started: () => {
          generation.started = true
          generation.liveness.listens()
          this.#failures = 0
          resolve()
        },
        failed({ message }) {
          generation.reason = message
        },
        switched: message => configSwitch().onMessage(generation, message),
        drained: () => generation.onDrained(),
        sample: ({ debugged }) => generation.liveness.heard(debugged),
      }
      child.on('error', error => log.debug({ err: error }, 'channel of queues failed'))
      child.on('message', (/** @type {Message<FromQueues>} */ message) => {
        receive(handlers, message)
        receive(this.observer?.messages ?? {}, message)
      })
      generation.ended.then(reason => {
        configSwitch().ended(generation)
        if (this.#current === generation) this.#current = null
        this.observer?.ended()
        reject(new Error(reason))
        if (this.#stopping || generation.draining || (first && !generation.started)) return
        this.#restart(generation, reason)
      })
    })
  }

  /** @param {Generation} generation that died @param {string} reason */
  #restart({ started, startedAt, pid }, reason) {
    this.#failures = started ? 0 : this.#failures + 1
    const delay = this.#delays.next(this.#failures, true)
    this.#parts.log.error(
      { reason, pid, lived_ms: Date.now() - startedAt, failed_starts: this.#failures, restart_in_ms: delay },
      'queue process died',
    )
    this.#restartTimer = setTimeout(() => {
      if (!this.#stopping && this.#current === null) this.#fork(false).catch(() => {})
    }, delay)
  }

  /**
   * Replaces the process. The new one starts after the end of the old one, so the two never read at the same time.
   * @returns {Promise<void>} when the new process has started or failed to; at once if there is none to replace
   */
  replace() {
    this.#replacing ??= this.#replace().finally(() => {
      this.#replacing = null
    })
    return this.#replacing
  }

  async #replace() {
    const old = this.#current
    if (old === null || !old.started || this.#stopping) return
    await this.#drain(old)
    this.#terminate(old)
    await old.ended
    if (this.#stopping) return
    const started = this.#fork(false).then(
      () => true,
      // #restart logs the failure and starts the process again.
      () => false,
    )
    if (await started) this.#parts.log.info({}, 'queue process replaced')
  }

  /**
   * Stops its consumers. One that has not started is killed.
   * @param {Generation} generation @returns {Promise<void>} when they have finished their messages, or are too slow
   */
  async #drain(generation) {
    generation.draining = true
    if (!generation.started) return generation.kill('stopped')
    if (!generation.send({ type: 'drain' })) return
    const { timeout } = this.#parts.config().shutdown
    const late = setTimeout(() => {
      this.#parts.log.error({ pid: generation.pid }, 'the queue process has not finished in time')
      generation.onDrained()
    }, timeout * DRAIN_SHARE)
    await generation.drained
    clearTimeout(late)
  }

  /** Ends a drained process: its republishers empty their queues, within a time. @param {Generation} generation */
  #terminate(generation) {
    const { timeout } = this.#parts.config().shutdown
    const within = Math.min(REPUBLISH_MS, timeout * REPUBLISH_SHARE)
    if (!generation.send({ type: 'end', within })) return generation.kill('stopped')
    const late = setTimeout(() => generation.kill('it did not end in time'), within + 2 * LIVENESS_TICK_MS)
    generation.ended.then(() => clearTimeout(late))
  }

  /** First step of a shutdown: stops the consumers. @returns {Promise<void>} when they have finished their messages */
  async drain() {
    this.#stopping = true
    clearTimeout(this.#restartTimer)
    if (this.#current !== null) await this.#drain(this.#current)
  }

  /** Second step, after the end of the workers: ends the process. @returns {Promise<void>} when it has ended */
  async end() {
    const last = this.#current
    if (last === null) return
    this.#terminate(last)
    await last.ended
  }

  /** @param {Message<ToQueues>} message */
  send(message) {
    this.#current?.send(message)
  }

  /**
   * Kills the process if it is stuck. To be called every LIVENESS_TICK_MS.
   * @param {Set<string>} stuck names of processes that do not read from the broker
   */
  tick(stuck) {
    const generation = this.#current
    if (generation === null) return
    if (stuck.has(generation.name)) generation.kill('stuck: it did not read from the broker')
    const reason = generation.liveness.tick()
    if (reason !== '') generation.kill(`stuck: ${reason}`)
  }

  /** Ends the process at once and for good. */
  kill() {
    this.#stopping = true
    clearTimeout(this.#restartTimer)
    this.#current?.kill('stopped')
  }
}
