// What the primary knows of its gateway, and whom it tells: puts the monitor, the CSV file, the stats socket and the workers' own
// questions together.

import { CsvWriter } from '../stats/csv-writer.js'
import { MachineWatch } from '../stats/machine.js'
import { Monitor } from '../stats/monitor.js'
import { ProcessSampler } from '../stats/process-sample.js'
import { SocketMemory } from '../stats/socket-memory.js'
import { socketPath } from '../stats/socket-path.js'
import { StatsRelay } from '../stats/stats-relay.js'
import { StatsSocket } from '../stats/stats-socket.js'
import { GcRounds } from './gc-rounds.js'

/**
 * @typedef {import('./worker-pool.js').WorkerPool} WorkerPool
 * @typedef {import('./worker-pool.js').PoolObserver} PoolObserver
 */

/** The primary serves no clients, so its ticks are looked at less often than those of workers, ms. */
const PRIMARY_GRID_MS = 50
/** Log lines that a dashboard which is opened later finds there. */
const KEPT_LINES = 200

/**
 * Watches a pool of workers.
 * @implements {PoolObserver}
 */
export class Telemetry {
  #pool
  #log
  #output
  #onStop
  #machine
  #sockets
  #process = new ProcessSampler(PRIMARY_GRID_MS)
  #monitor
  #relay
  #actions
  #facts
  /** @type {CsvWriter | null} */
  #csv = null
  /** @type {GcRounds | null} */
  #rounds = null
  /** @type {StatsSocket | null} */
  #socket = null
  /** @type {string[]} the last log lines, while somebody could ask for them */
  #lines = []
  /** @type {Set<(line: string) => void>} */
  #readers = new Set()
  /** Whether log lines are kept for a dashboard, and not shown. */
  #held = false

  /**
   * @param {object} options
   * @param {WorkerPool} options.pool whose workers are not started yet
   * @param {import('pino').Logger} options.log
   * @param {import('../log.js').LogOutput | null} options.output of the log; null: it is somebody else's
   * @param {() => void} options.onStop somebody who may has asked to end the gateway
   */
  constructor({ pool, log, output, onStop }) {
    this.#pool = pool
    this.#log = log
    this.#output = output
    this.#onStop = onStop
    const { config, node, url, slots } = pool
    this.#facts = {
      id: node.uid,
      name: node.name,
      version: node.version,
      url,
      pid: process.pid,
      started_at: node.startedAt,
      engine: config.engine.type,
      driver: '',
      node_version: process.version,
      workers: slots.length,
    }
    const { port, internal_port } = config.http_server
    this.#machine = new MachineWatch()
    this.#sockets = new SocketMemory([port, internal_port])
    this.#monitor = new Monitor({
      node: this.#facts,
      workers: slots.length,
      connectionLimit: config.client.connection_limit,
      machine: this.#machine,
      process: this.#process,
      sockets: this.#sockets,
      log,
      csv: () => this.#csv?.status ?? null,
      channels: () => (config.engine.type === 'memory' ? pool.channels : null),
    })
    this.#monitor.processBegins(process.pid, process.memoryUsage.rss())
    this.#actions = {
      gc: (/** @type {number | null} */ worker) => this.#collect(worker),
      restart: (/** @type {number} */ worker) => this.#restart(worker),
      stop: () => this.#onStop(),
      log: (/** @type {(line: string) => void} */ reader) => this.#read(reader),
    }
    this.#relay = new StatsRelay(this.#monitor, this.#actions)
    pool.observer = this
  }

  /** Where dashboards find the gateway; null: nowhere. */
  get socket() {
    return this.#socket?.path ?? null
  }

  /**
   * Begins, once all workers listen.
   * @param {{runtimeDir?: string}} place of the stats socket
   */
  async start(place) {
    const { config, driver, slots } = this.#pool
    const { stats, gc, http_server: server } = config
    this.#facts.driver = driver
    if (stats.csv.file !== '') this.#openCsv(stats.csv)
    if (gc.interval > 0) {
      this.#rounds = new GcRounds(gc.interval, slots.length, worker =>
        this.#pool.tellOne(worker, { type: 'gc' }),
      )
    }
    const path = socketPath(stats.socket, server.port, place)
    if (path !== null) {
      this.#socket = await StatsSocket.open({
        path,
        own: stats.socket === 'auto',
        monitor: this.#monitor,
        actions: this.#actions,
        log: this.#log,
      })
    }
    this.#monitor.event({ level: 'info', kind: 'started', text: `listens on ${this.#facts.url}` })
    this.#monitor.start()
  }

  /** @param {{file: string, max_bytes: number, keep: number}} options */
  #openCsv({ file, max_bytes, keep }) {
    const onError = (/** @type {string} */ text) => {
      this.#log.error(text)
      this.#monitor.event({ level: 'error', kind: 'csv', text })
    }
    const csv = new CsvWriter({ file, maxBytes: max_bytes, keep, onError })
    this.#csv = csv
    this.#monitor.on(({ snapshot }) => csv.write(snapshot))
  }

  /** The configuration was read again. */
  reloaded() {
    this.#monitor.event({ level: 'info', kind: 'reloaded', text: 'configuration reloaded' })
  }

  /** The gateway ends. */
  stopping() {
    this.#monitor.event({ level: 'info', kind: 'stopping', text: 'shutting down' })
  }

  /** Ends; what was written is on its way to the disk. */
  async close() {
    this.#monitor.stop()
    this.#rounds?.stop()
    this.#process.stop()
    await Promise.all([this.#socket?.close(), this.#csv?.close(), this.#sockets.close()])
    this.#machine.close()
  }

  // What happens to workers

  /** @type {PoolObserver['starting']} */
  starting(index) {
    this.#monitor.workerState(index, 'starting')
  }

  /** @type {PoolObserver['listening']} */
  listening(index) {
    this.#monitor.workerState(index, 'up')
    const text = `worker ${index} listens`
    this.#monitor.event({ level: 'info', kind: 'worker_started', text, worker: index })
    // What was told while it started it has not heard.
    this.#pool.tellOne(index, this.#logging)
  }

  /** @type {PoolObserver['ended']} */
  ended(index, worker, { reason, asked }) {
    this.#relay.gone(worker)
    this.#monitor.processEnded(/** @type {number} */ (worker.process.pid))
    this.#monitor.workerState(index, 'down', asked)
    this.#monitor.event({
      level: asked ? 'info' : 'error',
      kind: 'worker_died',
      text: asked ? `worker ${index} has ended: ${reason}` : `worker ${index} died: ${reason}`,
      worker: index,
    })
  }

  /** @type {PoolObserver['heard']} */
  heard(index, worker, message) {
    switch (message.type) {
      case 'ready-to-listen':
        this.#monitor.processBegins(/** @type {number} */ (worker.process.pid), message.rss)
        break
      case 'sample':
        this.#monitor.take(index, message.sample)
        break
      case 'redis':
        this.#monitor.redisState(index, message.up)
        break
      case 'stats':
        this.#relay.take(worker, message)
        break
      case 'log':
        this.#line(message.line)
    }
  }

  // What may be asked for

  /** @param {number | null} worker null: all */
  #collect(worker) {
    if (worker === null) this.#pool.tell({ type: 'gc' })
    else if (!this.#pool.tellOne(worker, { type: 'gc' })) throw new Error(`worker ${worker} is not up`)
    const text = worker === null ? 'GC of all workers' : `GC of worker ${worker}`
    this.#monitor.event({ level: 'info', kind: 'gc', text: `${text} was asked for`, worker })
  }

  /** @param {number} worker */
  #restart(worker) {
    this.#pool.restart(worker)
    this.#log.info({ worker }, 'a restart was asked for')
  }

  // The log

  /**
   * From now on log lines are kept for those who watch, and not shown; or they are shown again.
   * @param {boolean} held
   */
  hold(held) {
    this.#held = held
    this.#pool.quiet = held
    if (this.#output) this.#output.shown = !held
    this.#forward()
  }

  /** @returns {{type: 'log', shown: boolean, forward: boolean}} what workers do with their lines */
  get #logging() {
    return { type: 'log', shown: !this.#held, forward: this.#held || this.#readers.size > 0 }
  }

  /** Lines come here, from all processes, if somebody wants them. */
  #forward() {
    const logging = this.#logging
    if (this.#output) this.#output.forward = logging.forward ? line => this.#line(line) : null
    this.#pool.tell(logging)
    if (!logging.forward) this.#lines = []
  }

  /** @param {string} line */
  #line(line) {
    this.#lines.push(line)
    if (this.#lines.length > KEPT_LINES) this.#lines.shift()
    for (const reader of this.#readers) reader(line)
  }

  /**
   * @param {(line: string) => void} reader
   * @returns {() => void}
   */
  #read(reader) {
    for (const line of this.#lines) reader(line)
    this.#readers.add(reader)
    if (this.#readers.size === 1) this.#forward()
    return () => {
      if (this.#readers.delete(reader) && this.#readers.size === 0) this.#forward()
    }
  }
}
