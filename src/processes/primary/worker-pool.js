// The worker processes of a gateway and the embedded broker that they share.

import { randomBytes, randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { LifecycleLog } from '../../backends/lifecycle/index.js'
import { packageVersion } from '../../base/version.js'
import { BrokerHost, connectWithin } from '../../channels/broker/embedded/host.js'
import { checkEngine } from '../../channels/broker/index.js'
import { deriveCursorKey } from '../../clients/transport/uni-poll/cursor.js'
import { withChanges } from '../../config/changes.js'
import { defaultWorkers } from '../../metrics/control-groups.js'
import { receive } from '../messages.js'
import { probePorts, urlOf } from './address.js'
import { ConfigSwitch } from './config-switch.js'
import { loadDenials } from './denial-stores.js'
import { KeySets } from './key-sets.js'
import { LIVENESS_TICK_MS } from './liveness.js'
import { QueueProcess } from './queue-process.js'
import { RestartDelays, RollingRestart } from './restarts.js'
import { Slot } from './slot.js'
import { WorkerProcess } from './worker-process.js'

/** @import { Config } from '../../config/options.js' */
/** @import { Logger } from 'pino' */
/** @import { NodeIdentity } from '../../backends/api/context.js' */
/** @import { Log } from '../../base/log.js' */
/** @import { BrokerFigures, WorkerSample } from '../../metrics/schema.js' */
/** @import { FromWorker, Handlers, Message, ToChild, ToWorker } from '../messages.js' */

/**
 * @typedef {object} WorkerEnd
 * @property {string} reason
 * @property {boolean} died while serving or starting
 *
 * @typedef {object} PoolObserver receives worker events
 * @property {(process: WorkerProcess) => void} starting
 * @property {(process: WorkerProcess) => void} listening
 * @property {(process: WorkerProcess) => void} draining its successor listens
 * @property {(process: WorkerProcess, end: WorkerEnd) => void} ended
 * @property {Partial<Handlers<FromWorker, [WorkerProcess]>>} messages handled after the pool
 */

/** Resting threshold: this multiple of the mean connections of accepting workers, plus an allowance. */
const SHARE = 1.25
const FEW = 64

/** @param {Config} config @returns {NodeIdentity} new at each start */
export const newNodeIdentity = ({ http_server, node }) => ({
  uid: randomUUID(),
  name: node.name || `${hostname()}_${http_server.port}`,
  version: packageVersion(),
  startedAt: Date.now(),
})

/**
 * Selects the workers that pause accepting on the shared listening socket. The kernel wakes all workers for a
 * connection and the first gets it: an even distribution under load, but at a few connections a second mostly the same
 * worker. Workers that refuse connections (overloaded or out of descriptors) do not count. At least one worker keeps
 * accepting, as not all can exceed their mean.
 * @param {(Pick<WorkerSample, 'accepting' | 'overload' | 'connections'> | null)[]} samples latest by worker; null: none
 * @returns {boolean[]} by worker
 */
export function resting(samples) {
  const counts = samples.flatMap(sample =>
    sample?.accepting && sample.overload === null ? [sample.connections.open] : [],
  )
  const mean = counts.reduce((sum, count) => sum + count, 0) / counts.length
  const limit = SHARE * mean + FEW
  return samples.map(sample => sample !== null && sample.connections.open > limit)
}

/** Forks, replaces, drains and ends the workers. */
export class WorkerPool {
  /** Socket server of the workers, once one listens: uws or node, and the reason of a fallback from uws. */
  server = { driver: '', fallback: '' }
  /** @type {PoolObserver[]} added before `start` */
  observers = []
  /** Whether new workers write no log lines to standard output. */
  quiet = false
  /** @type {LifecycleLog | null} */
  lifecycle = null
  /** @type {NodeIdentity} */
  node
  #log
  #terminal
  #host
  #cursorKey
  #keySets = new KeySets()
  /** Used if no secret is configured. */
  #randomKey = randomBytes(32).toString('base64')
  /** @type {Set<WorkerProcess>} all running */
  #processes = new Set()
  /** @type {ConfigSwitch} */
  #switch = new ConfigSwitch(() => [
    ...[...this.#processes].filter(({ config }) => config !== null),
    ...this.queues.members,
  ])
  #delays
  #rolling
  /** Whether every worker listens and responds; served as `/health`. */
  #ready = false
  #stopping = false
  #tick
  /** @type {((error?: Error) => void) | null} */
  #started = null
  /** @type {(() => void) | null} */
  #ended = null

  /** @param {Config} config @param {Logger} log @param {boolean} terminal */
  constructor(config, log, terminal) {
    this.config = config
    this.#log = log
    this.#terminal = terminal
    const { type, memory } = config.engine
    const snapshotFile = type === 'memory' ? memory.snapshot_file : ''
    this.#host = new BrokerHost({
      maxBytes: memory.max_bytes,
      snapshotFile,
      vacatedDelay: memory.channel_state.vacated_event_delay,
      onState: event => this.lifecycle?.channelState(event),
      log,
    })
    this.node = newNodeIdentity(config)
    this.#cursorKey = deriveCursorKey(config, this.#randomKey)
    this.slots = Array.from(
      { length: config.workers || defaultWorkers() },
      (_, index) => new Slot(index, slot => this.#fork(slot)),
    )
    this.#delays = new RestartDelays(this.slots.length, () => performance.now())
    /** @type {QueueProcess} */
    this.queues = new QueueProcess({
      config: () => this.config,
      host: this.#host,
      facts: () => ({ node: this.node, terminal, quiet: this.quiet }),
      configSwitch: () => this.#switch,
      log,
    })
    this.#rolling = new RollingRestart(
      this.slots.map(slot => () => slot.replace()),
      () => this.#stopping,
      log,
    )
    this.#tick = setInterval(() => this.#watch(), LIVENESS_TICK_MS)
  }

  /**
   * Checks port and engine, and restores the snapshot of the last run; starts nothing yet.
   * @param {any} given
   * @param {Logger} log
   * @param {boolean} terminal whether workers format log lines for a terminal
   * @returns {Promise<WorkerPool>}
   * @throws {Error} if the port is in use, the engine is unreachable or the snapshot cannot be replaced
   */
  static async create(given, log, terminal) {
    const found = await probePorts(given.http_server)
    await checkEngine(given, log)
    const config = { ...given, http_server: { ...given.http_server, port: found } }
    const pool = new WorkerPool(config, log, terminal)
    try {
      await pool.#host.restore()
      await loadDenials(pool.#host.denials, config, log)
      pool.lifecycle = await LifecycleLog.open(config, pool.node, log)
    } catch (error) {
      clearInterval(pool.#tick)
      await pool.#host.denials.close()
      throw error
    }
    return pool
  }

  /** Channels of the embedded broker with subscribers. */
  get channels() {
    return this.#host.subscribed
  }

  /** Figures of the broker, counts since the last call. @returns {BrokerFigures} */
  get brokerFigures() {
    const figures = this.#host.drain()
    return this.config.engine.type === 'memory' ? figures : { ...figures, maps: null }
  }

  /** A broker for the embedding program, see loop.js. @param {Log} log */
  connectWithin(log) {
    return connectWithin(this.#host, this.node.uid, log)
  }

  /** Public address. */
  get url() {
    return urlOf(this.config.http_server)
  }

  /** Resolves when every worker listens; rejects if one fails to start. */
  start() {
    return new Promise((resolve, reject) => {
      this.#started = error => {
        this.#started = null
        if (error) {
          clearInterval(this.#tick)
          this.#stopping = true
          this.kill()
          // Writes the restored snapshot for the next start.
          this.#end().then(() => reject(error))
        } else resolve(undefined)
      }
      for (const slot of this.slots) slot.fork()
    })
  }

  /** @param {Slot} slot @returns {WorkerProcess} */
  #fork(slot) {
    if (this.#stopping) throw new Error('the gateway is shutting down')
    const process = new WorkerProcess(slot.index, slot.generations++, this.config, this.lifecycle)
    this.#processes.add(process)
    for (const observer of this.observers) observer.starting(process)
    process.onBlocked = hook =>
      this.#log.warn({ worker: slot.index, hook }, 'hook is blocking the event loop')
    const { worker, number, bus } = process
    if (bus) this.#host.attach(bus, process.name, number)
    worker.on('message', message => this.#onMessage(process, message))
    worker.on('error', error => this.#log.debug({ err: error, worker: slot.index }, 'IPC channel failed'))
    process.onEnd((code, signal) => this.#onExit(slot, process, code, signal))
    return process
  }

  /** @type {Partial<Handlers<FromWorker, [WorkerProcess]>>} */
  #handlers = {
    ready: (_, process) => {
      // During a switch it would miss the outcome.
      this.#switch.idle.then(() => this.#sendStart(process))
    },
    switched: (message, process) => this.#switch.onMessage(process, message),
    listening: ({ server }, process) => {
      this.server = server
      // Messages may arrive after exit.
      if (this.#processes.has(process)) this.#onListening(process)
    },
    jwks: keys => this.#keySets.add(keys),
    failed: ({ message }, process) => {
      process.reason = message
      this.#started?.(new Error(message))
    },
    open: ({ count }, process) => {
      process.open = count
      this.#sendCounts(process)
    },
    sample: (message, process) => process.onSample(message),
  }

  /** @param {WorkerProcess} process @param {Message<FromWorker>} message */
  #onMessage(process, message) {
    receive(this.#handlers, message, process)
    for (const { messages } of this.observers) receive(messages, message, process)
  }

  /** @param {WorkerProcess} process */
  #sendStart(process) {
    process.start({
      config: this.config,
      workers: this.slots.length,
      node: this.node,
      terminal: this.#terminal,
      quiet: this.quiet,
      cursorKey: this.#cursorKey,
      keySets: this.#keySets.all,
    })
  }

  /** @param {WorkerProcess} process */
  #onListening(process) {
    const slot = this.slots[process.slot]
    process.onListening()
    this.#log.debug({ worker: slot.index, pid: process.pid }, 'worker is listening')
    const previous = slot.onListening(process)
    if (previous) {
      for (const observer of this.observers) observer.draining(previous)
      previous.drain(this.config.shutdown, false)
    }
    this.#checkReadiness()
    this.#sendReadiness()
    for (const observer of this.observers) observer.listening(process)
    // It missed messages sent while it started.
    process.send({ type: 'otherConnections', count: this.#open - process.open })
    if (this.#started && this.slots.every(({ current }) => current?.listening))
      this.queues.start().then(
        () => this.#started?.(),
        error => this.#started?.(error),
      )
  }

  /** @param {Message<ToWorker>} message */
  sendToAll(message) {
    for (const process of this.#processes) process.send(message)
  }

  /** Sends a message to all workers and to the queue process. @param {Message<Pick<ToChild, 'gc' | 'log'>>} message */
  broadcast(message) {
    this.sendToAll(message)
    this.queues.send(message)
  }

  /** Notifies the workers of changes of `#ready`. */
  #checkReadiness() {
    const ready = !this.#stopping && this.slots.every(({ current }) => current?.healthy)
    if (ready === this.#ready) return
    this.#ready = ready
    this.#sendReadiness()
  }

  #sendReadiness() {
    // The worker of the first slot counts failed logins to the admin page.
    this.sendToAll({ type: 'workers', ready: this.#ready, first: this.slots[0].current?.number ?? 0 })
  }

  get #open() {
    return [...this.#processes].reduce((sum, { open }) => sum + open, 0)
  }

  /** @param {WorkerProcess} changed */
  #sendCounts(changed) {
    const total = this.#open
    for (const process of this.#processes)
      if (process !== changed) process.send({ type: 'otherConnections', count: total - process.open })
  }

  /** @param {number} index @param {Message<ToWorker>} message @returns {boolean} false if that worker is not running */
  sendTo(index, message) {
    return this.slots[index]?.current?.send(message) ?? false
  }

  /**
   * Replaces a worker: the new one listens before the old one drains. Further requests during a replacement have no
   * effect: browsers repeat a POST when the connection closes.
   * @param {number} index
   * @throws {Error} if the worker does not exist or is not running
   */
  restart(index) {
    const slot = this.slots[index]
    if (!slot) throw new Error(`no worker has index ${index}`)
    if (this.#stopping || !slot.current?.listening) throw new Error(`worker ${index} is not running`)
    slot.restart(this.#log, () => this.#stopping)
  }

  /** See RollingRestart. @param {string} reason for the log @returns {Promise<boolean>} false if interrupted */
  async rollingRestart(reason) {
    const whole = await this.#rolling.request(reason)
    if (whole) await this.queues.replace()
    return whole
  }

  /** Whether a rolling restart is in progress. */
  get restarting() {
    return this.#rolling.running
  }

  /** @param {Slot} slot @param {WorkerProcess} process @param {number | null} code @param {string | null} signal */
  #onExit(slot, process, code, signal) {
    const { listening, draining } = process
    const clean = draining && code === 0
    const reason = clean ? 'restarted' : process.reason || (signal ? `signal ${signal}` : `exit code ${code}`)
    this.#processes.delete(process)
    this.#switch.ended(process)
    process.onExit(reason, clean)
    if (this.#stopping) {
      for (const observer of this.observers) observer.ended(process, { reason: 'stopped', died: false })
      if (this.#processes.size === 0) this.#ended?.()
      return
    }
    const died = slot.onExit(process)
    this.#checkReadiness()
    this.#sendCounts(process)
    for (const observer of this.observers) observer.ended(process, { reason, died })
    if (draining && !clean) this.#log.warn({ worker: slot.index, reason }, 'worker died while draining')
    if (died) this.#replaceDead(slot, process, listening, reason)
  }

  /** @param {Slot} slot @param {WorkerProcess} process @param {boolean} listened @param {string} reason */
  #replaceDead(slot, process, listened, reason) {
    slot.failures = listened ? 0 : slot.failures + 1
    const alone = [...this.#processes].every(({ draining }) => draining)
    // The next generation may be starting.
    const delay = slot.current === null ? this.#delays.next(slot.failures, alone) : 0
    const { index, failures } = slot
    const lived = { lived_ms: Date.now() - process.startedAt, failed_starts: failures, restart_in_ms: delay }
    this.#log.error({ worker: index, reason, ...lived }, 'worker died')
    if (this.#started) return this.#started(new Error(`a worker died while starting: ${reason}`))
    if (slot.current !== null) return
    setTimeout(() => {
      if (!this.#stopping) slot.fork()
    }, delay)
  }

  #watch() {
    const stuck = new Set(this.#host.tick())
    for (const process of this.#processes) {
      const reason = stuck.has(process.name) ? 'did not read from the broker' : process.liveness.tick()
      if (reason) process.killStuck(reason)
    }
    this.queues.tick(stuck)
    this.#checkReadiness()
    if (this.server.driver === 'node') this.#balance()
  }

  /** Pauses and resumes accepting in workers with a shared listening socket. */
  #balance() {
    const healthy = [...this.#processes].filter(({ healthy }) => healthy)
    const rest = resting(healthy.map(({ sample }) => sample))
    healthy.forEach((process, at) => {
      if (process.resting === rest[at]) return
      process.resting = rest[at]
      process.send({ type: 'rest', on: rest[at] })
    })
  }

  /** Whether the gateway is shutting down. */
  get stopping() {
    return this.#stopping
  }

  /**
   * Switches all workers at the same time to the live options of a configuration. New workers start with all options.
   * @param {any} next
   * @returns {Promise<void>} when all workers use it
   * @throws {Error} if a worker cannot use it: no worker switches
   */
  applyConfig(next) {
    const rotated = next.uni_poll.cursor_secret_key !== this.config.uni_poll.cursor_secret_key
    const cursorKey = rotated ? deriveCursorKey(next, this.#randomKey) : this.#cursorKey
    return this.#switch.run(
      // Options that require a new worker keep their values.
      ({ config }) => ({ config: withChanges(config, next, ['live']), cursorKey }),
      () => {
        if (this.#stopping) throw new Error('the gateway is shutting down')
        this.config = next
        this.#cursorKey = cursorKey
      },
    )
  }

  /**
   * Drains the consumers, disconnects the clients within `shutdown.drain`, ends the workers and writes the snapshot.
   * @returns {Promise<boolean>} false if a process was killed after `shutdown.timeout`
   */
  async stop() {
    this.#stopping = true
    clearInterval(this.#tick)
    let clean = true
    const ended = new Promise(resolve => (this.#ended = () => resolve(undefined)))
    this.#checkReadiness()
    const late = setTimeout(() => {
      clean = false
      this.kill()
    }, this.config.shutdown.timeout)
    this.#host.stopping()
    await this.queues.drain()
    for (const process of this.#processes) {
      if (process.listening) process.drain(this.config.shutdown, true)
      // It has no clients yet.
      else process.kill('stopped')
    }
    if (this.#processes.size > 0) await ended
    await this.queues.end()
    clearTimeout(late)
    await this.#end()
    return clean
  }

  async #end() {
    await this.lifecycle?.close()
    await this.#host.denials.close()
    await this.#host.end()
  }

  kill() {
    this.queues.kill()
    for (const process of this.#processes) process.kill('stopped')
  }
}
