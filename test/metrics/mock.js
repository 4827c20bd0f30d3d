// Snapshots without a gateway: plausible, complete by src/metrics/schema.js, and the same for the same options.

import { noBatchCounts } from '../../src/metrics/batch-stats.js'
import { Lifetimes } from '../../src/metrics/lifetimes.js'
import { MapCounter } from '../../src/metrics/map-counter.js'
import { add, emptyCounts, mergeTotals } from '../../src/metrics/merge.js'
import { SCHEMA_VERSION } from '../../src/metrics/schema.js'
import { BATCH_BOUNDS, DURATION_BOUNDS } from '../../src/metrics/table.js'
import { TickHistogram } from '../../src/metrics/tick-histogram.js'

/** @import { Counts, GatewayEvent, MachineSample, ProcessSample, Snapshot, WorkerSample, WorkerView } from '../../src/metrics/schema.js' */

const MB = 1024 * 1024
const GB = 1024 * MB
/** Kernel bytes of a connection. */
const KERNEL = 4700
/** Transports and codecs: per cent of the clients. */
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

/** Pseudo-random numbers, the same each time. */
class Chance {
  #state

  /** @param {number} seed */
  constructor(seed) {
    this.#state = (seed * 2654435761 + 1) >>> 0
  }

  /** @returns {number} 0 to 1 */
  next() {
    this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0
    // The low bits have a short period.
    return (this.#state >>> 8) / 0x1000000
  }

  /** @param {number} low @param {number} high */
  between(low, high) {
    return low + this.next() * (high - low)
  }

  /** @param {number} low @param {number} high */
  whole(low, high) {
    return Math.floor(this.between(low, high + 1))
  }
}

/** @param {number} value */
const hundredths = value => Math.round(value * 100) / 100

/** @param {Chance} chance @param {number} load 0 to 1 @param {number} block ms for which the loop was blocked */
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
 * @returns {ProcessSample}
 */
function processSample(chance, { pid, uptime, load, heap, native, open, block = 0 }) {
  const used = Math.round(heap * chance.between(0.7, 0.95))
  const part = (/** @type {number} */ share) => ({
    used: Math.round(used * share),
    total: Math.round(heap * share),
  })
  const none = { used: 0, total: 0 }
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
        read_only: none,
        new: part(0.06),
        old: part(0.8),
        code: part(0.04),
        shared: none,
        new_large_object: none,
        large_object: part(0.1),
        code_large_object: none,
        shared_large_object: none,
      },
    },
    gc: {
      minor: { count: minor, pause: hundredths(minor * 0.8) },
      major: { count: major, pause: major * 12.5 },
      incremental: { count: major * 3, pause: major * 1.5 },
      weak: { count: major, pause: major * 0.2 },
    },
    files: { open, limit: 1_000_000 },
    log: { dropped: 0, error: null },
  }
}

/** @param {Chance} chance @param {number} second @returns {ProcessSample} of the primary */
const primarySample = (chance, second) =>
  processSample(chance, {
    pid: 4000,
    uptime: (second + 2) * 1000,
    load: 0.03,
    heap: 18 * MB,
    native: 8 * MB,
    open: 40,
  })

/**
 * @param {Chance} chance @param {number} accepts @param {number} connected
 * @param {number} closed @param {number} slow of those that were closed @returns {Counts}
 */
function countsOf(chance, accepts, connected, closed, slow) {
  const publishes = Math.round(connected / 100)
  const deliveries = Math.round(connected * chance.between(0.8, 1.2))
  const flows = { in: { messages: 0, bytes: 0 }, out: { messages: 0, bytes: 0 } }
  /** @type {Counts['transports']} */
  const transports = {}
  for (const [transport, , share] of WAYS) {
    const part = (/** @type {number} */ count) => Math.round((count * share) / 100)
    const [received, sent] = [part(publishes + accepts * 2), part(deliveries + accepts * 2 + publishes)]
    if (received + sent === 0) continue
    const own = {
      in: { messages: received, bytes: received * 64 },
      out: { messages: sent, bytes: sent * 128 },
    }
    add(flows, own)
    add((transports[transport] ??= /** @type {any} */ ({})), { connects: part(accepts), ...own })
  }
  /** @type {Record<string, number>} */
  const commands = accepts > 0 ? { connect: accepts } : {}
  for (const method of METHODS) {
    const count = Math.round(publishes * chance.next())
    if (count > 0) commands[method] = count
  }
  /** @type {Record<string, number>} */
  const closes = slow > 0 ? { 3008: slow } : {}
  for (let left = closed - slow; left > 0; left--)
    add(closes, { [['1000', '1001', '1006', '3012', '0'][chance.whole(0, 4)]]: 1 })
  const calls = {
    calls: accepts,
    time: accepts * 7,
    failures: { timeout: 1 },
    within: DURATION_BOUNDS.map(bound => (bound < 10 ? 0 : accepts)),
  }
  const batches = {
    items: 3,
    flushes: { delay: 1 },
    conflated: { ticker: 2 },
    within: BATCH_BOUNDS.map(bound => (bound < 5 ? 0 : 1)),
  }
  return {
    accepts,
    connects: accepts,
    ...flows,
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
    rate_limited: accepts > 0 ? { 'client_command publish': 1 } : {},
    requests: accepts > 0 ? { complete: 1 } : {},
    acks: accepts > 0 ? { accepted: 1 } : {},
    rate_unchecked: 0,
    user_status_dropped: 0,
    channel_events: accepts > 0 ? { occupied: 1 } : {},
    channel_event_failures: 0,
    channel_events_dropped: 0,
    hooks: accepts > 0 ? { [HOOK]: calls } : {},
    batches: accepts > 0 ? batches : noBatchCounts(),
    maps: new MapCounter().drain(),
    polls: { calls: 0, keys: 0, failures: 0, updates: 0 },
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

/** @param {Chance} chance @param {{load: number, connected: number, rss: number}} shape @returns {MachineSample} */
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
  const tcp = {
    inuse: connected + 12,
    orphan: 0,
    time_wait: chance.whole(0, 40),
    alloc: connected + 14,
    memory: Math.round((connected * 300) / 4096) * 4096,
  }
  return {
    cores: 4,
    cpu: { user, system, idle: hundredths(1 - user - system - steal - 0.01), iowait: 0.01, steal },
    memory: { total, used, free, available: free + caches - 512 * MB, caches, slab },
    load: [hundredths(load * 4), hundredths(load * 3.5), hundredths(load * 3)],
    sockets: { used: connected + 200, tcp },
    network: { ...eth0, interfaces: { lo, eth0 } },
    listen: { overflows: 0, drops: 0 },
    files: { open: connected + 2000, limit: 3_000_000 },
  }
}

/** Keys and changes of maps: 12 are added a second, 1 is removed, 3 expire. @param {number} second 0: no maps */
const mapsOf = second => ({
  keys: 8 * second,
  counts: second === 0 ? new MapCounter().drain() : { publishes: 12, removals: 1, expiries: 3 },
})

/** Figures of a consumer and a republisher, of the lifecycle log and of the CSV file. @param {number} second */
const outputsOf = second => ({
  consumers: {
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
  },
  republishers: [
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
  ],
  lifecycle: {
    journal: { clients: 900, bytes: 300_000, refused: 0 },
    worker_dropped: 0,
    taken_over: 0,
    sinks: { file: { written: 40 * second, dropped: { queue_full: 3 }, queue_bytes: 0, failing: false } },
  },
  csv: { file: 'halley.csv', bytes: 2000 + second * 900, max_bytes: 100 * MB, rotations: 0, error: null },
})

/**
 * Connections grow over two thirds of the time, and stay. The loop of worker 0 is blocked for 200 ms at three fifths of
 * it; a slow client is closed at every tenth second; the worker `down` dies in the middle and is back three seconds
 * later, with its clients.
 * @param {object} [options]
 * @param {number} [options.workers]
 * @param {number} [options.seconds] number of snapshots
 * @param {number} [options.connections] in the end, of all workers
 * @param {number} [options.seed]
 * @param {number} [options.start] unix ms of the first snapshot
 * @param {number | null} [options.down] index of the worker that dies
 * @param {number | null} [options.silent] index of the worker that sends no samples after three quarters of the time
 * @param {string} [options.engine]
 * @param {boolean} [options.elsewhere] not on Linux: figures of /proc are null
 * @param {boolean} [options.csv] with a CSV file and a lifecycle log
 * @param {boolean} [options.queues] with a consumer and a republisher; default: as `csv`
 * @param {boolean} [options.maps] maps of the embedded broker change; default: no
 * @param {boolean} [options.polls] clients track keys of shared polls; default: no
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
  maps = false,
  polls = false,
} = {}) {
  const chance = new Chance(seed)
  const middle = Math.floor(seconds / 2)
  const spike = Math.floor(seconds * 0.6)
  const quiet = Math.floor(seconds * 0.75)
  const slots = Array.from({ length: workers }, (_, index) => ({
    index,
    pid: 4001 + index,
    deaths: 0,
    connected: 0,
    last: /** @type {WorkerSample | null} */ (null),
  }))
  const counters = emptyCounts()
  const lifetimes = new Lifetimes(workers)
  const node = {
    id: '1f0c2a52-6f5e-4a7d-9a57-6c4c1d5a9e01',
    name: 'gateway-1_8000',
    version: '0.1.0',
    engine,
    url: 'http://127.0.0.1:8000',
    pid: 4000,
    started_at: start - 2000,
    driver: 'uws',
    driver_fallback: '',
    node_version: 'v20.20.0',
    workers,
  }
  return Array.from({ length: seconds }, (_, second) => {
    const time = start + second * 1000
    /** @type {GatewayEvent[]} */
    const events = []
    const report = (
      /** @type {GatewayEvent['level']} */ level,
      /** @type {GatewayEvent['kind']} */ kind,
      /** @type {string} */ text,
      /** @type {number | null} */ worker = null,
    ) => events.push({ time: time - 400, level, kind, text, worker })
    if (second === 0)
      report('info', 'started', `halley is listening at http://127.0.0.1:8000 with ${workers} workers`)
    const reach = Math.min(1, (second + 1) / Math.max(1, (seconds * 2) / 3))
    /** @type {WorkerView[]} */
    const views = slots.map(slot => {
      const { index } = slot
      if (index === down && second === middle) {
        report('error', 'worker_died', `worker ${index} (pid ${slot.pid}) died: signal SIGKILL`, index)
        Object.assign(slot, { deaths: slot.deaths + 1, connected: 0, pid: slot.pid + 100 })
      }
      const { pid, deaths } = slot
      if (index === down && second >= middle && second < middle + 3) {
        const state = second === middle + 2 ? 'starting' : 'down'
        return { index, state, age: (second - middle + 1) * 1000, deaths, draining: 0, sample: null }
      }
      if (index === down && second === middle + 3)
        report('info', 'worker_started', `worker ${index} (pid ${pid}) listens`, index)
      if (index === silent && second >= quiet) {
        const age = (second - quiet + 1) * 1000 + 150
        const text = `worker ${index} has sent no sample: its event loop is blocked`
        if (second === quiet + 1) report('warn', 'worker_silent', text, index)
        const state = age > 1500 ? 'silent' : 'up'
        return { index, state, age, deaths: 0, draining: 0, sample: slot.last }
      }
      const target = Math.round((connections / workers) * reach)
      const closed = Math.min(slot.connected, chance.whole(0, Math.ceil(target / 2000)))
      const slow = second % 10 === 9 && index === 0 ? Math.min(closed, 1) : 0
      const accepts = Math.max(0, target - slot.connected + closed)
      slot.connected += accepts - closed
      const { connected } = slot
      if (slow > 0) report('warn', 'slow_clients', '1 slow client disconnected', index)
      const base = processSample(chance, {
        pid,
        uptime: (index === down && second >= middle ? second - middle - 2 : second + 2) * 1000,
        load: Math.min(0.95, 0.02 + connected / 60_000 + accepts / 10_000),
        heap: 12 * MB + connected * 900,
        native: 10 * MB + connected * 1200,
        open: connected + 24,
        block: index === 0 && second === spike ? 200 : 0,
      })
      const largest = chance.whole(0, 40_000)
      slot.last = {
        ...base,
        index,
        time: time - 150,
        interval: 1000,
        overload: null,
        accepting: true,
        windows: 0,
        subscriptions: connected * 2,
        channels: Math.ceil(connected / 10),
        connections: connectionsOf(connected),
        outbox: { bytes: largest * 3, largest },
        hooks: { [HOOK]: { inflight: 3, down: 0 } },
        counts: countsOf(chance, accepts, connected, closed, slow),
      }
      return { index, state: 'up', age: 150, deaths, draining: 0, sample: slot.last }
    })
    const primary = primarySample(chance, second)
    // The counts of an old sample are in an earlier snapshot.
    const fresh = views.flatMap(({ age, sample }) => (age < 1000 && sample ? sample : []))
    const channels = Math.max(0, ...views.map(({ sample }) => sample?.channels ?? 0))
    const kernel = elsewhere ? null : KERNEL
    const totals = mergeTotals({
      views,
      fresh,
      primary,
      lost: [],
      channels,
      broker: {
        maps: engine === 'memory' ? mapsOf(maps ? second : 0) : null,
        polls: polls ? { keys: 300, counts: { calls: 2, keys: 300, failures: 1, updates: 40 } } : null,
        denylist: { user_block: 3, token_revoke: 2, user_tokens_invalidate: 1 },
      },
      kernel,
    })
    add(counters, totals.counts)
    const { connected } = totals.connections
    const machine = machineOf(chance, {
      load: Math.min(0.9, (totals.cpu.user + totals.cpu.system) / 4 + 0.02),
      connected,
      rss: totals.memory.rss,
    })
    if (elsewhere) {
      machine.memory.slab = null
      Object.assign(machine, { sockets: null, network: null, listen: null, files: null })
    }
    lifetimes.addPrimary(primary, 1000)
    for (const sample of fresh) lifetimes.addWorker(sample)
    lifetimes.addMachine(machine, 1000)
    const known = connected >= 1000
    const outputs = outputsOf(second)
    const fits = Math.floor((machine.memory.available * 0.9) / (2100 + (kernel ?? 0)))
    return {
      version: SCHEMA_VERSION,
      seq: second + 1,
      time,
      interval: 1000,
      collect: 152,
      node: { ...node },
      primary,
      workers: views,
      totals,
      counters: structuredClone(counters),
      lifetimes: lifetimes.read(),
      machine,
      capacity: {
        bytes_per_connection: known ? 2100 : null,
        kernel_per_connection: known ? kernel : null,
        fits: known ? fits : null,
        bound: known ? 'memory' : null,
      },
      events,
      consumers: queues ? outputs.consumers : null,
      republishers: queues ? outputs.republishers : null,
      lifecycle: csv ? outputs.lifecycle : null,
      csv: csv ? outputs.csv : null,
    }
  })
}
