import { DURATION_BOUNDS } from './table.js'

/** @import { HookCounts, HookState } from './schema.js' */

/** @returns {HookCounts} */
export const noHookCounts = () => ({ calls: 0, time: 0, within: DURATION_BOUNDS.map(() => 0), failures: {} })

export class HookSeries {
  inflight = 0
  /** `within` is not cumulative here. */
  #counts = noHookCounts()
  /** One function per handler: two during a reload, or after a failed one. @type {Set<() => boolean>} */
  #users = new Set()

  get unused() {
    return this.#users.size === 0 && this.inflight === 0
  }

  begin() {
    this.inflight++
    return performance.now()
  }

  /** @param {number} startedAt */
  end(startedAt) {
    this.inflight--
    this.add(performance.now() - startedAt)
  }

  /** @param {number} duration ms */
  add(duration) {
    const counts = this.#counts
    counts.calls++
    counts.time += duration
    // One slot per call, usually the first; `drain` sums them up.
    let slot = 0
    while (slot < DURATION_BOUNDS.length && duration > DURATION_BOUNDS[slot]) slot++
    if (slot < DURATION_BOUNDS.length) counts.within[slot]++
  }

  /** @param {string} kind a label: few values */
  fail(kind) {
    const { failures } = this.#counts
    failures[kind] = (failures[kind] ?? 0) + 1
  }

  /** @param {() => boolean} isDown whether calls fail immediately, because the backend is down */
  open(isDown) {
    this.#users.add(isDown)
    return this
  }

  /** @param {() => boolean} isDown */
  close(isDown) {
    this.#users.delete(isDown)
  }

  /** @returns {HookState} */
  state() {
    let down = 0
    for (const isDown of this.#users) if (isDown()) down = 1
    return { inflight: this.inflight, down }
  }

  /** Since the last drain; null: no calls. */
  drain() {
    const counts = this.#counts
    if (counts.calls === 0 && Object.keys(counts.failures).length === 0) return null
    counts.time = Math.round(counts.time * 1000) / 1000
    for (let slot = 1; slot < counts.within.length; slot++) counts.within[slot] += counts.within[slot - 1]
    this.#counts = noHookCounts()
    return counts
  }
}

export class HookStats {
  /** @type {Map<string, HookSeries>} */
  #series = new Map()

  /**
   * @param {string} protocol module, http, grpc @param {string} event @param {string} name of a proxy
   * @param {() => boolean} [isDown]
   */
  open(protocol, event, name, isDown = () => false) {
    // No part has a space.
    const key = `${protocol} ${event} ${name}`
    let series = this.#series.get(key)
    if (series === undefined) this.#series.set(key, (series = new HookSeries()))
    return series.open(isDown)
  }

  /** @returns {Record<string, HookState>} */
  states() {
    return Object.fromEntries([...this.#series].map(([key, series]) => [key, series.state()]))
  }

  /** Also removes unused handlers. */
  drain() {
    /** @type {Record<string, HookCounts>} */
    const all = {}
    for (const [key, series] of this.#series) {
      const counts = series.drain()
      if (counts !== null) all[key] = counts
      else if (series.unused) this.#series.delete(key)
    }
    return all
  }
}
