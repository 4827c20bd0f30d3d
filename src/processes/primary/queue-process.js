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
/** Share of `shutdown.timeout` for consumers to finish messages in progress. */
const DRAIN_SHARE = 0.5
/** Maximum time for republishers to empty their queues, ms, and as a share of `shutdown.timeout`. */
const REPUBLISH_MS = 5000
const REPUBLISH_SHARE = 0.2

/** A generation of the queue process. @extends {Forked<ToQueues>} */
class Generation extends Forked {
  started = false
  /** Whether its exit is expected. */
  draining = false
  /** @type {() => void} */
  onDrained = () => {}

  /** @param {number} generation @param {Config} config */
  constructor(generation, config) {
    const child = fork(PROGRAM, [], { execArgv: childFlags(process.execArgv), stdio: [...STDIO] })
    super(child, { slot: QUEUES_SLOT, generation, title: 'queue process', name: 'queues' }, config)
    /** @type {Promise<void>} when it has drained, exited or timed out */
    this.drained = new Promise(resolve => (this.onDrained = () => resolve()))
    /** @type {Promise<string>} exit reason */
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
 *
 * @typedef {{messages: Partial<Handlers<FromQueues>>, ended: () => void}} QueuesObserver
 */

/**
 * Supervises the queue process of a node, which runs consumers and republishers: starts it if any are configured when
 * the workers listen, restarts it when it dies, and drains it before the clients are disconnected.
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

  /** Members of a ConfigSwitch: the process once configured. */
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
   * @param {boolean} first gateway startup: a failed start is not retried
   * @returns {Promise<void>} when the process has started @throws {Error} it exited before
   */
  #fork(first) {
    const generation = new Generation(this.#generations++, this.#parts.config())
    this.#current = generation
    const { bus, name, number, child } = generation
    const { config, facts, configSwitch, host, log } = this.#parts
    // No surveys: the process has no clients.
    if (bus) host.attach(bus, name, number, { surveyed: false, republishes: true })
    return new Promise((resolve, reject) => {
      /** @type {Partial<Handlers<FromQueues>>} */
      const handlers = {
        ready() {
          // During a configuration switch it would miss the outcome.
          configSwitch().idle.then(() => {
            generation.config = config()
            generation.send({ type: 'start', ...facts(), config: config(), number, first })
          })
        },
        started: () => {
          generation.started = true
          generation.liveness.onListening()
          this.#failures = 0
          resolve()
        },
        failed({ message }) {
          generation.reason = message
        },
        switched: message => configSwitch().onMessage(generation, message),
        drained: () => generation.onDrained(),
        sample: ({ debugged }) => generation.liveness.onSample(debugged),
      }
      child.on('error', error => log.debug({ err: error }, 'IPC channel failed'))
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
   * Replaces the process. The new one starts after the exit of the old one: they never consume at the same time.
   * @returns {Promise<void>} when the new process has started or failed; immediately if none is running
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
    await this.#fork(false).then(
      () => this.#parts.log.info({}, 'queue process replaced'),
      // #restart logs the failure and starts the process again.
      () => {},
    )
  }

  /**
   * Stops the consumers. Kills a process that has not started.
   * @param {Generation} generation @returns {Promise<void>} when messages in progress have finished or timed out
   */
  async #drain(generation) {
    generation.draining = true
    if (!generation.started) return generation.kill('stopped')
    if (!generation.send({ type: 'drain' })) return
    const { timeout } = this.#parts.config().shutdown
    const late = setTimeout(() => {
      this.#parts.log.error({ pid: generation.pid }, 'queue process did not drain in time')
      generation.onDrained()
    }, timeout * DRAIN_SHARE)
    await generation.drained
    clearTimeout(late)
  }

  /** Ends a drained process after its republishers empty their queues. @param {Generation} generation */
  #terminate(generation) {
    const { timeout } = this.#parts.config().shutdown
    const within = Math.min(REPUBLISH_MS, timeout * REPUBLISH_SHARE)
    if (!generation.send({ type: 'end', within })) return generation.kill('stopped')
    const late = setTimeout(() => generation.kill('did not exit in time'), within + 2 * LIVENESS_TICK_MS)
    generation.ended.then(() => clearTimeout(late))
  }

  /** First step of a shutdown: stops the consumers. @returns {Promise<void>} when messages in progress have finished */
  async drain() {
    this.#stopping = true
    clearTimeout(this.#restartTimer)
    if (this.#current !== null) await this.#drain(this.#current)
  }

  /** Second step, after the workers exit: ends the process. @returns {Promise<void>} when it has exited */
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

  /** Kills the process if it is stuck; called every LIVENESS_TICK_MS. @param {Set<string>} stuck not reading the bus */
  tick(stuck) {
    const generation = this.#current
    if (generation === null) return
    if (stuck.has(generation.name)) generation.kill('stuck: did not read from the broker')
    const reason = generation.liveness.tick()
    if (reason !== '') generation.kill(`stuck: ${reason}`)
  }

  /** Kills the process without restart. */
  kill() {
    this.#stopping = true
    clearTimeout(this.#restartTimer)
    this.#current?.kill('stopped')
  }
}
