// A gateway's snapshots without a gateway: plausible, complete by src/metrics/schema.js, and the same for the same
// options.

import { noBatchCounts } from '../../src/metrics/batch-stats.js'
import { Lifetimes } from '../../src/metrics/lifetimes.js'
import { SCHEMA_VERSION } from '../../src/metrics/schema.js'
import { BATCH_BOUNDS, DURATION_BOUNDS } from '../../src/metrics/table.js'
import { TickHistogram } from '../../src/metrics/tick-histogram.js'

/** @typedef {import('../../src/metrics/schema.js').Snapshot} Snapshot */

const MB = 1024 * 1024
const GB = 1024 * MB
/** A process may open so many. */
const FILES = 1_000_000
/** Bytes that the kernel holds for a connection. */
const KERNEL = 4700
/** Clients: how many of a hundred come by which transport and codec. */
const WAYS = /** @type {const} */ ([
  ['websocket', 'json', 70],
  ['websocket', 'protobuf', 15],
  ['sse', 'json', 6],
  ['http_stream', 'json', 5],
  ['uni_sse', 'json', 3],
  ['poll', 'json', 1],
])
/** A proxy of the configuration. */
const HOOK = 'http connect default'
const METHODS = /** @type {const} */ (['publish', 'subscribe', 'history', 'presence', 'rpc'])

/** Numbers that look like chance, and are the same each time. */
class Chance {
  #state

  /** @param {number} seed */
  constructor(seed) {
    this.#state = (seed * 2654435761 + 1) >>> 0
  }

  /** @returns {number} 0 to 1 */
  next() {
    this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0
    // The low bits repeat themselves soon.
    return (this.#state >>> 8) / 0x1000000
  }

  /**
   * @param {number} low
   * @param {number} high
   */
  between(low, high) {
    return low + this.next() * (high - low)
  }

  /**
   * @param {number} low
   * @param {number} high
   */
  whole(low, high) {
    return Math.floor(this.between(low, high + 1))
  }
}

/**
 * @param {any} into
 * @param {any} from of the same shape, or with other names
 */
function add(into, from) {
  for (const [name, value] of Object.entries(from)) {
    if (typeof value === 'number') into[name] = (into[name] ?? 0) + value
    else add((into[name] ??= Array.isArray(value) ? [] : {}), value)
  }
  return into
}

/** @param {number} value */
const hundredths = value => Math.round(value * 100) / 100

/**
 * @param {Chance} chance
 * @param {number} load 0 to 1
 * @param {number} block ms for which the loop stood still
 */
function ticks(chance, load, block) {
  const histogram = new TickHistogram()
  const usual = 0.1 + load * chance.between(2, 5)
  for (let left = Math.round(99 - block / 10); left > 0; left--) histogram.record(usual * chance.next() ** 3)
  histogram.record(block || usual * chance.between(1.5, 3))
  return histogram.toTicks()
}

/**
 * @param {Chance} chance
 * @param {{pid: number, uptime: number, load: number, heap: number, native: number, open: number, block?: number}}
 *   shape heap, native: bytes
 * @returns {import('../../src/metrics/schema.js').ProcessSample}
 */
function processSample(chance, { pid, uptime, load, heap, native, open, block = 0 }) {
  const used = Math.round(heap * chance.between(0.7, 0.95))
  const part = (/** @type {number} */ share) => ({
    used: Math.round(used * share),
    total: Math.round(heap * share),
  })
  const minor = Math.round(load * chance.between(5, 12))
  const major = chance.next() < load / 20 ? 1 : 0
  return {
    pid,
    uptime,
    cpu: {
      user: hundredths(load * chance.between(0.55, 0.65)),
      system: hundredths(load * chance.between(0.3, 0.35)),
    },
    loop: {
      utilization: hundredths(Math.min(1, load + block / 1000)),
      ticks: ticks(chance, load, block),
    },
    memory: {
      rss: heap + native + 42 * MB,
      heap_used: used,
      heap_total: heap,
      heap_limit: 4 * GB,
      external: 3 * MB,
      array_buffers: MB,
      spaces: {
        read_only: { used: 0, total: 0 },
        new: part(0.06),
        old: part(0.8),
        code: part(0.04),
        shared: { used: 0, total: 0 },
        new_large_object: { used: 0, total: 0 },
        large_object: part(0.1),
        code_large_object: { used: 0, total: 0 },
        shared_large_object: { used: 0, total: 0 },
      },
    },
    gc: {
      minor: { count: minor, pause: hundredths(minor * 0.8) },
      major: { count: major, pause: major * 12.5 },
      incremental: { count: major * 3, pause: major * 1.5 },
      weak: { count: major, pause: major * 0.2 },
    },
    files: { open, limit: FILES },
    log: { dropped: 0, error: null },
  }
}

/**
 * @param {Chance} chance
 * @param {number} accepts
 * @param {number} connected
 * @param {number} closed
 * @param {number} slow of those that were closed
 * @returns {import('../../src/metrics/schema.js').Counts}
 */
function countsOf(chance, accepts, connected, closed, slow) {
  const publishes = Math.round(connected / 100)
  const deliveries = Math.round(connected * chance.between(0.8, 1.2))
  /** @type {import('../../src/metrics/schema.js').Counts['transports']} */
  const transports = {}
  for (const [transport, , share] of WAYS) {
    const into = Math.round(((publishes + accepts * 2) * share) / 100)
    const out = Math.round(((deliveries + accepts * 2 + publishes) * share) / 100)
    if (into + out === 0) continue
    transports[transport] ??= { connects: 0, in: { messages: 0, bytes: 0 }, out: { messages: 0, bytes: 0 } }
    add(transports[transport], {
      connects: Math.round((accepts * share) / 100),
      in: { messages: into, bytes: into * 64 },
      out: { messages: out, bytes: out * 128 },
    })
  }
  const sum = add({ in: { messages: 0, bytes: 0 }, out: { messages: 0, bytes: 0 } }, {})
  for (const { in: into, out } of Object.values(transports)) add(sum, { in: into, out })
  /** @type {Record<string, number>} */
  const commands = {}
  if (accepts > 0) commands.connect = accepts
  for (const method of METHODS) {
    const count = Math.round(publishes * chance.next())
    if (count > 0) commands[method] = count
  }
  /** @type {Record<string, number>} */
  const closes = {}
  if (slow > 0) closes['3008'] = slow
  for (let left = closed - slow; left > 0; left--) {
    add(closes, { [['1000', '1001', '1006', '3012', '0'][chance.whole(0, 4)]]: 1 })
  }
  return {
    accepts,
    connects: accepts,
    ...sum,
    transports,
    publishes,
    deliveries,
    commands,
    errors: chance.next() < 0.2 ? { 103: 1, 105: 2 } : {},
    closes,
    unsubscribes: chance.next() < 0.1 ? { 2500: 1 } : {},
    recoveries: { recovered: Math.min(accepts, 3), failed: chance.next() < 0.05 ? 1 : 0 },
    api: publishes > 0 ? { publish: publishes, info: 1 } : {},
    api_errors: chance.next() < 0.05 ? { 107: 1 } : {},
    refusals: accepts > 0 ? { invalid_token: 1 } : {},
    hooks:
      accepts > 0
        ? {
            [HOOK]: {
              calls: accepts,
              time: accepts * 7,
              within: DURATION_BOUNDS.map(bound => (bound < 10 ? 0 : accepts)),
              failures: { timeout: 1 },
            },
          }
        : {},
    batches:
      accepts > 0
        ? {
            items: 3,
            within: BATCH_BOUNDS.map(bound => (bound < 5 ? 0 : 1)),
            flushes: { delay: 1 },
            conflated: { ticker: 2 },
          }
        : noBatchCounts(),
  }
}

/** @param {number} connected */
function connectionsOf(connected) {
  /** @type {Record<string, Record<string, number>>} */
  const by = {}
  let left = connected
  for (const [transport, codec, share] of WAYS.toReversed()) {
    const count = transport === 'websocket' && codec === 'json' ? left : Math.floor((connected * share) / 100)
    left -= count
    if (count > 0) add((by[transport] ??= {}), { [codec]: count })
  }
  return { open: connected + Math.ceil(connected / 1000), connected, by }
}

/**
 * @param {import('../../src/metrics/schema.js').WorkerView[]} views
 * @param {import('../../src/metrics/schema.js').ProcessSample} primary
 * @returns {import('../../src/metrics/schema.js').Totals}
 */
function totalsOf(views, primary) {
  const samples = views.flatMap(({ sample }) => sample ?? [])
  const all = [...samples, primary]
  const sum = (/** @type {(sample: any) => number} */ value, of = /** @type {any[]} */ (all)) =>
    of.reduce((total, sample) => total + value(sample), 0)
  const waits = new TickHistogram()
  for (const { loop } of samples) waits.merge(loop.ticks)
  const zero = { count: 0, pause: 0 }
  const gc = { minor: { ...zero }, major: { ...zero }, incremental: { ...zero }, weak: { ...zero } }
  const connections = { open: 0, connected: 0, by: {} }
  const counts = countsOf(new Chance(0), 0, 0, 0, 0)
  Object.assign(counts, { errors: {}, unsubscribes: {}, api: {}, api_errors: {}, commands: {} })
  counts.recoveries = { recovered: 0, failed: 0 }
  for (const sample of samples) {
    add(gc, sample.gc)
    add(connections, sample.connections)
    add(counts, sample.counts)
  }
  return {
    workers: views.filter(({ state }) => state === 'up').length,
    cpu: { user: hundredths(sum(s => s.cpu.user)), system: hundredths(sum(s => s.cpu.system)) },
    memory: {
      rss: sum(s => s.memory.rss),
      heap_used: sum(s => s.memory.heap_used),
      heap_total: sum(s => s.memory.heap_total),
      external: sum(s => s.memory.external),
      array_buffers: sum(s => s.memory.array_buffers),
      native: sum(s => s.memory.rss - s.memory.heap_total),
      kernel: connections.open * KERNEL,
    },
    loop: {
      utilization: Math.max(0, ...samples.map(({ loop }) => loop.utilization)),
      ticks: waits.toTicks(),
    },
    gc,
    connections,
    subscriptions: sum(s => s.subscriptions, samples),
    channels: Math.max(0, ...samples.map(({ channels }) => channels)),
    windows: 0,
    outbox: {
      bytes: sum(s => s.outbox.bytes, samples),
      largest: Math.max(0, ...samples.map(({ outbox }) => outbox.largest)),
    },
    hooks: { [HOOK]: { inflight: 3 * samples.length, down: 0 } },
    counts,
  }
}

/**
 * @param {Chance} chance
 * @param {{load: number, connected: number, rss: number}} shape
 * @returns {import('../../src/metrics/schema.js').MachineSample}
 */
function machineOf(chance, { load, connected, rss }) {
  const total = 32 * GB
  const caches = 4 * GB
  const slab = 600 * MB + connected * 2048
  const used = Math.min(total - caches, 2 * GB + rss + slab)
  const free = total - used - caches
  const user = hundredths(load * 0.6)
  const system = hundredths(load * 0.3)
  const steal = hundredths(chance.between(0, 0.02))
  const eth0 = {
    rx_bytes: Math.round(connected * chance.between(50, 60)),
    tx_bytes: Math.round(connected * chance.between(150, 170)),
    rx_packets: Math.round(connected / 2),
    tx_packets: connected,
  }
  const lo = { rx_bytes: 4096, tx_bytes: 4096, rx_packets: 20, tx_packets: 20 }
  return {
    cores: 4,
    cpu: { user, system, idle: hundredths(1 - user - system - steal - 0.01), iowait: 0.01, steal },
    memory: { total, used, free, available: free + caches - 512 * MB, caches, slab },
    load: [hundredths(load * 4), hundredths(load * 3.5), hundredths(load * 3)],
    sockets: {
      used: connected + 200,
      tcp: {
        inuse: connected + 12,
        orphan: 0,
        time_wait: chance.whole(0, 40),
        alloc: connected + 14,
        memory: Math.round((connected * 300) / 4096) * 4096,
      },
    },
    network: { ...eth0, interfaces: { lo, eth0 } },
    listen: { overflows: 0, drops: 0 },
    files: { open: connected + 2000, limit: 3_000_000 },
  }
}

/**
 * Connections grow over two thirds of the time, and stay. Worker 0's loop stands still for 200 ms at three fifths of
 * it; a slow client is closed at every tenth second; a worker that is named dies in the middle, is back three seconds
 * later, and so are its clients.
 *
 * @param {object} [options]
 * @param {number} [options.workers]
 * @param {number} [options.seconds] so many snapshots
 * @param {number} [options.connections] in the end, of all workers
 * @param {number} [options.seed]
 * @param {number} [options.start] unix ms of the first snapshot
 * @param {number | null} [options.down] index of the worker that dies
 * @param {number | null} [options.silent] index of the worker that stops to say anything at three quarters of the time
 * @param {string} [options.engine]
 * @param {boolean} [options.elsewhere] not on Linux: what only /proc tells is null
 * @param {boolean} [options.csv]
 * @param {boolean} [options.queues] with a consumer and a republisher; default: as `csv`
 * @returns {Snapshot[]} one a second
 */
export function mockSnapshots({
  workers = 2,
  seconds = 60,
  connections = 10_000,
  seed = 1,
  start = Date.UTC(2026, 0, 5, 12),
  down = null,
  silent = null,
  engine = 'memory',
  elsewhere = false,
  csv = false,
  queues = csv,
} = {}) {
  const chance = new Chance(seed)
  const middle = Math.floor(seconds / 2)
  const spike = Math.floor(seconds * 0.6)
  const quiet = Math.floor(seconds * 0.75)
  const pids = Array.from({ length: workers }, (_, index) => 4001 + index)
  const deaths = new Array(workers).fill(0)
  const connected = new Array(workers).fill(0)
  /** @type {Map<number, import('../../src/metrics/schema.js').WorkerSample>} */
  const last = new Map()
  const counters = totalsOf([], processSample(chance, shapeOfPrimary(0))).counts
  const lifetimes = new Lifetimes(workers)
  /** @type {Snapshot[]} */
  const snapshots = []
  for (let second = 0; second < seconds; second++) {
    const time = start + second * 1000
    /** @type {import('../../src/metrics/schema.js').GatewayEvent[]} */
    const events = []
    const tell = (
      /** @type {import('../../src/metrics/schema.js').GatewayEvent['level']} */ level,
      /** @type {import('../../src/metrics/schema.js').GatewayEvent['kind']} */ kind,
      /** @type {string} */ text,
      /** @type {number | null} */ worker = null,
    ) => events.push({ time: time - 400, level, kind, text, worker })
    if (second === 0)
      tell('info', 'started', `halley listens at http://127.0.0.1:8000 with ${workers} workers`)
    const away = down !== null && second >= middle && second < middle + 3
    const reach = Math.min(1, (second + 1) / Math.max(1, (seconds * 2) / 3))
    /** @type {import('../../src/metrics/schema.js').WorkerView[]} */
    const views = pids.map((_, index) => {
      if (index === down && second === middle) {
        tell('error', 'worker_died', `worker ${index} (pid ${pids[index]}) died: signal SIGKILL`, index)
        deaths[index]++
        connected[index] = 0
        pids[index] += 100
      }
      if (index === down && away) {
        return {
          index,
          state: second === middle + 2 ? 'starting' : 'down',
          age: (second - middle + 1) * 1000,
          deaths: deaths[index],
          draining: 0,
          sample: null,
        }
      }
      if (index === down && second === middle + 3)
        tell('info', 'worker_started', `worker ${index} (pid ${pids[index]}) listens`, index)
      if (index === silent && second >= quiet) {
        const age = (second - quiet + 1) * 1000 + 150
        if (second === quiet + 1)
          tell(
            'warn',
            'worker_silent',
            `worker ${index} has sent no sample: its event loop is blocked`,
            index,
          )
        return {
          index,
          state: age > 1500 ? 'silent' : 'up',
          age,
          deaths: 0,
          draining: 0,
          sample: last.get(index) ?? null,
        }
      }
      const target = Math.round((connections / workers) * reach)
      const closed = Math.min(connected[index], chance.whole(0, Math.ceil(target / 2000)))
      const slow = second % 10 === 9 && index === 0 ? Math.min(closed, 1) : 0
      const accepts = Math.max(0, target - connected[index] + closed)
      connected[index] += accepts - closed
      if (slow > 0) tell('warn', 'slow_clients', '1 slow client disconnected', index)
      const load = Math.min(0.95, 0.02 + connected[index] / 60_000 + accepts / 10_000)
      const base = processSample(chance, {
        pid: pids[index],
        uptime: (index === down && second >= middle ? second - middle - 2 : second + 2) * 1000,
        load,
        heap: 12 * MB + connected[index] * 900,
        native: 10 * MB + connected[index] * 1200,
        open: connected[index] + 24,
        block: index === 0 && second === spike ? 200 : 0,
      })
      const largest = chance.whole(0, 40_000)
      const sample = {
        ...base,
        index,
        time: time - 150,
        interval: 1000,
        connections: connectionsOf(connected[index]),
        subscriptions: connected[index] * 2,
        channels: Math.ceil(connected[index] / 10),
        windows: 0,
        outbox: { bytes: largest * 3, largest },
        hooks: { [HOOK]: { inflight: 3, down: 0 } },
        overload: null,
        accepting: true,
        counts: countsOf(chance, accepts, connected[index], closed, slow),
      }
      last.set(index, sample)
      return { index, state: 'up', age: 150, deaths: deaths[index], draining: 0, sample }
    })
    const primary = processSample(chance, shapeOfPrimary(second))
    // A sample that was told before counts no second time.
    const fresh = views.map(view => (view.age < 1000 ? view : { ...view, sample: null }))
    const totals = { ...totalsOf(views, primary), counts: totalsOf(fresh, primary).counts }
    add(counters, totals.counts)
    const all = totals.connections.connected
    const machine = machineOf(chance, {
      load: Math.min(0.9, (totals.cpu.user + totals.cpu.system) / 4 + 0.02),
      connected: all,
      rss: totals.memory.rss,
    })
    if (elsewhere) {
      machine.memory.slab = null
      Object.assign(machine, { sockets: null, network: null, listen: null, files: null })
      totals.memory.kernel = null
    }
    lifetimes.addPrimary(primary, 1000)
    for (const { sample } of fresh) if (sample) lifetimes.addWorker(sample)
    lifetimes.addMachine(machine, 1000)
    const known = all >= 1000
    const kernel = known && !elsewhere ? KERNEL : null
    snapshots.push({
      version: SCHEMA_VERSION,
      seq: second + 1,
      time,
      interval: 1000,
      collect: 152,
      node: {
        id: '1f0c2a52-6f5e-4a7d-9a57-6c4c1d5a9e01',
        name: 'gateway-1_8000',
        version: '0.1.0',
        url: 'http://127.0.0.1:8000',
        pid: 4000,
        started_at: start - 2000,
        engine,
        driver: 'uws',
        driver_fallback: '',
        node_version: 'v20.20.0',
        workers,
      },
      primary,
      workers: views,
      totals,
      counters: structuredClone(counters),
      lifetimes: lifetimes.read(),
      machine,
      capacity: {
        bytes_per_connection: known ? 2100 : null,
        kernel_per_connection: kernel,
        fits: known ? Math.floor((machine.memory.available * 0.9) / (2100 + (kernel ?? 0))) : null,
        bound: known ? 'memory' : null,
      },
      events,
      consumers: queues
        ? {
            list: [
              {
                name: 'orders',
                type: 'redis_stream',
                processed: 20 * second,
                skipped: { malformed: 2 },
                errors: 3,
                retries: 1,
                age: 40,
                backoff: 0,
                lag: 5,
              },
            ],
            api_errors: { 102: 1 },
          }
        : null,
      republishers: queues
        ? [
            {
              name: 'backend',
              sent: 30 * second,
              confirmed: 29 * second,
              returned: 1,
              refused: 2,
              dropped: 3,
              unreached: 4,
              abandoned: 5,
              queued: 7,
              queued_bytes: 2100,
              age: 60,
              up: true,
            },
          ]
        : null,
      lifecycle: csv
        ? {
            journal: { clients: 900, bytes: 300_000, refused: 0 },
            worker_dropped: 0,
            taken_over: 0,
            sinks: {
              file: { written: 40 * second, dropped: { queue_full: 3 }, queue_bytes: 0, failing: false },
            },
          }
        : null,
      csv: csv
        ? {
            file: 'halley.csv',
            bytes: 2000 + second * 900,
            max_bytes: 100 * MB,
            rotations: 0,
            error: null,
          }
        : null,
    })
  }
  return snapshots
}

/** @param {number} second */
function shapeOfPrimary(second) {
  return { pid: 4000, uptime: (second + 2) * 1000, load: 0.03, heap: 18 * MB, native: 8 * MB, open: 40 }
}
