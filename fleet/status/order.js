import { shown } from './picture.js'

/**
 * @typedef {import('../schema.js').DroneRow} DroneRow
 * @typedef {import('../schema.js').Counters} Counters
 */

/** @param {keyof Counters} name @returns {(row: DroneRow) => number} */
const counted = name => row => row.sample?.counters[name] ?? 0

/** Those that want somebody's look come first. @type {DroneRow['state'][]} */
const STATES = ['gone', 'silent', 'restarting', 'launching', 'up']

/**
 * What the table of drones can be sorted by, in the order in which `s` goes through them.
 * @type {readonly {name: string, down: boolean, value: (row: DroneRow) => number}[]}
 */
export const SORTS = [
  { name: 'id', down: false, value: () => 0 },
  { name: 'state', down: false, value: ({ state }) => STATES.indexOf(state) },
  { name: 'open', down: true, value: row => row.sample?.gauges.open ?? 0 },
  { name: 'failed', down: true, value: counted('failed') },
  { name: 'ended', down: true, value: counted('ended') },
  { name: 'lost', down: true, value: counted('lost') },
  { name: 'in', down: true, value: ({ rates }) => rates.received },
  { name: 'out', down: true, value: ({ rates }) => rates.published },
  { name: 'p99', down: true, value: ({ p99 }) => p99 },
  { name: 'cpu', down: true, value: ({ cpu }) => cpu },
  { name: 'each', down: true, value: ({ bytesPerConnection }) => bytesPerConnection },
  { name: 'clock', down: true, value: row => row.sample?.clock.error ?? -1 },
  { name: 'restarts', down: true, value: ({ restarts }) => restarts },
]

/** d2 stands before d10; made once, since it is slow to make. */
const { compare } = new Intl.Collator('en', { numeric: true })

/**
 * @param {import('./state.js').State} state
 * @returns {DroneRow[]} as they are shown; those of which nothing was ever heard come last, unless it is by id or state
 */
export function orderedDrones(state) {
  const drones = shown(state).snapshot?.drones ?? []
  const { column, down } = state.sort
  const sort = SORTS.find(({ name }) => name === column) ?? SORTS[0]
  const sign = down ? -1 : 1
  if (sort.name === 'id') return drones.toSorted((a, b) => sign * compare(a.id, b.id))
  return drones.toSorted((a, b) => {
    if (sort.name !== 'state' && (a.sample === null) !== (b.sample === null))
      return a.sample === null ? 1 : -1
    return sign * (sort.value(a) - sort.value(b)) || compare(a.id, b.id)
  })
}
