import { timeToMultiple } from '../base/timers.js'
import { ProcessSampler } from './process-sample.js'

/** @import { HookStats } from './hook-stats.js' */
/** @import { Overload } from './overload.js' */
/** @import { Connections, WorkerSample } from './schema.js' */
/** @import { Traffic } from './traffic.js' */

const INTERVAL_MS = 1000

const NO_HOOKS = Object.freeze({ states: () => ({}), drain: () => ({}) })

/** @param {Connections['by']} by */
function sumOf(by) {
  let sum = 0
  for (const codecs of Object.values(by)) for (const count of Object.values(codecs)) sum += count
  return sum
}

/**
 * @typedef {object} SessionFigures of all sessions of a worker
 * @property {number} open connections @property {number} count clients
 * @property {number} accepts since the start @property {number} connects
 *
 * @typedef {object} HubFigures
 * @property {number} subscriptions @property {Map<string, unknown>} channels
 * @property {number} delivered since the start
 * @property {{held: any, stats: {drain: () => any}}} batches
 */

/** @typedef {{backlog: () => {bytes: number, largest: number}}} Backlog unsent bytes: of all clients, of the largest */

/** Samples one worker once a second. */
export class WorkerSampler {
  /** @type {WorkerSample | null} */
  last = null
  #process
  #index
  #sessions
  #hub
  #traffic
  #backlogs
  #clock
  #overload
  #listener
  #onError
  #hooks
  /** @type {NodeJS.Timeout | undefined} */
  #timer
  #tick = () => {}

  /**
   * @param {object} parts
   * @param {number} parts.index of the worker
   * @param {SessionFigures} parts.sessions
   * @param {HubFigures} parts.hub
   * @param {Traffic} parts.traffic
   * @param {Backlog[]} parts.backlogs of the socket server and the transports
   * @param {() => number} parts.clock ms
   * @param {Pick<Overload, 'update'> | null} [parts.overload]
   * @param {{state: WorkerSample['log']}} [parts.log] LogOutput
   * @param {{paused: boolean}} [parts.listener]
   * @param {Pick<HookStats, 'states' | 'drain'>} [parts.hooks]
   * @param {(error: Error) => void} [parts.onError] of a sample, which is left out
   */
  constructor({
    index,
    sessions,
    hub,
    traffic,
    backlogs,
    clock,
    overload = null,
    log,
    listener,
    hooks,
    onError,
  }) {
    this.#process = new ProcessSampler({ log })
    this.#index = index
    this.#sessions = sessions
    this.#hub = hub
    this.#traffic = traffic
    this.#backlogs = backlogs
    this.#clock = clock
    this.#overload = overload
    this.#listener = listener
    this.#onError = onError
    this.#hooks = hooks ?? NO_HOOKS
  }

  /** @returns {WorkerSample} since the previous sample */
  sample() {
    const sessions = this.#sessions
    const hub = this.#hub
    const traffic = this.#traffic
    const { interval, ...own } = this.#process.sample()
    const overload = this.#overload?.update({ interval, ...own }) ?? null
    const by = traffic.connections()
    const connected = sumOf(by)
    this.last = {
      index: this.#index,
      time: this.#clock(),
      interval,
      ...own,
      // One-way polls have no session.
      connections: { open: sessions.open - sessions.count + connected, connected, by },
      subscriptions: hub.subscriptions,
      channels: hub.channels.size,
      windows: hub.batches.held,
      outbox: this.#outbox(),
      overload,
      accepting: this.#listener?.paused !== true,
      hooks: this.#hooks.states(),
      counts: {
        ...traffic.drain({
          accepts: sessions.accepts,
          connects: sessions.connects,
          deliveries: hub.delivered,
        }),
        hooks: this.#hooks.drain(),
        batches: hub.batches.stats.drain(),
      },
    }
    return this.last
  }

  #outbox() {
    let bytes = 0
    let largest = 0
    for (const backlog of this.#backlogs) {
      const outbox = backlog.backlog()
      bytes += outbox.bytes
      largest = Math.max(largest, outbox.largest)
    }
    return { bytes, largest }
  }

  /** Samples at every full second, later if the event loop is blocked. @param {(sample: WorkerSample) => void} send */
  start(send) {
    this.#tick = () => {
      if (this.#timer === undefined) return
      this.#wait()
      try {
        send(this.sample())
      } catch (error) {
        // No figure is worth a worker.
        this.#onError?.(error)
      }
    }
    this.#wait()
  }

  #wait() {
    const wait = timeToMultiple(INTERVAL_MS, this.#clock())
    // After all timers of the turn: of a long turn, the event-loop delay is measured by one of them.
    this.#timer = setTimeout(() => setImmediate(this.#tick), wait).unref()
  }

  stop() {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#process.stop()
  }
}
