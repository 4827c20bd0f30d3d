import { emptyCounts } from './merge.js'
import { COUNTS } from './table.js'

/** @import { Counts, GatewayEvent, ProcessSample, Snapshot, WorkerView } from './schema.js' */

/** Five minutes. */
const MAX_SNAPSHOTS = 300
/** With more workers, only totals: this keeps `hello` small. */
const MAX_WORKERS = 16

/** @param {ProcessSample['loop']} loop */
const thinLoop = loop => ({ ...loop, ticks: { ...loop.ticks, buckets: [] } })

/** @template {ProcessSample} T @param {T} sample @returns {T} */
const thinProcess = sample => ({
  ...sample,
  loop: thinLoop(sample.loop),
  memory: { ...sample.memory, spaces: {} },
})

const NAMED = new Set(Object.keys(COUNTS).flatMap(path => (path.includes('<') ? path.split('.')[0] : [])))
const NONE = Object.fromEntries(Object.entries(emptyCounts()).filter(([name]) => NAMED.has(name)))

/** @param {Counts} counts */
const thinCounts = counts => ({ ...counts, ...NONE })

/** Drops the largest fields (see Hello in schema.js). @param {Snapshot} snapshot @returns {Snapshot} */
function thin({ lifetimes, ...rest }) {
  const { workers, totals, machine, primary, counters } = rest
  const { loop } = totals
  return /** @type {any} */ ({
    ...rest,
    primary: thinProcess(primary),
    workers: workers.length > MAX_WORKERS ? [] : workers.map(thinView),
    totals: { ...totals, loop: thinLoop(loop), hooks: {}, counts: thinCounts(totals.counts) },
    counters: thinCounts(counters),
    machine: { ...machine, network: machine.network && { ...machine.network, interfaces: {} } },
  })
}

/** @param {WorkerView} view */
function thinView(view) {
  const { sample } = view
  return {
    ...view,
    sample: sample && { ...thinProcess(sample), hooks: {}, counts: thinCounts(sample.counts) },
  }
}

export class History {
  /** Oldest first. @type {Snapshot[]} */
  #kept = []

  /** @param {Snapshot} snapshot */
  add(snapshot) {
    this.#kept.push(thin(snapshot))
    if (this.#kept.length > MAX_SNAPSHOTS) this.#kept.shift()
  }

  /**
   * Read in parts: writing everything blocks the primary's event loop.
   * @param {number} seq of the last snapshot read; 0: none @param {number} [count]
   */
  after(seq, count = MAX_SNAPSHOTS) {
    const at = this.#kept.findIndex(snapshot => snapshot.seq > seq)
    return at < 0 ? [] : this.#kept.slice(at, at + count)
  }
}

const MAX_EVENTS = 100
/** Repeated events must not displace rare ones. */
const MAX_OF_A_KIND = 20

export class EventLog {
  /** @type {GatewayEvent[]} */
  #fresh = []
  /** Oldest first. @type {GatewayEvent[]} */
  #last = []

  /** @param {GatewayEvent} event */
  add(event) {
    this.#fresh.push(event)
    this.#last.push(event)
    const same = this.#last.filter(({ kind }) => kind === event.kind)
    if (same.length > MAX_OF_A_KIND) this.#last.splice(this.#last.indexOf(same[0]), 1)
    else if (this.#last.length > MAX_EVENTS) this.#last.shift()
  }

  drain() {
    const fresh = this.#fresh
    this.#fresh = []
    return fresh
  }

  /** Events that have been drained: clients receive each event once. */
  recent() {
    return this.#last.filter(event => !this.#fresh.includes(event))
  }
}
