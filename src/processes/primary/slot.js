/** @import { Logger } from 'pino' */
/** @import { WorkerProcess } from './worker-process.js' */

/**
 * The place of one worker. Each process in it is a generation; during a replacement there are two.
 *
 * ```
 * current   starts -> listens -----------------------> drains -> exits
 * next                           starts -> listens = current
 * ```
 */
export class Slot {
  /** Number of processes forked so far. */
  generations = 0
  /** @type {WorkerProcess | null} listens or starts; null: it died, and a fork is scheduled */
  current = null
  /** @type {WorkerProcess | null} starting; replaces the current one when it listens */
  next = null
  /** Consecutive failed starts. */
  failures = 0
  /** @type {Promise<void> | null} replacement in progress */
  replacing = null
  #fork

  /**
   * @param {number} index of the worker, from 0
   * @param {(slot: Slot) => WorkerProcess} fork throws if the gateway is shutting down
   */
  constructor(index, fork) {
    this.index = index
    this.#fork = fork
  }

  /** Forks the first process, or one for a process that died. @throws {Error} if the gateway is shutting down */
  fork() {
    this.current = this.#fork(this)
  }

  /**
   * Replaces the current process, if any. Calls during a replacement return the same promise.
   * @returns {Promise<void>} when the new process listens and the old one has exited
   * @throws {Error} if the current or the new process fails to start, or if the gateway is shutting down
   */
  replace() {
    this.replacing ??= this.#replace().finally(() => {
      this.replacing = null
    })
    return this.replacing
  }

  /**
   * Replaces the current process, unless a replacement is in progress, and logs the outcome.
   * @param {Pick<Logger, 'info' | 'error'>} log
   * @param {() => boolean} stopping whether the gateway is shutting down
   */
  restart(log, stopping) {
    if (this.replacing) return
    this.replace().then(
      () => log.info({ worker: this.index }, 'worker replaced'),
      ({ message }) => {
        if (!stopping())
          log.error({ worker: this.index, reason: message }, 'worker not replaced: the old one keeps running')
      },
    )
  }

  async #replace() {
    const { current } = this
    const failedStart = await current?.started
    if (failedStart) throw new Error(failedStart)
    // The pool replaces dead processes itself.
    if (current === null || this.current !== current) return
    this.next = this.#fork(this)
    const failure = await this.next.started
    if (failure) throw new Error(failure)
    await current.ended
  }

  /** @param {WorkerProcess} process becomes the current one @returns {WorkerProcess | null} the replaced one, to drain */
  onListening(process) {
    this.failures = 0
    if (this.next !== process) return null
    const previous = this.current
    this.current = process
    this.next = null
    return previous
  }

  /** @param {WorkerProcess} process @returns {boolean} whether it was current, so it died */
  onExit(process) {
    const wasCurrent = this.current === process
    if (wasCurrent) this.current = this.next
    if (wasCurrent || this.next === process) this.next = null
    return wasCurrent
  }
}
