import { CapacityWatch } from './capacity.js'
import { EventLog } from './event-log.js'
import { History } from './history.js'
import { Lifetimes } from './lifetimes.js'
import { addCounts, emptyCounts, mergeTotals } from './merge.js'
import { RedisWatch } from './redis-watch.js'
import { SCHEMA_VERSION } from './schema.js'
import { WorkerPlace } from './worker-place.js'

/**
 * @typedef {import('./schema.js').Snapshot} Snapshot
 * @typedef {import('./schema.js').WorkerSample} WorkerSample
 * @typedef {import('./schema.js').GatewayEvent} GatewayEvent
 * @typedef {import('./schema.js').MachineSample} MachineSample
 * @typedef {import('./schema.js').ProcessSample} ProcessSample
 */

const INTERVAL_MS = 1000
/** Between two snapshots: the primary itself has stood still. */
const HELD_UP_MS = 2500
/** Workers send their samples at the full second: so much later they are here. */
const OFFSET_MS = 150
const SLOW = '3008'
/** Elsewhere than on Linux. */
const UNKNOWN = { read: () => null }

/**
 * A snapshot on its way to all who listen: its text is made for the first who wants it.
 */
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

/**
 * @param {number} count
 * @param {string} one
 * @param {string} many
 */
const numbered = (count, one, many) => `${count} ${count === 1 ? one : many}`

/**
 * What the primary knows of the whole node: takes the samples of the workers, looks at itself and at the machine, and once a
 * second makes one snapshot of it all.
 *
 * ```
 * const machine = new MachineWatch()
 * const monitor = new Monitor({ node, workers: slots.length, connectionLimit: config.client.connection_limit, machine,
 *   process: new ProcessSampler(), sockets: new SocketMemory([port]), log, csv: () => csv?.status ?? null, channels: () => host.channels })
 * pool.observer = {
 *   starting: index => monitor.workerState(index, 'starting'),
 *   listening: index => monitor.workerState(index, 'up'),          // + monitor.event({kind: 'worker_started' ...})
 *   ended: (index, worker, { asked }) => { monitor.workerState(index, 'down', asked); relay.gone(worker) },
 *   heard: (index, worker, message) => {
 *     if (message.type === 'sample') monitor.take(index, message.sample)
 *     else if (message.type === 'redis') monitor.redisState(index, message.up)
 *     else if (message.type === 'stats') relay.take(worker, message)
 *   },
 * }
 * const actions = { gc, restart, stop, log }                       // see StatsActions in stats-commands.js
 * const relay = new StatsRelay(monitor, actions)
 * const socket = await StatsSocket.open({ path, own, monitor, actions, log })   // null: it has said why
 * monitor.start()                                                  // monitor.stop(), socket?.close(), machine.close()
 * ```
 */
export class Monitor {
  /** @type {Snapshot | null} */
  latest = null
  /** The last minutes, thinned. */
  history = new History()
  #node
  #machine
  #process
  #sockets
  #log
  #channels
  #csv
  #clock
  #now
  #places
  #capacity
  #lifetimes
  #redis = new RedisWatch()
  #events = new EventLog()
  /** @type {Set<(update: Update) => void>} */
  #listeners = new Set()
  #counters = emptyCounts()
  /** @type {import('./schema.js').Counts[]} told by workers that ended before a snapshot could say so */
  #lost = []
  /** @type {MachineSample | null} */
  #lastMachine = null
  #seq = 0
  #at
  /** @type {NodeJS.Timeout | undefined} */
  #timer

  /**
   * @param {object} options
   * @param {import('./schema.js').NodeFacts} options.node what of it becomes known later may be changed in place
   * @param {number} options.workers how many places there are
   * @param {number} options.connectionLimit of the node; 0 for none
   * @param {{sample(): MachineSample}} options.machine
   * @param {{sample(): ProcessSample & {interval: number}}} options.process of the primary
   * @param {{read(): number | null}} [options.sockets] bytes that the kernel holds for a connection
   * @param {Pick<import('pino').Logger, 'error'>} options.log
   * @param {() => number | null} [options.channels] how many have subscribers, where the primary knows: with the embedded broker
   * @param {() => Snapshot['csv']} [options.csv] how the file of figures is doing
   * @param {() => number} [options.clock] unix ms
   * @param {() => number} [options.now] ms, on a clock that nobody sets
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
    csv = () => null,
    clock = Date.now,
    now = () => performance.now(),
  }) {
    this.#node = node
    this.#machine = machine
    this.#process = process
    this.#sockets = sockets
    this.#log = log
    this.#channels = channels
    this.#csv = csv
    this.#clock = clock
    this.#now = now
    this.#at = now()
    this.#places = Array.from({ length: workers }, (_, index) => new WorkerPlace(index, now))
    this.#capacity = new CapacityWatch(connectionLimit)
    this.#lifetimes = new Lifetimes(workers)
  }

  /** @returns {number} of workers, there or not */
  get places() {
    return this.#places.length
  }

  /**
   * A worker's sample has come.
   * @param {number} index
   * @param {WorkerSample} sample
   */
  take(index, sample) {
    this.#lifetimes.addWorker(sample)
    if (!this.#places[index].take(sample)) this.#lost.push(sample.counts)
  }

  /**
   * @param {number} index
   * @param {'starting' | 'up' | 'down'} state
   * @param {boolean} [asked] whether it goes down on purpose: that is no death
   */
  workerState(index, state, asked = false) {
    const untold = this.#places[index].enter(state, asked)
    if (untold) this.#lost.push(untold.counts)
    // One that has ended misses nothing any more.
    if (state === 'down') this.redisState(index, true)
  }

  /**
   * A process of the gateway has no connections yet.
   * @param {number} pid
   * @param {number} rss bytes
   */
  processBegins(pid, rss) {
    this.#capacity.begin(pid, rss)
  }

  /** @param {number} pid */
  processEnded(pid) {
    this.#capacity.end(pid)
  }

  /**
   * A worker has lost Redis, or has it back.
   * @param {number} index
   * @param {boolean} up
   */
  redisState(index, up) {
    const event = this.#redis.take(index, up, this.#now())
    if (event) this.event(event)
  }

  /** @param {Omit<GatewayEvent, 'time' | 'worker'> & {worker?: number | null}} event */
  event({ level, kind, text, worker = null }) {
    this.#events.add({ time: this.#clock(), level, kind, text, worker })
  }

  /**
   * @param {(update: Update) => void} listener called once a second
   * @returns {() => void} ends that
   */
  on(listener) {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** @returns {import('./schema.js').Hello} what is said first, with a history that is still empty: see `history` */
  hello() {
    return {
      type: 'hello',
      schema: SCHEMA_VERSION,
      node: { ...this.#node },
      events: this.#events.read(),
      history: [],
    }
  }

  /** From now on there is a snapshot a second. */
  start() {
    // Behind the other events of the turn: where the primary itself was held up, samples wait to be read.
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
      // Who watches must not bring down what is watched.
      this.#log.error({ err: error }, 'no figures for this second')
    }
    this.start()
  }

  /**
   * Makes a snapshot of what came in since the last one, and tells all who listen.
   * @returns {Snapshot}
   */
  snapshot() {
    const time = this.#clock()
    const now = this.#now()
    const interval = Math.max(1, Math.round(now - this.#at))
    this.#at = now
    const { interval: ofPrimary, ...primary } = this.#process.sample()
    const machine = this.#readMachine()
    this.#lifetimes.addPrimary(primary, ofPrimary)
    this.#lifetimes.addMachine(machine, interval)
    // Where the primary itself was held up or stopped, workers may have been so with it.
    if (interval < HELD_UP_MS) this.#notice()
    const views = this.#places.map(place => place.view())
    const fresh = this.#places.flatMap(place => place.fresh ?? [])
    const channels = this.#channels()
    const kernel = this.#sockets.read()
    const totals = mergeTotals({ views, fresh, primary, lost: this.#lost, channels, kernel })
    addCounts(this.#counters, totals.counts)
    for (const place of this.#places) place.fresh = null
    this.#lost = []
    this.#warn(totals.counts, machine, fresh)
    const samples = views.flatMap(({ sample }) => sample ?? [])
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
      counters: addCounts(emptyCounts(), this.#counters),
      lifetimes: this.#lifetimes.read(),
      machine,
      capacity: this.#capacity.measure(primary, samples, machine, kernel),
      events: this.#events.take(),
      csv: this.#csv(),
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
        this.#log.error({ err: error }, 'a listener to the figures has failed')
      }
    }
  }

  #readMachine() {
    try {
      this.#lastMachine = this.#machine.sample()
    } catch (error) {
      if (!this.#lastMachine) throw error
      this.#log.error({ err: error }, 'the figures of the machine are those of a second ago')
    }
    return this.#lastMachine
  }

  #notice() {
    for (const [worker, place] of this.#places.entries()) {
      const { silence } = place
      const change = place.notice()
      if (!change) continue
      if (change === 'silent') {
        const text = `worker ${worker} has said nothing for ${(silence / 1000).toFixed(1)} s: its event loop hangs`
        this.event({ level: 'warn', kind: 'worker_silent', text, worker })
      } else {
        this.event({ level: 'info', kind: 'worker_silent', text: `worker ${worker} speaks again`, worker })
      }
    }
  }

  /**
   * @param {import('./schema.js').Counts} counts
   * @param {MachineSample} machine
   * @param {WorkerSample[]} fresh
   */
  #warn(counts, machine, fresh) {
    const slow = counts.closes[SLOW] ?? 0
    if (slow > 0) {
      const of = fresh.filter(sample => sample.counts.closes[SLOW] > 0)
      const worker = of.length === 1 ? of[0].index : null
      const text = `${numbered(slow, 'slow client was', 'slow clients were')} closed`
      this.event({ level: 'warn', kind: 'slow_clients', text, worker })
    }
    const { overflows = 0 } = machine.listen ?? {}
    if (overflows > 0) {
      const text = `${numbered(overflows, 'connection', 'connections')} did not fit into a listen queue`
      this.event({ level: 'warn', kind: 'listen_overflow', text })
    }
  }
}
