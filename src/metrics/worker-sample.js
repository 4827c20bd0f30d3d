import { timeToMultiple } from '../base/timers.js'
import { ProcessSampler } from './process-sample.js'

/** @import { HookStats } from './hook-stats.js' */
/** @import { MapCounter } from './map-counter.js' */
/** @import { Overload } from './overload.js' */
/** @import { WorkerSample } from './schema.js' */
/** @import { Traffic } from './traffic.js' */

const INTERVAL_MS = 1000

const NO_HOOKS = Object.freeze({ states: () => ({}), drain: () => ({}) })

/**
 * @typedef {{open: number, count: number, accepts: number, connects: number}} SessionFigures open connections and
 *   clients now; `accepts` and `connects` since the start
 * @typedef {{subscriptions: number, channels: Map<string, unknown>, delivered: number,
 *   batches: {held: any, stats: {drain: () => any}}}} HubFigures `delivered`: since the start
 * @typedef {{backlog: () => {bytes: number, largest: number}}} Backlog of all clients, of the largest
 */

export class WorkerSampler {
  /** @type {WorkerSample | null} */
  last = null
  #process
  #parts
  /** @type {NodeJS.Timeout | undefined} */
  #timer
  #tick = () => {}

  /**
   * @param {object} parts
   * @param {number} parts.index
   * @param {SessionFigures} parts.sessions
   * @param {HubFigures} parts.hub
   * @param {Traffic} parts.traffic
   * @param {MapCounter} parts.maps
   * @param {Backlog[]} parts.backlogs
   * @param {() => number} parts.clock ms
   * @param {Pick<Overload, 'update'> | null} [parts.overload]
   * @param {{state: WorkerSample['log']}} [parts.log]
   * @param {{paused: boolean}} [parts.listener]
   * @param {Pick<HookStats, 'states' | 'drain'>} [parts.hooks]
   * @param {(error: Error) => void} [parts.onError] omits the sample
   */
  constructor({ log, ...parts }) {
    this.#process = new ProcessSampler({ log })
    this.#parts = parts
  }

  /** @returns {WorkerSample} */
  sample() {
    const { index, sessions, hub, traffic, maps, clock, overload, listener, hooks = NO_HOOKS } = this.#parts
    const own = this.#process.sample()
    const by = traffic.connections()
    const connected = Object.values(by)
      .flatMap(codecs => Object.values(codecs))
      .reduce((sum, count) => sum + count, 0)
    const { accepts, connects } = sessions
    this.last = {
      index,
      time: clock(),
      ...own,
      connections: { open: sessions.open - sessions.count + connected, connected, by },
      subscriptions: hub.subscriptions,
      channels: hub.channels.size,
      windows: hub.batches.held,
      outbox: this.#outbox(),
      overload: overload?.update(own) ?? null,
      accepting: listener?.paused !== true,
      hooks: hooks.states(),
      counts: {
        ...traffic.drain({ accepts, connects, deliveries: hub.delivered }),
        hooks: hooks.drain(),
        batches: hub.batches.stats.drain(),
        maps: maps.drain(),
      },
    }
    return this.last
  }

  #outbox() {
    const all = this.#parts.backlogs.map(backlog => backlog.backlog())
    return {
      bytes: all.reduce((sum, { bytes }) => sum + bytes, 0),
      largest: Math.max(0, ...all.map(({ largest }) => largest)),
    }
  }

  /** At every full second, unless the event loop is blocked. @param {(sample: WorkerSample) => void} send */
  start(send) {
    this.#tick = () => {
      if (this.#timer === undefined) return
      this.#wait()
      try {
        send(this.sample())
      } catch (error) {
        this.#parts.onError?.(error)
      }
    }
    this.#wait()
  }

  #wait() {
    const wait = timeToMultiple(INTERVAL_MS, this.#parts.clock())
    // Run after all timers of the turn: one measures the event-loop delay.
    this.#timer = setTimeout(() => setImmediate(this.#tick), wait).unref()
  }

  stop() {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#process.stop()
  }
}
