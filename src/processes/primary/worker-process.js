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

/** Descriptors that not every worker has. */
const [LIFECYCLE, WATCH] = [5, 6]
const PROGRAM = fileURLToPath(new URL('../worker/main.js', import.meta.url))

/**
 * Forks a worker. The settings of `cluster` belong to the whole process: an embedding program finds its own ones as
 * they were, except that the first fork of the process fixes the scheduling policy.
 *
 * Workers with the socket server `node` accept from a listening socket that they share. With round robin the primary
 * would accept, and pass each connection on in three messages: a third of the cost of a connect. Connections passed to
 * a worker that is stopped and then killed would stay open in the primary.
 * @param {boolean} lifecycle whether it has events for the lifecycle log
 * @param {boolean} watched whether its hooks are
 * @returns {Worker}
 */
function fork(lifecycle, watched) {
  const { settings, schedulingPolicy } = cluster
  /** @type {('inherit' | 'ipc' | 'pipe' | 'ignore')[]} */
  const stdio = [...STDIO]
  if (lifecycle) stdio[LIFECYCLE] = 'pipe'
  else if (watched) stdio[LIFECYCLE] = 'ignore'
  if (watched) stdio[WATCH] = 'pipe'
  const own = {
    exec: PROGRAM,
    args: [],
    execArgv: childFlags(process.execArgv),
    stdio,
  }
  const forks = /** @type {{settings: any, schedulingPolicy: number}} */ (cluster)
  forks.settings = own
  forks.schedulingPolicy = cluster.SCHED_NONE
  try {
    return cluster.fork()
  } finally {
    Object.assign(forks, { settings, schedulingPolicy })
  }
}

/** Share of `shutdown.timeout` in which clients are let go, unless `shutdown.drain` is set. */
const DRAIN_SHARE = 1 / 3
/** Share of it after which a worker ends although a request is unanswered. */
const ANSWER_SHARE = 0.8

/** One generation of a worker: a process in a slot. @extends {Forked<ToWorker>} */
export class WorkerProcess extends Forked {
  listening = false
  /** It accepts no connections any more and lets its clients go. */
  draining = false
  /** Its connections. */
  open = 0
  /** @type {WorkerSample | null} */
  sample = null
  /** Whether it leaves new connections to the other workers. */
  resting = false
  /** Whether it has ended as it should, after all that it had to do. */
  clean = false
  /** @type {(failure: string) => void} */
  #onStarted = () => {}
  #onEnded = () => {}
  #logsLifecycle
  #watched
  /** What its hooks module does while it stands still, for the reason of its end. */
  #blockedBy = ''
  /** @type {(hook: string) => void} it blocks the worker */
  onBlocked = () => {}

  /**
   * @param {number} slot @param {number} generation @param {Config} config
   * @param {LifecycleLog | null} lifecycle reads its events
   */
  constructor(slot, generation, config, lifecycle) {
    const worker = fork(lifecycle !== null, config.hooks.module !== '' && config.worker.liveness_timeout > 0)
    super(
      /** @type {ChildProcess} */ (worker.process),
      { slot, generation, title: `worker ${slot}`, name: `${slot}` },
      config,
    )
    this.slot = slot
    this.worker = worker
    /** @type {Promise<string>} '' when it listens, or why it ended before that */
    this.started = new Promise(resolve => {
      this.#onStarted = resolve
    })
    /** @type {Promise<void>} */
    this.ended = new Promise(resolve => {
      this.#onEnded = () => resolve()
    })
    const events = this.pipe(LIFECYCLE)
    this.#logsLifecycle = events !== null
    if (events !== null)
      lifecycle?.attach(
        events,
        slot,
        this.ended.then(() => this),
      )
    const blocks = this.pipe(WATCH)
    this.#watched = blocks !== null
    if (blocks !== null) {
      const lines = createInterface({ input: blocks })
      lines.on('line', line => this.#blocked(JSON.parse(line)))
      lines.on('error', () => {})
    }
  }

  /** @param {Blocks} blocks */
  #blocked({ runs, waits }) {
    const waiting = waits.length > 0 ? `; these have not answered yet: ${waits.join(', ')}` : ''
    this.#blockedBy = runs === '' ? waiting : `; it runs the ${runs}`
    if (runs !== '' && !this.liveness.debugged) this.onBlocked(runs)
  }

  /** Whether it accepts connections and answers. */
  get healthy() {
    return this.listening && !this.draining && !this.liveness.silent
  }

  /** @param {(code: number | null, signal: string | null) => void} listener called after its end, or a failed fork */
  onEnd(listener) {
    this.worker.once('exit', listener)
    if (this.forked) return
    this.worker.once('error', error => {
      this.reason = error.message
      listener(null, null)
    })
  }

  listens() {
    this.listening = true
    this.liveness.listens()
    this.#onStarted('')
  }

  /** Its sample of a second. @param {{sample: WorkerSample, debugged: boolean}} message */
  sampled({ sample, debugged }) {
    this.liveness.heard(debugged)
    this.sample = sample
  }

  /** It has exited. @param {string} reason @param {boolean} clean */
  exited(reason, clean) {
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
   * Lets its clients go and ends it.
   * @param {{drain: number, timeout: number}} shutdown time for its clients, and for everything, ms
   * @param {boolean} stopping all workers end, and are killed together
   */
  drain({ drain, timeout }, stopping) {
    if (this.draining) return
    this.draining = true
    const over = drain || timeout * DRAIN_SHARE
    this.send({ type: 'drain', over, within: timeout * ANSWER_SHARE, stopping })
    if (stopping) return
    // A hanging worker does not read the message.
    const late = setTimeout(() => this.kill('it did not end within shutdown.timeout'), timeout)
    this.worker.once('exit', () => clearTimeout(late))
  }

  /** It stands still. @param {string} reason */
  stuck(reason) {
    this.kill(`stuck: ${reason}${this.#blockedBy}`)
  }
}
