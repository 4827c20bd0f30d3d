/** @typedef {import('./schema.js').Snapshot} Snapshot */

/** Snapshots that are kept: five minutes. */
const KEPT = 300
/** With more workers than that the history tells of all of them together only: it is sent to whoever comes. */
const MAX_WORKERS = 16

/**
 * @template {import('./schema.js').ProcessSample} T
 * @param {T} sample
 * @returns {T} without what fills the most room
 */
const thinProcess = sample => ({
  ...sample,
  loop: { ...sample.loop, ticks: { ...sample.loop.ticks, buckets: [] } },
  memory: { ...sample.memory, spaces: {} },
})

/**
 * @param {import('./schema.js').Counts} counts
 * @returns {import('./schema.js').Counts} without names
 */
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
 * @returns {Snapshot} of the same shape, but without lifetimes, buckets, heap spaces, interfaces and names of counts
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

/**
 * @param {import('./schema.js').WorkerView} view
 * @returns {import('./schema.js').WorkerView}
 */
function thinView(view) {
  if (!view.sample) return view
  return { ...view, sample: { ...thinProcess(view.sample), counts: thinCounts(view.sample.counts) } }
}

/**
 * The last minutes, for whoever comes to look: their charts begin with what was.
 */
export class History {
  /** @type {Snapshot[]} oldest first */
  #kept = []

  /** @param {Snapshot} snapshot */
  add(snapshot) {
    this.#kept.push(thin(snapshot))
    if (this.#kept.length > KEPT) this.#kept.shift()
  }

  /**
   * To be read in parts: all of it takes longer to write than one turn of the primary should.
   * @param {number} seq of the last one that was read; 0 for none
   * @param {number} [count] at most
   * @returns {Snapshot[]} what came next, oldest first
   */
  after(seq, count = KEPT) {
    const at = this.#kept.findIndex(snapshot => snapshot.seq > seq)
    return at < 0 ? [] : this.#kept.slice(at, at + count)
  }
}
