import { constants, PerformanceObserver } from 'node:perf_hooks'

/** @typedef {import('./schema.js').GcKind} GcKind */
/** @typedef {Record<'minor' | 'major' | 'incremental' | 'weak', GcKind>} GcKinds */

/** What V8 calls a minor collection that marks (`--minor-ms`); Node.js has a name for it only from version 24 on. */
const MINOR_MARK = 2

/** @returns {GcKinds} */
const none = () => ({
  minor: { count: 0, pause: 0 },
  major: { count: 0, pause: 0 },
  incremental: { count: 0, pause: 0 },
  weak: { count: 0, pause: 0 },
})

/** @param {number} kind as Node.js tells it */
function nameOf(kind) {
  switch (kind) {
    case constants.NODE_PERFORMANCE_GC_MINOR:
    case MINOR_MARK:
      return 'minor'
    case constants.NODE_PERFORMANCE_GC_INCREMENTAL:
      return 'incremental'
    case constants.NODE_PERFORMANCE_GC_WEAKCB:
      return 'weak'
    default:
      return 'major'
  }
}

/** This process's garbage collections. */
export class GcWatch {
  #kinds = none()
  #observer = new PerformanceObserver(list => this.#take(list.getEntries()))

  constructor() {
    this.#observer.observe({ entryTypes: ['gc'] })
  }

  /** @param {any[]} entries */
  #take(entries) {
    for (const { duration, detail } of entries) {
      const kind = this.#kinds[nameOf(detail.kind)]
      kind.count++
      kind.pause += duration
    }
  }

  /** @returns {GcKinds} since the last sample */
  sample() {
    // Those that are not handed over yet.
    this.#take(this.#observer.takeRecords())
    const kinds = this.#kinds
    this.#kinds = none()
    for (const kind of Object.values(kinds)) kind.pause = Math.round(kind.pause * 1000) / 1000
    return kinds
  }

  stop() {
    this.#observer.disconnect()
  }
}
