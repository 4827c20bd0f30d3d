// Merges samples: of several workers, or several of one worker.

import { addBatchCounts, noBatchCounts } from './batch-stats.js'
import { GC_KINDS, noGc, tenThousandths } from './figures.js'
import { addHookCounts } from './hook-stats.js'
import { TickHistogram, wholeMicroseconds } from './tick-histogram.js'

/** @import { Connections, Counts, Flow, ProcessSample, Ticks, Totals, WorkerSample } from './schema.js' */
/** @import { WorkerView } from './schema.js' */

const PLAIN = /** @type {const} */ (['accepts', 'connects', 'publishes', 'deliveries'])
const MEMORY = /** @type {const} */ (['rss', 'heap_used', 'heap_total', 'external', 'array_buffers'])
const NAMED = /** @type {const} */ ([
  'commands',
  'errors',
  'closes',
  'unsubscribes',
  'api',
  'api_errors',
  'refusals',
])

/** @returns {Flow} */
const noFlow = () => ({ messages: 0, bytes: 0 })

/** @returns {Counts} */
export function emptyCounts() {
  return {
    accepts: 0,
    connects: 0,
    in: noFlow(),
    out: noFlow(),
    transports: {},
    publishes: 0,
    deliveries: 0,
    commands: {},
    errors: {},
    closes: {},
    unsubscribes: {},
    recoveries: { recovered: 0, failed: 0 },
    api: {},
    api_errors: {},
    refusals: {},
    hooks: {},
    batches: noBatchCounts(),
  }
}

/** @param {Flow} sum @param {Flow} flow */
function addFlow(sum, flow) {
  sum.messages += flow.messages
  sum.bytes += flow.bytes
}

/** @param {Record<string, number>} sum @param {Record<string, number>} more */
function addNamed(sum, more) {
  for (const name of Object.keys(more)) sum[name] = (sum[name] ?? 0) + more[name]
}

/** @param {Counts} sum is changed @param {Counts} counts @returns {Counts} the sum */
export function addCounts(sum, counts) {
  for (const name of PLAIN) sum[name] += counts[name]
  for (const name of NAMED) addNamed(sum[name], counts[name])
  addFlow(sum.in, counts.in)
  addFlow(sum.out, counts.out)
  for (const [transport, { connects, in: into, out }] of Object.entries(counts.transports)) {
    const own = (sum.transports[transport] ??= { connects: 0, in: noFlow(), out: noFlow() })
    own.connects += connects
    addFlow(own.in, into)
    addFlow(own.out, out)
  }
  sum.recoveries.recovered += counts.recoveries.recovered
  sum.recoveries.failed += counts.recoveries.failed
  addHookCounts(sum.hooks, counts.hooks ?? {})
  addBatchCounts(sum.batches, counts.batches ?? noBatchCounts())
  return sum
}

/** @param {ProcessSample['gc'][]} all */
function mergeGc(all) {
  const sum = noGc()
  for (const kind of GC_KINDS) {
    for (const gc of all) {
      sum[kind].count += gc[kind].count
      sum[kind].pause += gc[kind].pause
    }
    sum[kind].pause = wholeMicroseconds(sum[kind].pause)
  }
  return sum
}

/** @param {Ticks[]} all @returns {Ticks} */
function mergeTicks(all) {
  const histogram = new TickHistogram()
  for (const ticks of all) histogram.merge(ticks)
  return histogram.toTicks()
}

/**
 * Two samples of one worker as one: the later state, the counts of both.
 * @param {WorkerSample} earlier @param {WorkerSample} later
 * @returns {WorkerSample}
 */
export function foldSamples(earlier, later) {
  const interval = earlier.interval + later.interval
  const mean = (/** @type {number} */ a, /** @type {number} */ b) =>
    tenThousandths((a * earlier.interval + b * later.interval) / interval)
  return {
    ...later,
    interval,
    cpu: {
      user: mean(earlier.cpu.user, later.cpu.user),
      system: mean(earlier.cpu.system, later.cpu.system),
    },
    loop: {
      utilization: mean(earlier.loop.utilization, later.loop.utilization),
      ticks: mergeTicks([earlier.loop.ticks, later.loop.ticks]),
    },
    gc: mergeGc([earlier.gc, later.gc]),
    counts: addCounts(addCounts(emptyCounts(), earlier.counts), later.counts),
  }
}

/** @param {ProcessSample['memory'][]} all @returns {ProcessSample['memory']} */
function joinMemory([first, ...others]) {
  const sum = { ...first }
  for (const memory of others) for (const name of MEMORY) sum[name] += memory[name]
  return sum
}

/**
 * Samples of several processes of one worker as one: the state of the first, the sums of all.
 * @param {WorkerSample[]} samples one for each process, the current one first
 * @returns {WorkerSample}
 */
export function joinSamples(samples) {
  const [first] = samples
  if (samples.length === 1) return first
  const sum = (/** @type {(sample: WorkerSample) => number} */ value) =>
    samples.reduce((total, sample) => total + value(sample), 0)
  return {
    ...first,
    cpu: { user: tenThousandths(sum(s => s.cpu.user)), system: tenThousandths(sum(s => s.cpu.system)) },
    loop: {
      utilization: Math.max(...samples.map(({ loop }) => loop.utilization)),
      ticks: mergeTicks(samples.map(({ loop }) => loop.ticks)),
    },
    memory: joinMemory(samples.map(({ memory }) => memory)),
    gc: mergeGc(samples.map(({ gc }) => gc)),
    connections: mergeConnections(samples),
    subscriptions: sum(s => s.subscriptions),
    channels: sum(s => s.channels),
    windows: sum(s => s.windows ?? 0),
    outbox: {
      bytes: sum(s => s.outbox.bytes),
      largest: Math.max(...samples.map(({ outbox }) => outbox.largest)),
    },
    hooks: mergeHooks(samples),
    counts: samples.reduce((total, { counts }) => addCounts(total, counts), emptyCounts()),
  }
}

/** @param {WorkerSample[]} samples @returns {WorkerSample['hooks']} */
function mergeHooks(samples) {
  /** @type {WorkerSample['hooks']} */
  const sum = {}
  for (const { hooks } of samples) {
    for (const [name, { inflight, down }] of Object.entries(hooks ?? {})) {
      const own = (sum[name] ??= { inflight: 0, down: 0 })
      own.inflight += inflight
      own.down += down
    }
  }
  return sum
}

/** @param {WorkerSample[]} samples */
function mergeConnections(samples) {
  /** @type {Connections} */
  const sum = { open: 0, connected: 0, by: {} }
  for (const { connections } of samples) {
    sum.open += connections.open
    sum.connected += connections.connected
    for (const [transport, codecs] of Object.entries(connections.by))
      addNamed((sum.by[transport] ??= {}), codecs)
  }
  return sum
}

/** @param {ProcessSample[]} samples @param {number | null} kernel bytes @returns {Totals['memory']} */
function mergeMemory(samples, kernel) {
  const sum = { rss: 0, heap_used: 0, heap_total: 0, external: 0, native: 0, kernel }
  for (const { memory } of samples) {
    sum.rss += memory.rss
    sum.heap_used += memory.heap_used
    sum.heap_total += memory.heap_total
    sum.external += memory.external
    sum.native += Math.max(0, memory.rss - memory.heap_total)
  }
  return sum
}

/**
 * @param {object} parts
 * @param {WorkerView[]} parts.views
 * @param {WorkerSample[]} parts.fresh samples since the previous snapshot: only their counts are added
 * @param {ProcessSample} parts.primary
 * @param {Counts[]} parts.lost counts of ended workers, in no snapshot yet
 * @param {number | null} parts.channels with subscribers; null if the primary does not know
 * @param {number | null} parts.kernel kernel bytes per connection; null if unknown
 * @returns {Totals}
 */
export function mergeTotals({ views, fresh, primary, lost, channels, kernel }) {
  const samples = views.flatMap(({ sample }) => sample ?? [])
  const counts = emptyCounts()
  for (const sample of fresh) addCounts(counts, sample.counts)
  for (const gone of lost) addCounts(counts, gone)
  const cpu = { user: primary.cpu.user, system: primary.cpu.system }
  let utilization = 0
  for (const sample of fresh) {
    cpu.user += sample.cpu.user
    cpu.system += sample.cpu.system
    utilization = Math.max(utilization, sample.loop.utilization)
  }
  let subscriptions = 0
  let ofWorkers = 0
  let windows = 0
  const outbox = { bytes: 0, largest: 0 }
  for (const sample of samples) {
    subscriptions += sample.subscriptions
    ofWorkers += sample.channels
    windows += sample.windows ?? 0
    outbox.bytes += sample.outbox.bytes
    outbox.largest = Math.max(outbox.largest, sample.outbox.largest)
  }
  const connections = mergeConnections(samples)
  const kernelBytes = kernel === null ? null : Math.round(kernel * connections.open)
  return {
    workers: views.filter(({ state }) => state === 'up').length,
    cpu: { user: tenThousandths(cpu.user), system: tenThousandths(cpu.system) },
    memory: mergeMemory([...samples, primary], kernelBytes),
    loop: { utilization, ticks: mergeTicks(fresh.map(({ loop }) => loop.ticks)) },
    gc: mergeGc(fresh.map(({ gc }) => gc)),
    connections,
    subscriptions,
    channels: channels ?? ofWorkers,
    windows,
    outbox,
    hooks: mergeHooks(samples),
    counts,
  }
}
