import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { runningConsumers } from '../config/consumers.js'
import { enabledRepublishers } from '../config/republish.js'
import { LIVENESS_TICK_MS, Liveness } from './liveness.js'
import { RestartDelays } from './restart-delays.js'
import { workerFlags } from './worker-flags.js'
import { QUEUES_SLOT, workerNumber } from './worker-process.js'

/** @import { ChildProcess } from 'node:child_process' */
/** @import { Socket } from 'node:net' */
/** @import { BrokerHost } from '../broker/embedded/host.js' */
/** @import { Log } from '../log.js' */
/** @import { ConfigSwitch } from './config-switch.js' */
/** @import { QueuesStart } from '../queues/main.js' */

const PROGRAM = fileURLToPath(new URL('../queues/main.js', import.meta.url))
const BUS = 4
const STDIO = /** @type {any} */ (['inherit', 'inherit', 'inherit', 'ipc', 'pipe'])
/** Share of `shutdown.timeout` in which what runs is finished. */
const DRAIN_SHARE = 0.5
/** Time, and share of `shutdown.timeout`, in which republishers send what is left. */
const REPUBLISH_MS = 5000
const REPUBLISH_SHARE = 0.2

/** One queue process. */
class Generation {
  started = false
  /** It pulls no more, or was asked to. */
  draining = false
  reason = ''
  startedAt = Date.now()
  /** @type {any} configuration last sent to it, see ConfigSwitch */
  config = null
  /** For messages of ConfigSwitch. */
  index = 'of queues'
  /** @type {() => void} */
  onDrained = () => {}

  /** @param {number} number @param {any} config */
  constructor(number, config) {
    this.number = number
    this.child = fork(PROGRAM, [], { execArgv: workerFlags(process.execArgv), stdio: STDIO })
    this.pid = /** @type {number} */ (this.child.pid)
    this.name = `queues (pid ${this.pid})`
    this.liveness = new Liveness(this.pid, config.worker)
    /** @type {Promise<void>} */
    this.drained = new Promise(resolve => (this.onDrained = () => resolve()))
    /** @type {Promise<string>} reason of its end */
    this.ended = new Promise(resolve => {
      this.child.once('exit', (code, signal) => {
        this.onDrained()
        resolve(this.reason || (signal ? `signal ${signal}` : `exit code ${code}`))
      })
      this.child.once('error', error => {
        if (this.pid === undefined) resolve(error.message)
      })
    })
  }

  /** @returns {Socket | undefined} undefined if it could not be forked */
  get bus() {
    return /** @type {any} */ (this.child.stdio?.[BUS])
  }

  /** @param {object} message @returns {boolean} false if it cannot be reached any more */
  send(message) {
    return this.child.connected && this.child.send(message)
  }

  /** @param {string} reason */
  kill(reason) {
    this.reason ||= reason
    this.child.kill('SIGKILL')
  }
}

/**
 * @typedef {object} QueuesParts
 * @property {() => any} config in force
 * @property {BrokerHost} host
 * @property {() => Omit<QueuesStart, 'type' | 'config' | 'number' | 'first'>} facts for its start
 * @property {() => ConfigSwitch} configSwitch
 * @property {Log} log
 */

/**
 * Keeps the queue process of a node: forks it when the workers listen, replaces it when it dies, lets it finish what
 * runs before clients are let go. Without consumers there is none.
 */
export class QueueProcess {
  /** @type {(message: any) => void} samples and log lines; `ended`: the process has ended */
  onMessage = () => {}
  #parts
  /** @type {Generation | null} */
  #current = null
  #generations = 0
  #failures = 0
  #delays = new RestartDelays(1, () => performance.now())
  #stopping = false
  /** @type {NodeJS.Timeout | undefined} */
  #restartTimer
  /** @type {Promise<void> | null} */
  #start = null
  /** @type {Promise<void> | null} */
  #replacing = null

  /** @param {QueuesParts} parts */
  constructor(parts) {
    this.#parts = parts
  }

  /** The process with its configuration, for ConfigSwitch. */
  get members() {
    return this.#current?.config ? [this.#current] : []
  }

  get pid() {
    return this.#current?.pid ?? null
  }

  /** @returns {import('../broker/embedded/republishing.js').RepublishCounts} */
  get republishCounts() {
    return this.#parts.host.republishing.counts
  }

  /** Whether there is one, or should be. */
  get needed() {
    const config = this.#parts.config()
    return runningConsumers(config).length + enabledRepublishers(config).length > 0
  }

  /** The first start. @returns {Promise<void>} @throws {Error} one line */
  start() {
    this.#start ??= this.needed ? this.#fork(true) : Promise.resolve()
    return this.#start
  }

  /** @param {boolean} first @returns {Promise<void>} when it has started @throws {Error} */
  #fork(first) {
    const number = workerNumber(QUEUES_SLOT, this.#generations++)
    const generation = new Generation(number, this.#parts.config())
    this.#current = generation
    const { bus, name } = generation
    // Surveys are about clients.
    if (bus) this.#parts.host.attach(bus, name, number, { surveyed: false, republishes: true })
    return new Promise((resolve, reject) => {
      generation.child.on('error', error => this.#parts.log.debug({ err: error }, 'channel of queues failed'))
      generation.child.on('message', (/** @type {any} */ message) => {
        if (message.type === 'started') {
          generation.started = true
          generation.liveness.listens()
          this.#failures = 0
          resolve()
        }
        this.#received(generation, message, first)
      })
      generation.ended.then(reason => {
        this.#parts.configSwitch().ended(generation)
        if (this.#current === generation) this.#current = null
        this.onMessage({ type: 'ended' })
        reject(new Error(reason))
        if (this.#stopping || generation.draining || (first && !generation.started)) return
        this.#restart(generation, reason)
      })
    })
  }

  /** @param {Generation} generation @param {any} message @param {boolean} first */
  #received(generation, message, first) {
    const { config, facts, configSwitch } = this.#parts
    switch (message.type) {
      case 'ready':
        // Not in the middle of a switch, whose outcome it would miss.
        configSwitch().idle.then(() => {
          generation.config = config()
          const { number } = generation
          generation.send({ type: 'start', ...facts(), config: config(), number, first })
        })
        break
      case 'switched':
        configSwitch().onMessage(generation, message)
        break
      case 'failed':
        generation.reason = message.message
        break
      case 'drained':
        generation.onDrained()
        break
      default:
        if (message.type === 'sample') generation.liveness.heard(message.debugged)
        this.onMessage(message)
    }
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

  /** Replaces it: consumers begin where the old process has ended. @returns {Promise<true>} */
  async replace() {
    this.#replacing ??= this.#replace().finally(() => {
      this.#replacing = null
    })
    await this.#replacing
    return true
  }

  async #replace() {
    const old = this.#current
    if (old === null || !old.started || this.#stopping) return
    await this.#finish(old)
    this.#terminate(old)
    await old.ended
    // A failure is logged, and it is tried again.
    if (!this.#stopping && this.#current === null) await this.#fork(false).catch(() => {})
    if (!this.#stopping) this.#parts.log.info({}, 'queue process replaced')
  }

  /** Lets it pull no more, and finish what runs. @param {Generation} generation @returns {Promise<void>} */
  async #finish(generation) {
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

  /** @param {Generation} generation that has finished, or is late */
  #terminate(generation) {
    const { timeout } = this.#parts.config().shutdown
    const within = Math.min(REPUBLISH_MS, timeout * REPUBLISH_SHARE)
    if (!generation.send({ type: 'end', within })) return generation.kill('stopped')
    const late = setTimeout(() => generation.kill('it did not end in time'), within + 2 * LIVENESS_TICK_MS)
    generation.ended.then(() => clearTimeout(late))
  }

  /** The gateway ends: nothing is pulled any more. @returns {Promise<void>} when what ran is finished */
  async drain() {
    this.#stopping = true
    clearTimeout(this.#restartTimer)
    if (this.#current !== null) await this.#finish(this.#current)
  }

  /** After the workers have ended. @returns {Promise<void>} */
  async end() {
    const last = this.#current
    if (last === null) return
    this.#terminate(last)
    await last.ended
  }

  /** @param {object} message */
  send(message) {
    this.#current?.send(message)
  }

  /** Once a second. @param {Set<string>} stuck names of processes that do not read from the broker */
  tick(stuck) {
    const generation = this.#current
    if (generation === null) return
    if (stuck.has(generation.name)) generation.kill('stuck: it did not read from the broker')
    const reason = generation.liveness.tick()
    if (reason !== '') generation.kill(`stuck: ${reason}`)
  }

  kill() {
    this.#stopping = true
    clearTimeout(this.#restartTimer)
    this.#current?.kill('stopped')
  }
}
