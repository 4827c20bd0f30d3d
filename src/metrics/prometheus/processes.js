// Families of each process: the primary and the workers, by the label `worker`.

import { GC_KINDS } from '../figures.js'
import { TICK_BOUNDS } from '../lifetimes.js'
import { counter, gauge, seconds } from './family.js'

/** @import { GcKind, Lifetime, ProcessSample } from '../schema.js' */
/** @import { Facts, Family, PlainFamily, Row } from './family.js' */

const PRIMARY = 'primary'
const WORKER = Object.freeze(['worker'])
const BOUNDS = Object.freeze(TICK_BOUNDS.map(seconds))

/** Running processes. @param {Facts} facts @returns {[worker: string, sample: ProcessSample][]} */
function samples({ snapshot: { primary, workers } }) {
  /** @type {[string, ProcessSample][]} */
  const all = [[PRIMARY, primary]]
  for (const { index, sample } of workers) if (sample) all.push([String(index), sample])
  return all
}

/** All slots. @param {Facts} facts @returns {[worker: string, lifetime: Lifetime][]} */
function lifetimes({ snapshot: { lifetimes } }) {
  /** @type {[string, Lifetime][]} */
  const all = [[PRIMARY, lifetimes.primary]]
  lifetimes.workers.forEach((lifetime, index) => {
    all.push([String(index), lifetime])
  })
  return all
}

/**
 * A figure of each running process.
 * @param {string} name @param {string} help @param {(sample: ProcessSample) => number | null} value
 */
const current = (name, help, value) =>
  gauge(name, help, WORKER, facts => samples(facts).map(([worker, sample]) => [value(sample), worker]))

/** @param {'used' | 'total'} figure @returns {PlainFamily['read']} */
const ofSpaces = figure => facts =>
  samples(facts).flatMap(([worker, { memory }]) =>
    Object.entries(memory.spaces).map(
      ([space, sizes]) => /** @type {Row} */ ([sizes[figure], worker, space]),
    ),
  )

/** @param {(kind: GcKind) => number} value @returns {PlainFamily['read']} */
const ofGc = value => facts =>
  lifetimes(facts).flatMap(([worker, { gc }]) =>
    GC_KINDS.map(kind => /** @type {Row} */ ([value(gc[kind]), worker, kind])),
  )

/** @type {readonly Family[]} */
export const processes = Object.freeze([
  current('halley_process_uptime_seconds', 'Time since the process started.', ({ uptime }) =>
    seconds(uptime),
  ),
  counter(
    'halley_process_cpu_seconds_total',
    'CPU time, by mode (user, system).',
    ['worker', 'mode'],
    facts =>
      lifetimes(facts).flatMap(([worker, { cpu }]) => [
        /** @type {Row} */ ([seconds(cpu.user), worker, 'user']),
        /** @type {Row} */ ([seconds(cpu.system), worker, 'system']),
      ]),
  ),
  current('halley_process_resident_memory_bytes', 'Resident memory (RSS).', ({ memory }) => memory.rss),
  current('halley_process_heap_used_bytes', 'JS heap in use.', ({ memory }) => memory.heap_used),
  current('halley_process_heap_total_bytes', 'Committed JS heap.', ({ memory }) => memory.heap_total),
  current(
    'halley_process_heap_limit_bytes',
    'Maximum JS heap of the process.',
    ({ memory }) => memory.heap_limit,
  ),
  gauge(
    'halley_process_heap_space_used_bytes',
    'JS heap in use, by space (new, old, code ...).',
    ['worker', 'space'],
    ofSpaces('used'),
  ),
  gauge(
    'halley_process_heap_space_total_bytes',
    'Committed JS heap, by space.',
    ['worker', 'space'],
    ofSpaces('total'),
  ),
  current(
    'halley_process_external_memory_bytes',
    'Memory outside of the heap that belongs to objects in the heap, including buffers.',
    ({ memory }) => memory.external,
  ),
  current(
    'halley_process_array_buffers_bytes',
    'Buffers, which are part of the external memory.',
    ({ memory }) => memory.array_buffers,
  ),
  current('halley_process_open_files', 'Open file descriptors.', ({ files }) => files.open),
  current(
    'halley_process_max_files',
    'Maximum open file descriptors of the process.',
    ({ files }) => files.limit,
  ),
  counter(
    'halley_log_lines_dropped_total',
    'Log lines dropped because the log could not be written: a full disk, or a reader that stopped.',
    WORKER,
    facts => samples(facts).map(([worker, { log }]) => [log.dropped, worker]),
  ),
  current(
    'halley_event_loop_utilization_ratio',
    'Share of the last second in which the event loop was active.',
    ({ loop }) => loop.utilization,
  ),
  counter(
    'halley_event_loop_active_seconds_total',
    'Active time of the event loop; its rate is the utilization.',
    WORKER,
    facts => lifetimes(facts).map(([worker, { active }]) => /** @type {Row} */ ([seconds(active), worker])),
  ),
  {
    name: 'halley_event_loop_delay_seconds',
    type: 'histogram',
    help: 'Event-loop delay: how long events waited for the event loop, measured every 10 ms.',
    labels: WORKER,
    read: facts =>
      lifetimes(facts).map(
        ([
          worker,
          {
            ticks: { count, sum, within },
          },
        ]) => [{ bounds: BOUNDS, counts: within, count, sum: seconds(sum) }, worker],
      ),
  },
  ...['avg', 'p50', 'p90', 'p99', 'max'].map(figure =>
    current(
      `halley_event_loop_delay_${figure}_seconds`,
      `Event-loop delay of the last second: ${{ avg: 'average', max: 'maximum' }[figure] ?? `${figure.slice(1)}th percentile`}.`,
      ({ loop }) => seconds(/** @type {any} */ (loop.ticks)[figure]),
    ),
  ),
  counter(
    'halley_gc_runs_total',
    'Garbage collections, by kind (minor, major, incremental, weak).',
    ['worker', 'kind'],
    ofGc(({ count }) => count),
  ),
  counter(
    'halley_gc_pause_seconds_total',
    'Time in which garbage collection paused the process, by kind.',
    ['worker', 'kind'],
    ofGc(({ pause }) => seconds(pause)),
  ),
])
