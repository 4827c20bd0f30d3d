/** @import { Logger } from 'pino' */
/** @import { WorkerProcess } from './worker-process.js' */

/**
 * The place of one worker: one process (generation) after another.
 *
 * ```
 * current   starts -> listens -----------------------> drains -> exits
 * next                           starts -> listens = current
 * ```
 */
export class Slot {
  /** How many processes it has had. */
  generations = 0
  /** @type {WorkerProcess | null} accepts connections, or will when it has started; null: it waits for a restart */
  current = null
  /** @type {WorkerProcess | null} starts, to replace the current one */
  next = null
  /** Starts in a row that failed. */
  failures = 0
  /** @type {Promise<void> | null} the replacement under way */
  replacing = null
  #fork

  /** @param {number} index @param {(slot: Slot) => WorkerProcess} fork throws if the gateway ends */
  constructor(index, fork) {
    this.index = index
    this.#fork = fork
  }

  fork() {
    this.current = this.#fork(this)
  }

  /**
   * Starts a new process to replace the current one. A request while that is under way has no further effect.
   * @returns {Promise<void>} when the new process listens and the old one has ended
   * @throws {Error} if the new one does not start: the old one goes on
   */
  replace() {
    this.replacing ??= this.#replace().finally(() => {
      this.replacing = null
    })
    return this.replacing
  }

  /**
   * Replaces the process unless that is under way, and logs the outcome.
   * @param {Pick<Logger, 'info' | 'error'>} log @param {() => boolean} stopping whether the gateway ends
   */
  restart(log, stopping) {
    if (this.replacing) return
    this.replace().then(
      () => log.info({ worker: this.index }, 'worker replaced'),
      ({ message }) => {
        if (!stopping())
          log.error({ worker: this.index, reason: message }, 'worker not replaced: the old one goes on')
      },
    )
  }

  async #replace() {
    const { current } = this
    const failedStart = await current?.started
    if (failedStart) throw new Error(failedStart)
    // A slot without a process, or whose process has just died, gets a new one anyway.
    if (current === null || this.current !== current) return
    this.next = this.#fork(this)
    const failure = await this.next.started
    if (failure) throw new Error(failure)
    await current.ended
  }

  /** @param {WorkerProcess} process that listens @returns {WorkerProcess | null} the one that it replaces */
  listens(process) {
    this.failures = 0
    if (this.next !== process) return null
    const previous = this.current
    this.current = process
    this.next = null
    return previous
  }

  /** @param {WorkerProcess} process that has exited @returns {boolean} whether it was the current one */
  exited(process) {
    const died = this.current === process
    if (died) this.current = this.next
    if (died || this.next === process) this.next = null
    return died
  }
}
