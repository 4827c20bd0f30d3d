// Statistics of a node, in the primary: merges the samples of all workers into one snapshot a second. schema.js is the
// contract of this folder, which imports only Node.js.
// Percentiles come from merged histograms, counts are neither lost nor doubled when a worker dies, and a failing sink
// (disk, socket, listener) stops neither the gateway nor the other sinks.

import { CapacityEstimator } from './capacity.js'
import { EventLog, History } from './history.js'
import { Lifetimes } from './lifetimes.js'
import { add, emptyCounts, mergeTotals } from './merge.js'
import { NO_OUTPUTS, SCHEMA_VERSION } from './schema.js'
import { WorkerState } from './worker-state.js'

/**
 * @import { BrokerFigures, Counts, GatewayEvent, Hello, MachineSample, NodeFacts, ProcessSample, Snapshot, WorkerSample } from './schema.js'
 */

const INTERVAL_MS = 1000
/** Interval of snapshots above which the primary was blocked, ms. */
const BLOCKED_MS = 2500
/** Delay of snapshots after the full second, when workers send their samples. */
const OFFSET_MS = 150
/** Close code of slow clients. */
const SLOW_CLOSE_CODE = '3008'
/** Used on systems other than Linux. */
const UNKNOWN = { read: () => null }

/** Serialized once for all listeners. */
export class Update {
  #line = ''

  /** @param {Snapshot} snapshot */
  constructor(snapshot) {
    this.snapshot = snapshot
  }

  line() {
    this.#line ||= `{"type":"snapshot","snapshot":${JSON.stringify(this.snapshot)}}\n`
    return this.#line
  }
}

/** @param {number} count @param {string} noun */
const plural = (count, noun) => `${count} ${noun}${count === 1 ? '' : 's'}`

/** @type {Readonly<Record<'event_loop' | 'memory', string>>} */
const OVERLOADS = Object.freeze({ event_loop: 'high event-loop delay', memory: 'high memory usage' })

export class Monitor {
  /** @type {Snapshot | null} */
  latest = null
  history = new History()
  /** Counts of ended workers and the primary's server API since the previous snapshot. @type {Counts[]} */
  lost = []
  #parts
  #workers
  #capacity
  #lifetimes
  #events = new EventLog()
  /** @type {Set<(update: Update) => void>} */
  #listeners = new Set()
  #counters = emptyCounts()
  /** @type {MachineSample | null} */
  #lastMachine = null
  #seq = 0
  /** Reported conditions, by kind and worker or name. @type {Set<string>} */
  #conditions = new Set()
  /** Workers without Redis. @type {Set<number>} */
  #withoutRedis = new Set()
  #redisLostAt = 0
  #at
  /** @type {NodeJS.Timeout | undefined} */
  #timer

  /**
   * @param {object} options
   * @param {NodeFacts} options.node may be updated in place
   * @param {number} options.workers slots
   * @param {number} options.connectionLimit of the node; 0: none
   * @param {{sample(): MachineSample}} options.machine
   * @param {{sample(): ProcessSample & {interval: number}}} options.process the primary
   * @param {{read(): number | null}} [options.sockets] kernel bytes per connection
   * @param {{error: (fields: object, message: string) => void}} options.log
   * @param {() => number | null} [options.channels] with subscribers; null without the embedded broker
   * @param {() => BrokerFigures} [options.broker] since the last call
   * @param {() => Pick<Snapshot, keyof typeof NO_OUTPUTS>} [options.outputs]
   * @param {() => number} [options.clock] unix ms
   * @param {() => number} [options.now] ms, monotonic
   */
  constructor({
    workers,
    connectionLimit,
    sockets = UNKNOWN,
    channels = () => null,
    broker = () => ({ maps: null, polls: null }),
    outputs = () => NO_OUTPUTS,
    clock = Date.now,
    now = () => performance.now(),
    ...parts
  }) {
    this.#parts = { ...parts, sockets, channels, broker, outputs, clock, now }
    this.#at = now()
    this.#workers = Array.from({ length: workers }, (_, index) => new WorkerState(index, now))
    this.#capacity = new CapacityEstimator(connectionLimit)
    this.#lifetimes = new Lifetimes(workers)
  }

  /** @param {number} limit 0: none */
  set connectionLimit(limit) {
    this.#capacity.connectionLimit = limit
  }

  get slots() {
    return this.#workers.length
  }

  /** @param {number} index @param {WorkerSample} sample */
  addSample(index, sample) {
    this.#lifetimes.addWorker(sample)
    const worker = this.#workers[index]
    const { overload } = sample
    if (!worker.addSample(sample)) this.lost.push(sample.counts)
    else if (worker.isCurrent(sample.pid) && worker.overload !== overload) {
      worker.overload = overload
      const text = overload
        ? `worker ${index} refuses new connections: ${OVERLOADS[overload]}`
        : `worker ${index} accepts new connections again`
      this.event({ level: overload ? 'warn' : 'info', kind: 'overload', text, worker: index })
    }
  }

  /**
   * @param {number} index
   * @param {'starting' | 'up' | 'down'} state of its current process
   * @param {boolean} [requested] not a crash
   * @param {number | null} [pid] while up
   */
  workerState(index, state, requested = false, pid = null) {
    const unreported = this.#workers[index].enter(state, requested, pid)
    if (unreported) this.lost.push(unreported.counts)
    this.#conditions.delete(`worker_silent ${index}`)
    if (state !== 'down') return
    // An ended worker needs no Redis.
    this.redisState(index, true)
    this.#conditions.delete(`files ${index}`)
  }

  /** Disconnects its clients. @param {number} index @param {number} pid */
  workerDrains(index, pid) {
    this.#workers[index].drains(pid)
  }

  /** @param {number} index @param {number} pid @param {boolean} requested not a crash */
  workerEnded(index, pid, requested) {
    const worker = this.#workers[index]
    if (worker.isCurrent(pid)) return this.workerState(index, 'down', requested)
    const unreported = worker.drained(pid)
    if (unreported) this.lost.push(unreported.counts)
  }

  /** Memory without connections. @param {number} pid @param {number | null} rss bytes */
  processBegins(pid, rss) {
    if (rss !== null) this.#capacity.begin(pid, rss)
  }

  /** @param {number} pid */
  processEnded(pid) {
    this.#capacity.end(pid)
  }

  /** An outage lasts until all workers have Redis. @param {number} worker @param {boolean} up */
  redisState(worker, up) {
    const without = this.#withoutRedis
    if (up === !without.has(worker)) return
    if (up) without.delete(worker)
    else without.add(worker)
    if (!up && without.size === 1) {
      this.#redisLostAt = this.#parts.now()
      const text = `worker ${worker} lost its connection to Redis`
      this.event({ level: 'error', kind: 'redis_lost', text, worker })
    } else if (without.size === 0) {
      const seconds = ((this.#parts.now() - this.#redisLostAt) / 1000).toFixed(1)
      const text = `all workers are connected to Redis again, after ${seconds} s`
      this.event({ level: 'info', kind: 'redis_back', text })
    }
  }

  /** @param {Omit<GatewayEvent, 'time' | 'worker'> & {worker?: number | null}} event */
  event({ level, kind, text, worker = null }) {
    this.#events.add({ time: this.#parts.clock(), level, kind, text, worker })
  }

  /** @param {(update: Update) => void} listener @returns removes it */
  on(listener) {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Its history is empty: read `history` in parts. @returns {Hello} */
  hello() {
    return {
      type: 'hello',
      schema: SCHEMA_VERSION,
      node: { ...this.#parts.node },
      events: this.#events.recent(),
      history: [],
    }
  }

  start() {
    // After the other events of the turn: if the primary was blocked, samples are still unread.
    const tick = () => setImmediate(() => this.#tick())
    const now = this.#parts.clock()
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
      this.#parts.log.error({ err: error }, 'snapshot failed')
    }
    this.start()
  }

  /** Passes the samples since the previous one to all listeners. @returns {Snapshot} */
  snapshot() {
    const time = this.#parts.clock()
    const now = this.#parts.now()
    const interval = Math.max(1, Math.round(now - this.#at))
    this.#at = now
    const { interval: ofPrimary, ...primary } = this.#parts.process.sample()
    const machine = this.#readMachine()
    this.#lifetimes.addPrimary(primary, ofPrimary)
    this.#lifetimes.addMachine(machine, interval)
    // If the primary was blocked or stopped, workers may have been too.
    if (interval < BLOCKED_MS) this.#checkSilence()
    const views = this.#workers.map(place => place.view())
    const processes = this.#workers.flatMap(place => place.samples())
    const fresh = this.#workers.flatMap(place => place.takeFresh())
    const channels = this.#parts.channels()
    const broker = this.#parts.broker()
    const kernel = this.#parts.sockets.read()
    const totals = mergeTotals({ views, fresh, primary, lost: this.lost, channels, broker, kernel })
    add(this.#counters, totals.counts)
    this.lost = []
    this.#warn(totals.counts, machine, fresh)
    this.#checkConditions(primary, fresh, totals)
    /** @type {Snapshot} */
    const snapshot = {
      version: SCHEMA_VERSION,
      seq: ++this.#seq,
      time,
      interval,
      node: { ...this.#parts.node },
      primary,
      workers: views,
      totals,
      counters: add(emptyCounts(), this.#counters),
      lifetimes: this.#lifetimes.read(),
      machine,
      capacity: this.#capacity.measure(primary, processes, machine, kernel),
      events: this.#events.drain(),
      ...this.#parts.outputs(),
    }
    snapshot.collect = this.#parts.clock() - Math.floor(time / INTERVAL_MS) * INTERVAL_MS
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
        this.#parts.log.error({ err: error }, 'snapshot listener failed')
      }
    }
  }

  #readMachine() {
    try {
      this.#lastMachine = this.#parts.machine.sample()
    } catch (error) {
      if (!this.#lastMachine) throw error
      this.#parts.log.error({ err: error }, 'machine statistics unavailable: using the previous sample')
    }
    return this.#lastMachine
  }

  /**
   * @param {boolean} on
   * @param {'warn' | 'error'} level at its start
   * @param {GatewayEvent['kind']} kind
   * @param {string | number} id worker index or name
   * @param {string} begin text
   * @param {string} end text
   */
  #condition(on, level, kind, id, begin, end) {
    const key = `${kind} ${id}`
    if (this.#conditions.has(key) === on) return
    if (on) this.#conditions.add(key)
    else this.#conditions.delete(key)
    const worker = typeof id === 'number' ? id : null
    this.event({ level: on ? level : 'info', kind, text: on ? begin : end, worker })
  }

  #checkSilence() {
    for (const [i, state] of this.#workers.entries()) {
      const silent = state.checkSilence()
      const begin = `worker ${i} has sent no sample for ${(state.silence / 1000).toFixed(1)} s: its event loop is blocked`
      this.#condition(silent, 'warn', 'worker_silent', i, begin, `worker ${i} responds again`)
    }
  }

  /** @param {ProcessSample} primary @param {WorkerSample[]} fresh @param {Snapshot['totals']} totals */
  #checkConditions(primary, fresh, { hooks }) {
    const error = [primary, ...fresh].find(({ log }) => log.error !== null)?.log.error ?? null
    this.#condition(
      error !== null,
      'error',
      'log',
      '',
      `cannot write the log: ${error}`,
      'the log is writable again',
    )
    for (const { index, accepting, files } of fresh) {
      const begin = `worker ${index} accepts no connections: too few of its ${files.limit} file descriptors are free`
      this.#condition(!accepting, 'error', 'files', index, begin, `worker ${index} accepts connections again`)
    }
    // Also removed proxies.
    const down = [...this.#conditions]
      .filter(key => key.startsWith('proxy '))
      .map(key => key.slice('proxy '.length))
    for (const name of new Set([...Object.keys(hooks), ...down])) {
      const proxy = `the backend of the proxy ${name}`
      const isDown = (hooks[name]?.down ?? 0) > 0
      this.#condition(
        isDown,
        'error',
        'proxy',
        name,
        `${proxy} is down: calls fail immediately`,
        `${proxy} responds again`,
      )
    }
  }

  /** @param {Counts} counts @param {MachineSample} machine @param {WorkerSample[]} fresh */
  #warn(counts, machine, fresh) {
    const slow = counts.closes[SLOW_CLOSE_CODE] ?? 0
    if (slow > 0) {
      const of = fresh.filter(sample => sample.counts.closes[SLOW_CLOSE_CODE] > 0)
      const worker = of.length === 1 ? of[0].index : null
      this.event({
        level: 'warn',
        kind: 'slow_clients',
        text: `${plural(slow, 'slow client')} disconnected`,
        worker,
      })
    }
    const { overflows = 0 } = machine.listen ?? {}
    const text = `${plural(overflows, 'connection')} overflowed a listen queue`
    if (overflows > 0) this.event({ level: 'warn', kind: 'listen_overflow', text })
  }
}
