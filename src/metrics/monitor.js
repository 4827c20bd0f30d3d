// The statistics of one node, in the primary: the samples of all workers become one snapshot a second.
// schema.js is the contract of this folder: figures, units, messages of the stats stream. The folder imports only
// Node.js; dashboards, fleet and reports may import schema.js, limits.js, csv-reader.js and tick-histogram.js.
//   worker:  worker-sample.js <- process-sample.js, traffic.js
//   machine: machine.js <- proc-files.js, memory-limit.js <- control-groups.js
//   primary: monitor.js <- merge.js, capacity.js, lifetimes.js
//   out:     csv-writer.js, stats-socket.js, stats-relay.js <-> stats-view.js
// It promises: percentiles come from merged histograms, counts are neither lost nor doubled when a worker dies, and a
// failing sink (disk, socket, listener) stops neither the gateway nor the other sinks.

import { CapacityEstimator } from './capacity.js'
import { EventLog, History } from './history.js'
import { Lifetimes } from './lifetimes.js'
import { add, emptyCounts, mergeTotals } from './merge.js'
import { NO_OUTPUTS, SCHEMA_VERSION } from './schema.js'
import { RedisOutage, WorkerState } from './worker-state.js'

/** @import { Counts, GatewayEvent, Hello, MachineSample, NodeFacts, ProcessSample, Snapshot } from './schema.js' */
/** @import { WorkerSample } from './schema.js' */

const INTERVAL_MS = 1000
/** After a longer time between two snapshots the primary itself was blocked, ms. */
const BLOCKED_MS = 2500
/** Workers send their samples at the full second; snapshots follow this much later, ms. */
const OFFSET_MS = 150
/** Close code of slow clients. */
const SLOW_CLOSE_CODE = '3008'
/** For systems other than Linux. */
const UNKNOWN = { read: () => null }

/** A snapshot for all listeners; its JSON text is made on first use. */
export class Update {
  #line = ''

  /** @param {Snapshot} snapshot */
  constructor(snapshot) {
    this.snapshot = snapshot
  }

  /** @returns {string} the message of the stats stream, with its line feed */
  line() {
    this.#line ||= `{"type":"snapshot","snapshot":${JSON.stringify(this.snapshot)}}\n`
    return this.#line
  }
}

/** @param {number} count @param {string} one @param {string} many */
const plural = (count, one, many) => `${count} ${count === 1 ? one : many}`

/** @type {Readonly<Record<'event_loop' | 'memory', string>>} */
const OVERLOADS = Object.freeze({ event_loop: 'its event-loop delay is high', memory: 'its memory is full' })

/** @param {number} worker index @param {WorkerSample['overload']} reason @returns {Omit<GatewayEvent, 'time'>} */
function overloadEvent(worker, reason) {
  const kind = 'overload'
  if (reason === null)
    return { level: 'info', kind, text: `worker ${worker} accepts new connections again`, worker }
  const text = `worker ${worker} refuses new connections: ${OVERLOADS[reason]}`
  return { level: 'warn', kind, text, worker }
}

/** Makes one snapshot a second. Telemetry connects it with the worker pool. */
export class Monitor {
  /** @type {Snapshot | null} */
  latest = null
  history = new History()
  #node
  #machine
  #process
  #sockets
  #log
  #channels
  #outputs
  #clock
  #now
  #workers
  #capacity
  #lifetimes
  #redis = new RedisOutage()
  #events = new EventLog()
  /** @type {Set<(update: Update) => void>} */
  #listeners = new Set()
  #counters = emptyCounts()
  /** @type {Counts[]} since the previous snapshot: of workers that have ended, of the primary's server API */
  lost = []
  /** @type {MachineSample | null} */
  #lastMachine = null
  #seq = 0
  /** Why a process cannot write its log; null: all can. @type {string | null} */
  #logError = null
  /** Proxies whose backend is down. @type {Set<string>} */
  #downProxies = new Set()
  /** Workers that accept no connections. @type {Set<number>} */
  #paused = new Set()
  #at
  /** @type {NodeJS.Timeout | undefined} */
  #timer

  /**
   * @param {object} options
   * @param {NodeFacts} options.node may be updated in place
   * @param {number} options.workers number of slots
   * @param {number} options.connectionLimit of the node; 0 for none
   * @param {{sample(): MachineSample}} options.machine
   * @param {{sample(): ProcessSample & {interval: number}}} options.process of the primary
   * @param {{read(): number | null}} [options.sockets] kernel bytes per connection
   * @param {{error: (fields: object, message: string) => void}} options.log
   * @param {() => number | null} [options.channels] number with subscribers; null unless the embedded broker knows
   * @param {() => Pick<Snapshot, keyof typeof NO_OUTPUTS>} [options.outputs] state of other parts
   * @param {() => number} [options.clock] unix ms
   * @param {() => number} [options.now] ms, monotonic
   */
  constructor({
    node,
    workers,
    connectionLimit,
    machine,
    process,
    sockets = UNKNOWN,
    log,
    channels = () => null,
    outputs = () => NO_OUTPUTS,
    clock = Date.now,
    now = () => performance.now(),
  }) {
    this.#node = node
    this.#machine = machine
    this.#process = process
    this.#sockets = sockets
    this.#log = log
    this.#channels = channels
    this.#outputs = outputs
    this.#clock = clock
    this.#now = now
    this.#at = now()
    this.#workers = Array.from({ length: workers }, (_, index) => new WorkerState(index, now))
    this.#capacity = new CapacityEstimator(connectionLimit)
    this.#lifetimes = new Lifetimes(workers)
  }

  /** @param {number} limit of the node; 0 for none */
  set connectionLimit(limit) {
    this.#capacity.connectionLimit = limit
  }

  /** @returns {number} of worker slots */
  get slots() {
    return this.#workers.length
  }

  /** @param {number} index @param {WorkerSample} sample */
  addSample(index, sample) {
    this.#lifetimes.addWorker(sample)
    const worker = this.#workers[index]
    if (!worker.addSample(sample)) this.lost.push(sample.counts)
    else if (worker.isCurrent(sample.pid) && worker.overload !== sample.overload) {
      worker.overload = sample.overload
      this.event(overloadEvent(index, sample.overload))
    }
  }

  /**
   * @param {number} index @param {'starting' | 'up' | 'down'} state of its current process
   * @param {boolean} [requested] no death @param {number | null} [pid] of a process that is up
   */
  workerState(index, state, requested = false, pid = null) {
    const unreported = this.#workers[index].enter(state, requested, pid)
    if (unreported) this.lost.push(unreported.counts)
    // A worker that has ended does not count as one without Redis.
    if (state === 'down') {
      this.redisState(index, true)
      this.#paused.delete(index)
    }
  }

  /** The current process of a worker lets its clients go. @param {number} index @param {number} pid */
  workerDrains(index, pid) {
    this.#workers[index].drains(pid)
  }

  /** A process of a worker has ended. @param {number} index @param {number} pid @param {boolean} requested no death */
  workerEnded(index, pid, requested) {
    const worker = this.#workers[index]
    if (worker.isCurrent(pid)) return this.workerState(index, 'down', requested)
    const unreported = worker.drained(pid)
    if (unreported) this.lost.push(unreported.counts)
  }

  /**
   * The memory baseline of a process without connections.
   * @param {number} pid @param {number | null} rss bytes; null if unknown
   */
  processBegins(pid, rss) {
    if (rss !== null) this.#capacity.begin(pid, rss)
  }

  /** @param {number} pid */
  processEnded(pid) {
    this.#capacity.end(pid)
  }

  /** @param {number} index @param {boolean} up whether the worker has Redis */
  redisState(index, up) {
    const event = this.#redis.update(index, up, this.#now())
    if (event) this.event(event)
  }

  /** @param {Omit<GatewayEvent, 'time' | 'worker'> & {worker?: number | null}} event */
  event({ level, kind, text, worker = null }) {
    this.#events.add({ time: this.#clock(), level, kind, text, worker })
  }

  /** @param {(update: Update) => void} listener called once a second @returns {() => void} removes it */
  on(listener) {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** @returns {Hello} the first message to a client; its history is empty: read `history` in parts */
  hello() {
    return {
      type: 'hello',
      schema: SCHEMA_VERSION,
      node: { ...this.#node },
      events: this.#events.recent(),
      history: [],
    }
  }

  start() {
    // Run after the other events of the turn: if the primary was blocked, samples still wait to be read.
    const tick = () => setImmediate(() => this.#tick())
    const now = this.#clock()
    const second = Math.round((now - OFFSET_MS) / INTERVAL_MS) + 1
    this.#timer = setTimeout(tick, second * INTERVAL_MS + OFFSET_MS - now).unref()
  }

  stop() {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #tick() {
    if (!this.#timer) return
    try {
      this.snapshot()
    } catch (error) {
      // A failing snapshot must not end the gateway.
      this.#log.error({ err: error }, 'snapshot failed')
    }
    this.start()
  }

  /** Makes a snapshot of the samples since the previous one and passes it to all listeners. @returns {Snapshot} */
  snapshot() {
    const time = this.#clock()
    const now = this.#now()
    const interval = Math.max(1, Math.round(now - this.#at))
    this.#at = now
    const { interval: ofPrimary, ...primary } = this.#process.sample()
    const machine = this.#readMachine()
    this.#lifetimes.addPrimary(primary, ofPrimary)
    this.#lifetimes.addMachine(machine, interval)
    // If the primary was blocked or stopped, workers may have been, too.
    if (interval < BLOCKED_MS) this.#checkSilence()
    const views = this.#workers.map(place => place.view())
    const processes = this.#workers.flatMap(place => place.samples())
    const fresh = this.#workers.flatMap(place => place.takeFresh())
    const channels = this.#channels()
    const kernel = this.#sockets.read()
    const totals = mergeTotals({ views, fresh, primary, lost: this.lost, channels, kernel })
    add(this.#counters, totals.counts)
    this.lost = []
    this.#warn(totals.counts, machine, fresh)
    this.#checkLogs([primary, ...fresh])
    this.#checkAccepting(fresh)
    this.#checkProxies(totals)
    /** @type {Snapshot} */
    const snapshot = {
      version: SCHEMA_VERSION,
      seq: ++this.#seq,
      time,
      interval,
      node: { ...this.#node },
      primary,
      workers: views,
      totals,
      counters: add(emptyCounts(), this.#counters),
      lifetimes: this.#lifetimes.read(),
      machine,
      capacity: this.#capacity.measure(primary, processes, machine, kernel),
      events: this.#events.drain(),
      ...this.#outputs(),
    }
    snapshot.collect = this.#clock() - Math.floor(time / INTERVAL_MS) * INTERVAL_MS
    this.#publish(snapshot)
    return snapshot
  }

  /** @param {Snapshot} snapshot */
  #publish(snapshot) {
    this.latest = snapshot
    this.history.add(snapshot)
    const update = new Update(snapshot)
    for (const listener of this.#listeners) {
      try {
        listener(update)
      } catch (error) {
        this.#log.error({ err: error }, 'snapshot listener failed')
      }
    }
  }

  #readMachine() {
    try {
      this.#lastMachine = this.#machine.sample()
    } catch (error) {
      if (!this.#lastMachine) throw error
      this.#log.error({ err: error }, 'machine figures unavailable: those of the previous second are used')
    }
    return this.#lastMachine
  }

  #checkSilence() {
    for (const [worker, state] of this.#workers.entries()) {
      const { silence } = state
      const change = state.checkSilence()
      if (!change) continue
      if (change === 'silent') {
        const text = `worker ${worker} has sent no sample for ${(silence / 1000).toFixed(1)} s: its event loop is blocked`
        this.event({ level: 'warn', kind: 'worker_silent', text, worker })
      } else {
        this.event({ level: 'info', kind: 'worker_silent', text: `worker ${worker} responds again`, worker })
      }
    }
  }

  /** @param {WorkerSample[]} fresh */
  #checkAccepting(fresh) {
    for (const { index: worker, accepting, files } of fresh) {
      if (this.#paused.has(worker) === !accepting) continue
      if (accepting) {
        this.#paused.delete(worker)
        this.event({
          level: 'info',
          kind: 'files',
          text: `worker ${worker} accepts connections again`,
          worker,
        })
      } else {
        this.#paused.add(worker)
        const text = `worker ${worker} accepts no connections: too few of its ${files.limit} descriptors are free`
        this.event({ level: 'error', kind: 'files', text, worker })
      }
    }
  }

  /** @param {Snapshot['totals']} totals */
  #checkProxies({ hooks }) {
    const before = this.#downProxies
    this.#downProxies = new Set(Object.keys(hooks).filter(name => hooks[name].down > 0))
    for (const name of this.#downProxies) {
      if (before.has(name)) continue
      this.event({
        level: 'error',
        kind: 'proxy',
        text: `the backend of the proxy ${name} is down: calls fail at once`,
      })
    }
    for (const name of before) {
      if (this.#downProxies.has(name)) continue
      this.event({ level: 'info', kind: 'proxy', text: `the backend of the proxy ${name} answers again` })
    }
  }

  /** @param {ProcessSample[]} samples */
  #checkLogs(samples) {
    const error = samples.find(({ log }) => log.error !== null)?.log.error ?? null
    if ((error === null) === (this.#logError === null)) return
    this.#logError = error
    if (error !== null) this.event({ level: 'error', kind: 'log', text: `cannot write the log: ${error}` })
    else this.event({ level: 'info', kind: 'log', text: 'the log is written again' })
  }

  /** @param {Counts} counts @param {MachineSample} machine @param {WorkerSample[]} fresh */
  #warn(counts, machine, fresh) {
    const slow = counts.closes[SLOW_CLOSE_CODE] ?? 0
    if (slow > 0) {
      const of = fresh.filter(sample => sample.counts.closes[SLOW_CLOSE_CODE] > 0)
      const worker = of.length === 1 ? of[0].index : null
      const text = `${plural(slow, 'slow client', 'slow clients')} disconnected`
      this.event({ level: 'warn', kind: 'slow_clients', text, worker })
    }
    const { overflows = 0 } = machine.listen ?? {}
    if (overflows > 0) {
      const text = `${plural(overflows, 'connection', 'connections')} overflowed a listen queue`
      this.event({ level: 'warn', kind: 'listen_overflow', text })
    }
  }
}
