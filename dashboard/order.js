import { busy, gcPause } from './format.js'
import { shown } from './picture.js'

/**
 * @typedef {import('../src/stats/schema.js').WorkerView} WorkerView
 * @typedef {import('../src/stats/schema.js').WorkerSample} WorkerSample
 */

/**
 * What the table of workers can be sorted by, in the order in which `s` goes through them.
 * @type {readonly {name: string, down: boolean, value: (sample: WorkerSample) => number}[]}
 */
export const SORTS = [
  { name: 'worker', down: false, value: ({ index }) => index },
  { name: 'clients', down: true, value: ({ connections }) => connections.connected },
  { name: 'cpu', down: true, value: ({ cpu }) => busy(cpu) },
  { name: 'rss', down: true, value: ({ memory }) => memory.rss },
  { name: 'heap', down: true, value: ({ memory }) => memory.heap_used },
  { name: 'max', down: true, value: ({ loop }) => loop.ticks.max },
  { name: 'loop', down: true, value: ({ loop }) => loop.utilization },
  { name: 'in', down: true, value: ({ counts }) => counts.in.messages },
  { name: 'out', down: true, value: ({ counts }) => counts.out.messages },
  { name: 'gc', down: true, value: ({ gc }) => gcPause(gc) },
  { name: 'outbox', down: true, value: ({ outbox }) => outbox.bytes },
]

/**
 * @param {import('./state.js').State} state
 * @returns {WorkerView[]} as they are shown; those without figures come last, unless it is by their index
 */
export function orderedWorkers(state) {
  const workers = shown(state).snapshot?.workers ?? []
  const { column, down } = state.sort
  const sort = SORTS.find(({ name }) => name === column) ?? SORTS[0]
  const sign = down ? -1 : 1
  if (sort.name === 'worker') return workers.toSorted((a, b) => sign * (a.index - b.index))
  return workers.toSorted((a, b) => {
    if (a.sample === null || b.sample === null)
      return Number(a.sample === null) - Number(b.sample === null) || a.index - b.index
    return sign * (sort.value(a.sample) - sort.value(b.sample)) || a.index - b.index
  })
}
