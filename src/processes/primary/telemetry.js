// The primary's statistics: connects the monitor with the workers, the CSV file, the stats socket and the log.

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
/** @import { Counts } from '../../metrics/schema.js' */
/** @import { FromQueues, FromWorker, Handlers, ToWorker } from '../messages.js' */
/** @import { PoolObserver, WorkerPool } from './worker-pool.js' */
/** @import { WorkerProcess } from './worker-process.js' */

/** The primary serves no clients: its event-loop ticks are measured less often than a worker's, ms. */
const PRIMARY_RESOLUTION_MS = 50
/** Log lines kept for dashboards that connect later. */
const MAX_LINES = 200

/** Statistics and remote control of one worker pool. @implements {PoolObserver} */
export class Telemetry {
  #pool
  #log
  #output
  #onStop
  #machine
  #sockets
  #process
  #monitor
  #queues
  #relay
  #actions
  #facts
  /** What was used last of the configuration. @type {Pick<Config, 'stats' | 'gc'>} */
  #settings
  /** @type {CsvWriter | null} */
  #csv = null
  /** @type {GcSchedule | null} */
  #gcSchedule = null
  /** @type {StatsSocket | null} */
  #socket = null
  /** @type {string[]} the last log lines, while log lines are forwarded */
  #lines = []
  /** @type {Set<(line: string) => void>} */
  #readers = new Set()
  /** Whether a dashboard owns the terminal: log lines are kept for it instead of shown. */
  #held = false

  /**
   * @param {object} options @param {WorkerPool} options.pool not started yet @param {Logger} options.log
   * @param {LogOutput | null} options.output null if the log belongs to the embedding program
   * @param {() => void} options.onStop called when a stats client stops the gateway
   * @param {() => Promise<string>} options.onReload reloads the configuration
   * @param {() => Counts | null} options.ownCounts of the primary's server API, since the last call
   */
  constructor({ pool, log, output, onStop, onReload, ownCounts }) {
    this.#pool = pool
    this.#log = log
    this.#output = output
    this.#onStop = onStop
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
    this.#machine = new MachineSampler()
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
    })
    this.#monitor.on(() => {
      const counts = ownCounts()
      // They are in the next snapshot.
      if (counts !== null) this.#monitor.lost.push(counts)
    })
    this.#monitor.processBegins(process.pid, residentMemory())
    this.#actions = {
      gc: (/** @type {number | null} */ worker) => this.#collect(worker),
      restart: (/** @type {number | null} */ worker) => this.#restart(worker),
      stop: () => this.#onStop(),
      reload: onReload,
      log: (/** @type {(line: string) => void} */ reader) => this.#readLog(reader),
    }
    this.#relay = new StatsRelay(this.#monitor, this.#actions)
    pool.observers.push(this)
    pool.queues.observer = { messages: this.#ofQueues, ended: () => this.#queues.ended() }
  }

  /** Path of the stats socket; null if there is none. */
  get socket() {
    return this.#socket?.path ?? null
  }

  /** To be called once all workers listen. @param {{runtimeDir?: string}} place of the stats socket */
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
    this.#monitor.event({ level: 'info', kind: 'started', text: `listening on ${this.#facts.url}` })
    if (fallback !== '')
      this.#monitor.event({ level: 'warn', kind: 'driver', text: `node driver: ${fallback}` })
    this.#monitor.start()
  }

  /** @param {{file: string, max_bytes: number, keep: number}} options file '': none */
  #openCsv({ file, max_bytes, keep }) {
    this.#csv = null
    if (file === '') return
    const onError = (/** @type {string} */ text) => {
      this.#log.error(text)
      this.#monitor.event({ level: 'error', kind: 'csv', text })
    }
    this.#csv = new CsvWriter({ file, maxBytes: max_bytes, keep, onError })
  }

  /** @param {number} interval ms; 0: none */
  #scheduleGc(interval) {
    this.#gcSchedule?.stop()
    this.#gcSchedule =
      interval > 0
        ? new GcSchedule(interval, this.#pool.slots.length, worker =>
            this.#pool.sendTo(worker, { type: 'gc' }),
          )
        : null
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
    this.#monitor.event({ level: 'info', kind: 'reloaded', text: 'configuration reloaded' })
  }

  stopping() {
    this.#monitor.event({ level: 'info', kind: 'stopping', text: 'shutting down' })
  }

  /** Resolves when the CSV file and the stats socket are closed. */
  async close() {
    this.#monitor.stop()
    this.#gcSchedule?.stop()
    this.#process.stop()
    await Promise.all([this.#socket?.close(), this.#csv?.close(), this.#sockets.close()])
    this.#machine.close()
  }

  // Events of the worker pool

  /** @type {Required<PoolObserver>['starting']} */
  starting({ slot }) {
    // The next generation starts while the current one serves clients.
    if (!this.#pool.slots[slot].current?.listening) this.#monitor.workerState(slot, 'starting')
  }

  /** @type {Required<PoolObserver>['listening']} */
  listening({ slot, pid }) {
    this.#monitor.workerState(slot, 'up', false, pid)
    const text = `worker ${slot} is listening`
    this.#monitor.event({ level: 'info', kind: 'worker_started', text, worker: slot })
    // It missed messages sent while it started.
    this.#pool.sendTo(slot, this.#logging)
  }

  /** @type {Required<PoolObserver>['draining']} */
  draining({ slot, pid }) {
    this.#monitor.workerDrains(slot, pid)
    const text = `worker ${slot} is being replaced: the clients of the old process leave it`
    this.#monitor.event({ level: 'info', kind: 'worker_draining', text, worker: slot })
  }

  /** @type {Required<PoolObserver>['ended']} */
  ended({ slot, pid, worker }, { reason, died }) {
    this.#relay.remove(worker)
    this.#monitor.processEnded(pid)
    this.#monitor.workerEnded(slot, pid, !died)
    const failed = died || (reason !== 'restarted' && reason !== 'stopped')
    this.#monitor.event({
      level: failed ? 'error' : 'info',
      kind: 'worker_died',
      text: `worker ${slot} ${failed ? 'died' : 'stopped'}: ${reason}`,
      worker: slot,
    })
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

  // Commands of stats clients

  /** @param {number | null} worker null: all */
  #collect(worker) {
    if (worker === null) this.#pool.broadcast({ type: 'gc' })
    else if (!this.#pool.sendTo(worker, { type: 'gc' })) throw new Error(`worker ${worker} is not up`)
    const text = worker === null ? 'GC of all workers' : `GC of worker ${worker}`
    this.#monitor.event({ level: 'info', kind: 'gc', text: `${text} was requested`, worker })
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

/**
 * Collects garbage in one worker after another, so that no two pause at the same time.
 *
 *   interval   |-----------------------|
 *   worker 0   x                       x
 *   worker 1           x                       x
 *   worker 2                   x
 */
class GcSchedule {
  #next = 0
  #timer

  /**
   * @param {number} interval ms between two collections of the same worker
   * @param {number} workers @param {(worker: number) => void} collect
   */
  constructor(interval, workers, collect) {
    this.#timer = setInterval(() => {
      collect(this.#next)
      this.#next = (this.#next + 1) % workers
    }, interval / workers)
  }

  stop() {
    clearInterval(this.#timer)
  }
}
