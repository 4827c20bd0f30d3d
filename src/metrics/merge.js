// Merges samples of workers, or of one worker, by the table of metrics.

import { noBatchCounts } from './batch-stats.js'
import { GC_KINDS, SECTIONS, stepsOf } from './table.js'
import { TickHistogram } from './tick-histogram.js'

/** @import { BrokerFigures, Counts, GcKinds, ProcessSample, Ticks, Totals, WorkerSample, WorkerView } from './schema.js' */
/** @import { Row } from './table.js' */

/** @returns {GcKinds} */
export const noGc = () =>
  /** @type {any} */ (Object.fromEntries(GC_KINDS.map(kind => [kind, { count: 0, pause: 0 }])))

/** Four digits. @param {number} share */
export const tenThousandths = share => Math.round(share * 10_000) / 10_000

/** @param {string} title */
const rowsOf = title => SECTIONS.find(section => section.title === title)?.rows ?? {}

/** @param {string} title of a section @returns {() => any} all 0; objects by name are empty */
function zerosOf(title) {
  const paths = Object.keys(rowsOf(title)).map(stepsOf)
  return () => {
    /** @type {any} */
    const all = {}
    for (const steps of paths) {
      let at = all
      for (const [i, step] of steps.entries()) {
        if (step.startsWith('<') || step === '[]') break
        const next = steps[i + 1]
        // Without a prototype for names like `constructor`.
        if (next?.startsWith('<')) at[step] ??= Object.create(null)
        else at[step] ??= next === undefined ? 0 : {}
        at = at[step]
      }
    }
    return all
  }
}

const noConnections = zerosOf('Connections')
const noCounts = zerosOf('Counts')

/** @returns {Counts} */
export const emptyCounts = () => ({ ...noCounts(), batches: noBatchCounts() })

/**
 * Adds numbers, arrays by index, and objects by name, in place.
 * @template T
 * @param {T} sum @param {T | undefined} more
 * @returns {T}
 */
export function add(sum, more) {
  if (more === undefined) return sum
  if (typeof more === 'number') {
    const total = Number(sum) + more
    return /** @type {any} */ (Number.isInteger(total) ? total : tenThousandths(total))
  }
  const into = /** @type {any} */ (sum)
  for (const [name, value] of Object.entries(/** @type {any} */ (more))) {
    const nothing = typeof value === 'number' ? 0 : Array.isArray(value) ? [] : {}
    into[name] = add(into[name] ?? nothing, value)
  }
  return sum
}

/** @param {Ticks[]} all */
function mergeTicks(all) {
  const histogram = new TickHistogram()
  for (const ticks of all) histogram.merge(ticks)
  return histogram.toTicks()
}

/** @typedef {{[name: string]: Rules | ((values: any[]) => any)}} Rules */

/** @type {Record<string, () => any>} */
const EMPTY = { connections: noConnections, counts: emptyCounts, hooks: () => ({}) }

/** @param {string} title of a section @returns {Rules} */
function rulesOf(title) {
  /** @type {any} */
  const rules = {}
  for (const [path, { merge }] of Object.entries(rowsOf(title))) {
    if (merge === undefined) continue
    const steps = path.split('.<')[0].split('.')
    const last = /** @type {string} */ (steps.pop())
    const start = EMPTY[last] ?? (() => 0)
    let at = rules
    for (const step of steps) at = at[step] ??= {}
    at[last] =
      merge === 'ticks'
        ? mergeTicks
        : merge === 'max'
          ? (/** @type {number[]} */ values) => Math.max(0, ...values)
          : (/** @type {any[]} */ values) => values.reduce(add, start())
  }
  return rules
}

const PROCESS = rulesOf('A process')
const SAMPLE = rulesOf('A sample')

/** @param {Rules} rules @param {any[]} values @param {any} [rest] without a rule */
function merged(rules, values, rest = {}) {
  const all = { ...rest }
  for (const [name, rule] of Object.entries(rules)) {
    const inner = values.map(value => value[name])
    all[name] = typeof rule === 'function' ? rule(inner) : merged(rule, inner, rest[name])
  }
  return all
}

/** The later state, the counts of both. @param {WorkerSample} earlier @param {WorkerSample} later */
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
    gc: [earlier.gc, later.gc].reduce(add, noGc()),
    counts: [earlier.counts, later.counts].reduce(add, emptyCounts()),
  }
}

/** The first state, the sums of all. @param {WorkerSample[]} samples of a worker's processes @returns {WorkerSample} */
export const joinSamples = samples =>
  samples.length === 1 ? samples[0] : merged({ ...PROCESS, ...SAMPLE }, samples, samples[0])

/**
 * @param {object} parts
 * @param {WorkerView[]} parts.views
 * @param {WorkerSample[]} parts.fresh since the previous snapshot
 * @param {ProcessSample} parts.primary
 * @param {Counts[]} parts.lost of ended workers, in no snapshot yet
 * @param {number | null} parts.channels null: unknown
 * @param {BrokerFigures} parts.broker
 * @param {number | null} parts.kernel bytes per connection; null if unknown
 * @returns {Totals}
 */
export function mergeTotals({ views, fresh, primary, lost, channels, broker, kernel }) {
  const samples = views.flatMap(({ sample }) => sample ?? [])
  const state = merged(SAMPLE, samples)
  const interval = merged(PROCESS, fresh)
  const counts = [...fresh.map(({ counts }) => counts), ...lost].reduce(add, emptyCounts())
  const native = [...samples, primary].map(({ memory }) => Math.max(0, memory.rss - memory.heap_total))
  return {
    ...state,
    workers: views.filter(({ state }) => state === 'up').length,
    cpu: add(interval.cpu, primary.cpu),
    memory: {
      ...merged({ memory: PROCESS.memory }, [...samples, primary]).memory,
      native: native.reduce(add, 0),
      kernel: kernel === null ? null : Math.round(kernel * state.connections.open),
    },
    loop: interval.loop,
    gc: interval.gc,
    channels: channels ?? state.channels,
    maps: { keys: broker.maps?.keys ?? null },
    polls: { keys: broker.polls?.keys ?? 0 },
    denylist: broker.denylist ?? {},
    counts: {
      ...counts,
      maps: add(counts.maps, broker.maps?.counts),
      polls: add(counts.polls, broker.polls?.counts),
    },
  }
}
