// The recent past of a gateway, kept in the primary: snapshots of five minutes and the latest events.

/** @import { Counts, GatewayEvent, ProcessSample, Snapshot, WorkerView } from './schema.js' */

/** Five minutes. */
const MAX_SNAPSHOTS = 300
/** With more workers, history holds only their totals, to keep a first message small. */
const MAX_WORKERS = 16

/**
 * @template {ProcessSample} T
 * @param {T} sample
 * @returns {T} without its largest fields
 */
const thinProcess = sample => ({
  ...sample,
  loop: { ...sample.loop, ticks: { ...sample.loop.ticks, buckets: [] } },
  memory: { ...sample.memory, spaces: {} },
})

/** @param {Counts} counts @returns {Counts} without names */
const thinCounts = counts => ({
  ...counts,
  transports: {},
  commands: {},
  errors: {},
  closes: {},
  unsubscribes: {},
  api: {},
  api_errors: {},
})

/**
 * @param {Snapshot} snapshot
 * @returns {Snapshot} same shape, without lifetimes, buckets, heap spaces, interfaces and names of counts
 */
export function thin(snapshot) {
  const { lifetimes, ...rest } = snapshot
  const { workers, totals, machine } = rest
  return /** @type {any} */ ({
    ...rest,
    primary: thinProcess(rest.primary),
    workers: workers.length > MAX_WORKERS ? [] : workers.map(thinView),
    totals: {
      ...totals,
      loop: { ...totals.loop, ticks: { ...totals.loop.ticks, buckets: [] } },
      counts: thinCounts(totals.counts),
    },
    counters: thinCounts(rest.counters),
    machine: { ...machine, network: machine.network && { ...machine.network, interfaces: {} } },
  })
}

/** @param {WorkerView} view @returns {WorkerView} */
function thinView(view) {
  if (!view.sample) return view
  return { ...view, sample: { ...thinProcess(view.sample), counts: thinCounts(view.sample.counts) } }
}

/** The last snapshots, thinned: the charts of a new stats client start with them. */
export class History {
  /** @type {Snapshot[]} oldest first */
  #kept = []

  /** @param {Snapshot} snapshot */
  add(snapshot) {
    this.#kept.push(thin(snapshot))
    if (this.#kept.length > MAX_SNAPSHOTS) this.#kept.shift()
  }

  /**
   * Read it in parts: writing all of it takes too long for one turn of the primary's event loop.
   * @param {number} seq of the last snapshot read; 0 for none
   * @param {number} [count] maximum
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

/** Events: those not reported yet, and the latest ones. */
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

  /** @returns {GatewayEvent[]} the latest ones, oldest first, without those `drain` will return: no client sees one twice */
  recent() {
    return this.#last.filter(event => !this.#fresh.includes(event))
  }
}
