import cluster from 'node:cluster'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { childFlags, Forked, STDIO } from './forked.js'

/** @import { Config } from '../../config/options.js' */
/** @import { ChildProcess } from 'node:child_process' */
/** @import { Worker } from 'node:cluster' */
/** @import { Blocks } from '../../backends/hooks/watch.js' */
/** @import { LifecycleLog } from '../../backends/lifecycle/index.js' */
/** @import { WorkerSample } from '../../metrics/schema.js' */
/** @import { ToWorker, WorkerStart } from '../messages.js' */

/** Optional file descriptors. */
const [LIFECYCLE, WATCH] = [5, 6]
const PROGRAM = fileURLToPath(new URL('../worker/main.js', import.meta.url))
/** Share of `shutdown.timeout` for disconnecting clients, unless `shutdown.drain` is set. */
const DRAIN_SHARE = 1 / 3
/** Share of it after which a worker exits even with pending requests. */
const ANSWER_SHARE = 0.8

/**
 * Forks a worker. The settings of `cluster` are global to the process: those of an embedding program are restored,
 * except the scheduling policy, which the first fork fixes.
 *
 * Workers with the socket server `node` share a listening socket. With round robin the primary would accept each
 * connection and pass it on in three messages, a third of the cost of a connect; connections passed to a worker that
 * is stopped and then killed would stay open in the primary.
 * @param {boolean} lifecycle whether it writes to the lifecycle log
 * @param {boolean} watched whether its hooks module is watched
 * @returns {Worker}
 */
function fork(lifecycle, watched) {
  const { settings, schedulingPolicy } = cluster
  /** @type {('inherit' | 'ipc' | 'pipe' | 'ignore')[]} */
  const stdio = [...STDIO]
  if (lifecycle) stdio[LIFECYCLE] = 'pipe'
  else if (watched) stdio[LIFECYCLE] = 'ignore'
  if (watched) stdio[WATCH] = 'pipe'
  const forks = /** @type {{settings: any, schedulingPolicy: number}} */ (cluster)
  forks.settings = { exec: PROGRAM, args: [], execArgv: childFlags(process.execArgv), stdio }
  forks.schedulingPolicy = cluster.SCHED_NONE
  try {
    return cluster.fork()
  } finally {
    Object.assign(forks, { settings, schedulingPolicy })
  }
}

/** One generation of a worker: a process in a slot. @extends {Forked<ToWorker>} */
export class WorkerProcess extends Forked {
  listening = false
  /** Accepts no new connections and disconnects its clients. */
  draining = false
  /** Connections. */
  open = 0
  /** @type {WorkerSample | null} */
  sample = null
  /** Whether accepting is paused in favor of other workers. */
  resting = false
  /** Whether it exited after draining. */
  clean = false
  /** @type {(failure: string) => void} */
  #onStarted = () => {}
  #onEnded = () => {}
  #logsLifecycle
  #watched
  /** Blocking activity of its hooks module, for the exit reason. */
  #blockedBy = ''
  /** @type {(hook: string) => void} the hook blocks the worker */
  onBlocked = () => {}

  /** @param {number} slot @param {number} generation @param {Config} config @param {LifecycleLog | null} lifecycle */
  constructor(slot, generation, config, lifecycle) {
    const worker = fork(lifecycle !== null, config.hooks.module !== '' && config.worker.liveness_timeout > 0)
    super(
      /** @type {ChildProcess} */ (worker.process),
      { slot, generation, title: `worker ${slot}`, name: `${slot}` },
      config,
    )
    this.slot = slot
    this.worker = worker
    /** @type {Promise<string>} '' when it listens, or the reason of an exit before */
    this.started = new Promise(resolve => {
      this.#onStarted = resolve
    })
    /** @type {Promise<void>} */
    this.ended = new Promise(resolve => {
      this.#onEnded = () => resolve()
    })
    const [events, blocks] = [this.pipe(LIFECYCLE), this.pipe(WATCH)]
    this.#logsLifecycle = events !== null
    this.#watched = blocks !== null
    const ended = this.ended.then(() => this)
    if (events !== null) lifecycle?.attach(events, slot, ended)
    if (blocks !== null) {
      const lines = createInterface({ input: blocks })
      lines.on('line', line => this.#blocked(JSON.parse(line)))
      lines.on('error', () => {})
    }
  }

  /** @param {Blocks} blocks */
  #blocked({ runs, waits }) {
    const waiting = waits.length > 0 ? `; pending: ${waits.join(', ')}` : ''
    this.#blockedBy = runs === '' ? waiting : `; running the ${runs}`
    if (runs !== '' && !this.liveness.debugged) this.onBlocked(runs)
  }

  /** Whether it accepts connections and responds. */
  get healthy() {
    return this.listening && !this.draining && !this.liveness.unresponsive
  }

  /** @param {(code: number | null, signal: string | null) => void} listener called after its exit or a failed fork */
  onEnd(listener) {
    this.worker.once('exit', listener)
    if (this.forked) return
    this.worker.once('error', error => {
      this.reason = error.message
      listener(null, null)
    })
  }

  onListening() {
    this.listening = true
    this.liveness.onListening()
    this.#onStarted('')
  }

  /** @param {{sample: WorkerSample, debugged: boolean}} message once a second */
  onSample({ sample, debugged }) {
    this.liveness.onSample(debugged)
    this.sample = sample
  }

  /** @param {string} reason @param {boolean} clean */
  onExit(reason, clean) {
    this.listening = false
    this.clean = clean
    this.#onStarted(reason)
    this.#onEnded()
  }

  /** Its first message. @param {Omit<WorkerStart, 'type' | 'number' | 'index' | 'lifecycle' | 'watch'>} start */
  start(start) {
    this.config = start.config
    this.send({
      type: 'start',
      number: this.number,
      index: this.slot,
      lifecycle: this.#logsLifecycle,
      watch: this.#watched,
      ...start,
    })
  }

  /**
   * Disconnects its clients and ends it.
   * @param {{drain: number, timeout: number}} shutdown time for its clients, and in total, ms
   * @param {boolean} stopping all workers end; the pool kills them together
   */
  drain({ drain, timeout }, stopping) {
    if (this.draining) return
    this.draining = true
    const over = drain || timeout * DRAIN_SHARE
    this.send({ type: 'drain', over, within: timeout * ANSWER_SHARE, stopping })
    if (stopping) return
    // A blocked worker does not read the message.
    const late = setTimeout(() => this.kill('did not exit within shutdown.timeout'), timeout)
    this.worker.once('exit', () => clearTimeout(late))
  }

  /** @param {string} reason */
  killStuck(reason) {
    this.kill(`stuck: ${reason}${this.#blockedBy}`)
  }
}
