// Statistics of the primary: connects the monitor to the workers, the CSV file, the stats socket and the log.

import { isDeepStrictEqual } from 'node:util'
import { LimitedLog } from '../../base/log.js'
import { CsvWriter } from '../../metrics/csv-writer.js'
import { MachineSampler } from '../../metrics/machine.js'
import { Monitor } from '../../metrics/monitor.js'
import { ProcessSampler, residentMemory } from '../../metrics/process-sample.js'
import { QueueTotals } from '../../metrics/queue-totals.js'
import { SocketMemory } from '../../metrics/socket-memory.js'
import { socketPath } from '../../metrics/socket-path.js'
import { StatsRelay } from '../../metrics/stats-relay.js'
import { StatsSocket } from '../../metrics/stats-socket.js'

/** @import { Config } from '../../config/options.js' */
/** @import { Logger } from 'pino' */
/** @import { LogOutput } from '../../base/log.js' */
/** @import { Counts, GatewayEvent } from '../../metrics/schema.js' */
/** @import { FromQueues, FromWorker, Handlers, ToWorker } from '../messages.js' */
/** @import { PoolObserver, WorkerPool } from './worker-pool.js' */
/** @import { WorkerProcess } from './worker-process.js' */

/** Resolution of the event-loop delay, ms; coarser than a worker's, as the primary serves no clients. */
const PRIMARY_RESOLUTION_MS = 50
/** Log lines kept for dashboards that connect later. */
const MAX_LINES = 200

/** Statistics and remote control of one worker pool. @implements {PoolObserver} */
export class Telemetry {
  #pool
  #log
  #output
  #machine = new MachineSampler()
  #sockets
  #process
  #monitor
  #queues
  #relay
  #actions
  #facts
  /** Current configuration. @type {Pick<Config, 'stats' | 'gc'>} */
  #settings
  /** @type {CsvWriter | null} */
  #csv = null
  /** @type {NodeJS.Timeout | undefined} */
  #gcTimer
  /** @type {StatsSocket | null} */
  #socket = null
  /** @type {string[]} latest log lines, while forwarding */
  #lines = []
  /** @type {Set<(line: string) => void>} */
  #readers = new Set()
  /** Whether a dashboard owns the terminal: log lines go only to dashboards. */
  #held = false

  /**
   * @param {object} options
   * @param {WorkerPool} options.pool not started yet
   * @param {Logger} options.log
   * @param {LogOutput | null} options.output null if the log belongs to the embedding program
   * @param {() => void} options.onStop called when a stats client stops the gateway
   * @param {() => Promise<string>} options.onReload reloads the configuration
   * @param {() => Counts | null} options.ownCounts of the primary's server API, since the last call
   */
  constructor({ pool, log, output, onStop, onReload, ownCounts }) {
    this.#pool = pool
    this.#log = log
    this.#output = output
    this.#queues = new QueueTotals(() => pool.queues.republishCounts)
    const { config, node, url, slots } = pool
    this.#settings = { stats: config.stats, gc: config.gc }
    this.#facts = {
      id: node.uid,
      name: node.name,
      version: node.version,
      url,
      pid: process.pid,
      started_at: node.startedAt,
      engine: config.engine.type,
      driver: '',
      driver_fallback: '',
      node_version: process.version,
      workers: slots.length,
    }
    const { port, internal_port } = config.http_server
    this.#process = new ProcessSampler({ resolution: PRIMARY_RESOLUTION_MS, log: output })
    this.#sockets = new SocketMemory([port, internal_port])
    this.#monitor = new Monitor({
      node: this.#facts,
      workers: slots.length,
      connectionLimit: config.client.connection_limit,
      machine: this.#machine,
      process: this.#process,
      sockets: this.#sockets,
      log: new LimitedLog(log),
      outputs: () => ({
        csv: this.#csv?.status ?? null,
        lifecycle: pool.lifecycle?.figures ?? null,
        consumers: this.#queues.consumers,
        republishers: this.#queues.republishers,
      }),
      channels: () => (config.engine.type === 'memory' ? pool.channels : null),
      broker: () => pool.brokerFigures,
    })
    this.#monitor.on(() => {
      const counts = ownCounts()
      // For the next snapshot.
      if (counts !== null) this.#monitor.lost.push(counts)
    })
    this.#monitor.processBegins(process.pid, residentMemory())
    this.#actions = {
      gc: (/** @type {number | null} */ worker) => this.#collect(worker),
      restart: (/** @type {number | null} */ worker) => this.#restart(worker),
      stop: onStop,
      reload: onReload,
      log: (/** @type {(line: string) => void} */ reader) => this.#readLog(reader),
    }
    this.#relay = new StatsRelay(this.#monitor, this.#actions)
    pool.observers.push(this)
    pool.queues.observer = { messages: this.#ofQueues, ended: () => this.#queues.ended() }
  }

  /** Path of the stats socket, or null. */
  get socket() {
    return this.#socket?.path ?? null
  }

  /** Called once all workers listen. @param {{runtimeDir?: string}} place of the stats socket */
  async start(place) {
    const { config, server } = this.#pool
    const { stats, gc, http_server } = config
    const { driver, fallback } = server
    this.#facts.driver = driver
    this.#facts.driver_fallback = fallback
    this.#openCsv(stats.csv)
    this.#scheduleGc(gc.interval)
    this.#monitor.on(({ snapshot }) => this.#csv?.write(snapshot))
    const path = socketPath(stats.socket, http_server.port, place)
    if (path !== null) {
      this.#socket = await StatsSocket.open({
        path,
        own: stats.socket === 'auto',
        monitor: this.#monitor,
        actions: this.#actions,
        log: this.#log,
      })
    }
    this.#event('info', 'started', `listening on ${this.#facts.url}`)
    if (fallback !== '') this.#event('warn', 'driver', `node driver: ${fallback}`)
    this.#monitor.start()
  }

  /** @param {{file: string, max_bytes: number, keep: number}} options file '': none */
  #openCsv({ file, max_bytes, keep }) {
    this.#csv = null
    if (file === '') return
    const onError = (/** @type {string} */ text) => {
      this.#log.error(text)
      this.#event('error', 'csv', text)
    }
    this.#csv = new CsvWriter({ file, maxBytes: max_bytes, keep, onError })
  }

  /**
   * Collects garbage in one worker after another, so that pauses never coincide.
   *
   *   interval   |-----------------------|
   *   worker 0   x                       x
   *   worker 1           x                       x
   *   worker 2                   x
   * @param {number} interval ms between collections of a worker; 0: none
   */
  #scheduleGc(interval) {
    clearInterval(this.#gcTimer)
    if (interval === 0) return
    const workers = this.#pool.slots.length
    let next = 0
    this.#gcTimer = setInterval(() => {
      this.#pool.sendTo(next, { type: 'gc' })
      next = (next + 1) % workers
    }, interval / workers)
  }

  /** The configuration was reloaded. @param {Config} config */
  reloaded({ stats, gc, client }) {
    if (!isDeepStrictEqual(stats.csv, this.#settings.stats.csv)) {
      const before = this.#csv
      // Two writers of one file would both rotate it.
      const closed = before === null ? Promise.resolve() : before.close()
      this.#csv = null
      closed.then(() => this.#openCsv(stats.csv))
    }
    if (gc.interval !== this.#settings.gc.interval) this.#scheduleGc(gc.interval)
    this.#monitor.connectionLimit = client.connection_limit
    this.#settings = { stats, gc }
    this.#event('info', 'reloaded', 'configuration reloaded')
  }

  /**
   * @param {GatewayEvent['level']} level @param {GatewayEvent['kind']} kind @param {string} text
   * @param {number | null} [worker]
   */
  #event(level, kind, text, worker) {
    this.#monitor.event({ level, kind, text, worker })
  }

  stopping() {
    this.#event('info', 'stopping', 'shutting down')
  }

  /** Resolves when the CSV file and the stats socket are closed. */
  async close() {
    this.#monitor.stop()
    clearInterval(this.#gcTimer)
    this.#process.stop()
    await Promise.all([this.#socket?.close(), this.#csv?.close(), this.#sockets.close()])
    this.#machine.close()
  }

  // Events of the worker pool

  /** @param {WorkerProcess} process */
  starting({ slot }) {
    // The next generation starts while the current one serves clients.
    if (!this.#pool.slots[slot].current?.listening) this.#monitor.workerState(slot, 'starting')
  }

  /** @param {WorkerProcess} process */
  listening({ slot, pid }) {
    this.#monitor.workerState(slot, 'up', false, pid)
    this.#event('info', 'worker_started', `worker ${slot} is listening`, slot)
    // It missed messages sent while it started.
    this.#pool.sendTo(slot, this.#logging)
  }

  /** @param {WorkerProcess} process */
  draining({ slot, pid }) {
    this.#monitor.workerDrains(slot, pid)
    const text = `worker ${slot} is being replaced: the old process is draining`
    this.#event('info', 'worker_draining', text, slot)
  }

  /** @type {Required<PoolObserver>['ended']} */
  ended({ slot, pid, worker }, { reason, died }) {
    this.#relay.remove(worker)
    this.#monitor.processEnded(pid)
    this.#monitor.workerEnded(slot, pid, !died)
    const failed = died || (reason !== 'restarted' && reason !== 'stopped')
    const text = `worker ${slot} ${failed ? 'died' : 'stopped'}: ${reason}`
    this.#event(failed ? 'error' : 'info', 'worker_died', text, slot)
  }

  /** @type {Partial<Handlers<FromWorker, [WorkerProcess]>>} */
  messages = {
    'ready-to-listen': ({ rss }, { pid }) => this.#monitor.processBegins(pid, rss),
    sample: ({ sample }, { slot }) => this.#monitor.addSample(slot, sample),
    redis: ({ up }, { slot }) => this.#monitor.redisState(slot, up),
    stats: (message, { worker }) => this.#relay.onMessage(worker, message),
    log: ({ line }) => this.#addLine(line),
  }

  /** @type {Partial<Handlers<FromQueues>>} */
  #ofQueues = {
    log: ({ line }) => this.#addLine(line),
    sample: ({ sample }) => {
      this.#monitor.lost.push(sample.counts)
      this.#queues.update(sample.process.pid, sample, sample.counts.api_errors)
    },
  }

  /** @param {number | null} worker null: all */
  #collect(worker) {
    if (worker === null) this.#pool.broadcast({ type: 'gc' })
    else if (!this.#pool.sendTo(worker, { type: 'gc' })) throw new Error(`worker ${worker} is not running`)
    const text = worker === null ? 'GC of all workers' : `GC of worker ${worker}`
    this.#event('info', 'gc', `${text} requested`, worker)
  }

  /** @param {number | null} worker null: all, one after another */
  #restart(worker) {
    if (worker !== null) {
      this.#pool.restart(worker)
      this.#log.info({ worker }, 'restart requested')
    } else if (!this.#pool.restarting) this.#pool.rollingRestart('requested')
  }

  // The log

  /** @param {boolean} held true: log lines go to dashboards only, not to the terminal */
  hold(held) {
    this.#held = held
    this.#pool.quiet = held
    if (this.#output) this.#output.shown = !held
    this.#forward()
  }

  /** The message that sets where workers write log lines. @returns {{type: 'log'} & ToWorker['log']} */
  get #logging() {
    return { type: 'log', shown: !this.#held, forward: this.#held || this.#readers.size > 0 }
  }

  /** Collects the log lines of all processes while there are readers. */
  #forward() {
    const logging = this.#logging
    if (this.#output) this.#output.forward = logging.forward ? line => this.#addLine(line) : null
    this.#pool.broadcast(logging)
    if (!logging.forward) this.#lines = []
  }

  /** @param {string} line */
  #addLine(line) {
    this.#lines.push(line)
    if (this.#lines.length > MAX_LINES) this.#lines.shift()
    for (const reader of this.#readers) reader(line)
  }

  /** @param {(line: string) => void} reader @returns {() => void} unsubscribes */
  #readLog(reader) {
    for (const line of this.#lines) reader(line)
    this.#readers.add(reader)
    if (this.#readers.size === 1) this.#forward()
    return () => {
      if (this.#readers.delete(reader) && this.#readers.size === 0) this.#forward()
    }
  }
}
