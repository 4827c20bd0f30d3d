// The recent past of a gateway, in the primary.

import { emptyCounts } from './merge.js'
import { COUNTS } from './table.js'

/** @import { Counts, GatewayEvent, ProcessSample, Snapshot, WorkerView } from './schema.js' */

/** Five minutes. */
const MAX_SNAPSHOTS = 300
/** With more workers the history holds only totals: that keeps a first message small. */
const MAX_WORKERS = 16

/** @template {ProcessSample} T @param {T} sample @returns {T} */
const thinProcess = sample => ({
  ...sample,
  loop: { ...sample.loop, ticks: { ...sample.loop.ticks, buckets: [] } },
  memory: { ...sample.memory, spaces: {} },
})

/** Counts by name. @type {Set<string>} */
const NAMED = new Set(Object.keys(COUNTS).flatMap(path => (path.includes('<') ? path.split('.')[0] : [])))

/** @param {Counts} counts @returns {Counts} without names */
const thinCounts = counts => ({
  ...counts,
  ...Object.fromEntries(Object.entries(emptyCounts()).filter(([name]) => NAMED.has(name))),
})

/** @param {Snapshot} snapshot @returns {Snapshot} without its largest fields (see Hello in schema.js) */
function thin(snapshot) {
  const { lifetimes, ...rest } = snapshot
  const { workers, totals, machine } = rest
  return /** @type {any} */ ({
    ...rest,
    primary: thinProcess(rest.primary),
    workers: workers.length > MAX_WORKERS ? [] : workers.map(thinView),
    totals: {
      ...totals,
      loop: { ...totals.loop, ticks: { ...totals.loop.ticks, buckets: [] } },
      hooks: {},
      counts: thinCounts(totals.counts),
    },
    counters: thinCounts(rest.counters),
    machine: { ...machine, network: machine.network && { ...machine.network, interfaces: {} } },
  })
}

/** @param {WorkerView} view @returns {WorkerView} */
function thinView(view) {
  if (!view.sample) return view
  return {
    ...view,
    sample: { ...thinProcess(view.sample), hooks: {}, counts: thinCounts(view.sample.counts) },
  }
}

/** The last snapshots, thinned, for the charts of a new stats client. */
export class History {
  /** @type {Snapshot[]} oldest first */
  #kept = []

  /** @param {Snapshot} snapshot */
  add(snapshot) {
    this.#kept.push(thin(snapshot))
    if (this.#kept.length > MAX_SNAPSHOTS) this.#kept.shift()
  }

  /**
   * To be read in parts: writing all of it would block the primary's event loop for too long.
   * @param {number} seq of the last snapshot read; 0: none @param {number} [count]
   * @returns {Snapshot[]} the next ones, oldest first
   */
  after(seq, count = MAX_SNAPSHOTS) {
    const at = this.#kept.findIndex(snapshot => snapshot.seq > seq)
    return at < 0 ? [] : this.#kept.slice(at, at + count)
  }
}

const MAX_EVENTS = 100
/** Events that repeat every second must not displace rare ones. */
const MAX_OF_A_KIND = 20

export class EventLog {
  /** @type {GatewayEvent[]} */
  #fresh = []
  /** @type {GatewayEvent[]} oldest first */
  #last = []

  /** @param {GatewayEvent} event */
  add(event) {
    this.#fresh.push(event)
    this.#last.push(event)
    const same = this.#last.filter(({ kind }) => kind === event.kind)
    if (same.length > MAX_OF_A_KIND) this.#last.splice(this.#last.indexOf(same[0]), 1)
    else if (this.#last.length > MAX_EVENTS) this.#last.shift()
  }

  /** @returns {GatewayEvent[]} added since the last drain */
  drain() {
    const fresh = this.#fresh
    this.#fresh = []
    return fresh
  }

  /** @returns {GatewayEvent[]} the latest, without those `drain` will return: no client sees an event twice */
  recent() {
    return this.#last.filter(event => !this.#fresh.includes(event))
  }
}
