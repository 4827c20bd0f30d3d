// Figures of hooks and proxies: calls, their duration and failures, for each protocol, event and name. Their number is
// that of handlers in the configuration.

import { DURATION_BOUNDS } from './table.js'

/** @import { HookCounts, HookState } from './schema.js' */

/** @returns {HookCounts} */
export const noHookCounts = () => ({ calls: 0, time: 0, within: DURATION_BOUNDS.map(() => 0), failures: {} })

/** Figures of one handler. */
export class HookSeries {
  inflight = 0
  /** `within`: calls of each slot, not yet those of the slots below. */
  #counts = noHookCounts()
  /** Of the handlers that use it: two during a reload, or after one that was refused. @type {Set<() => boolean>} */
  #users = new Set()

  /** Whether no handler uses it any more. */
  get unused() {
    return this.#users.size === 0 && this.inflight === 0
  }

  /** A call begins. @returns {number} for `end` */
  begin() {
    this.inflight++
    return performance.now()
  }

  /** @param {number} startedAt of `begin` */
  end(startedAt) {
    this.inflight--
    this.add(performance.now() - startedAt)
  }

  /** A call that took no turn of the event loop. @param {number} duration ms */
  add(duration) {
    const counts = this.#counts
    counts.calls++
    counts.time += duration
    // Each call in its own slot only: most take the first one. `drain` sums them up.
    let slot = 0
    while (slot < DURATION_BOUNDS.length && duration > DURATION_BOUNDS[slot]) slot++
    if (slot < DURATION_BOUNDS.length) counts.within[slot]++
  }

  /** A call failed. @param {string} kind few: each is a label of a metric */
  fail(kind) {
    const { failures } = this.#counts
    failures[kind] = (failures[kind] ?? 0) + 1
  }

  /** @param {() => boolean} isDown of a handler: whether its calls fail at once, because the backend is down */
  open(isDown) {
    this.#users.add(isDown)
    return this
  }

  /** @param {() => boolean} isDown of `open` */
  close(isDown) {
    this.#users.delete(isDown)
  }

  /** @returns {HookState} */
  state() {
    let down = 0
    for (const isDown of this.#users) if (isDown()) down = 1
    return { inflight: this.inflight, down }
  }

  /** @returns {HookCounts | null} since the last drain; null: no calls */
  drain() {
    const counts = this.#counts
    if (counts.calls === 0 && Object.keys(counts.failures).length === 0) return null
    counts.time = Math.round(counts.time * 1000) / 1000
    for (let slot = 1; slot < counts.within.length; slot++) counts.within[slot] += counts.within[slot - 1]
    this.#counts = noHookCounts()
    return counts
  }
}

/** Figures of the handlers of one worker. */
export class HookStats {
  /** @type {Map<string, HookSeries>} */
  #series = new Map()

  /**
   * @param {string} protocol module, http, grpc @param {string} event @param {string} name of a proxy
   * @param {() => boolean} [isDown]
   * @returns {HookSeries} the only one of these names; to be closed
   */
  open(protocol, event, name, isDown = () => false) {
    // None of them has a space.
    const key = `${protocol} ${event} ${name}`
    let series = this.#series.get(key)
    if (series === undefined) this.#series.set(key, (series = new HookSeries()))
    return series.open(isDown)
  }

  /** @returns {Record<string, HookState>} */
  states() {
    return Object.fromEntries([...this.#series].map(([key, series]) => [key, series.state()]))
  }

  /** Forgets handlers that no configuration has any more. @returns {Record<string, HookCounts>} since the last drain */
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
