import { Liveness } from './liveness.js'

/** @import { Config } from '../../config/options.js' */
/** @import { ChildProcess } from 'node:child_process' */
/** @import { Socket } from 'node:net' */
/** @import { Message } from '../messages.js' */

/** Descriptors of a child: standard streams, the channel of `fork`, the bus. */
export const STDIO = /** @type {const} */ (['inherit', 'inherit', 'inherit', 'ipc', 'pipe'])
const BUS = 4
/** Slots of a node: those of workers, and the last one for the queue process. */
const SLOTS = 1024
export const QUEUES_SLOT = SLOTS - 1
/** Generations of a slot before their numbers repeat. */
const GENERATIONS = 2 ** 22 - 1

/**
 * The number of a process in calls and session ids: slot and generation, 32 bits.
 * @param {number} slot
 * @param {number} generation from 0
 */
export function numberOf(slot, generation) {
  return (1 + (generation % GENERATIONS)) * SLOTS + slot
}

/** @param {number} number of a process */
export const slotOf = number => number % SLOTS

/** Flags that contain a program; the value may follow `=`. */
const OF_PROGRAM = ['-e', '--eval', '-p', '--print', '-pe', '--input-type']

/**
 * Node.js flags for children: those of this process without a program on the command line. Each child has a separate
 * heap: heap flags apply unchanged.
 * @param {readonly string[]} flags `process.execArgv`
 * @returns {string[]}
 */
export function childFlags(flags) {
  const kept = []
  for (let at = 0; at < flags.length; at++) {
    const [name] = flags[at].split('=', 1)
    if (!OF_PROGRAM.includes(name)) kept.push(flags[at])
    // `-p -e CODE`: the first has no value.
    else if (name === flags[at] && !flags[at + 1]?.startsWith('-')) at++
  }
  return kept
}

/**
 * A process forked by the primary: one generation of a worker or of the queue process.
 * @template Table messages to it
 */
export class Forked {
  startedAt = Date.now()
  /** Exit reason, if not shown by the exit code. */
  reason = ''
  /** Configuration last sent to it. */
  config = /** @type {Config} */ (/** @type {unknown} */ (null))

  /**
   * @param {ChildProcess} child
   * @param {{slot: number, generation: number, title: string, name: string}} names `title`: for errors; `name`: for log
   *   lines of the broker
   * @param {Config} config
   */
  constructor(child, { slot, generation, title, name }, config) {
    this.child = child
    this.number = numberOf(slot, generation)
    /** False if the fork failed, for example without free descriptors. */
    this.forked = child.pid !== undefined
    this.pid = /** @type {number} */ (child.pid)
    this.title = title
    this.name = `${name} (pid ${this.pid})`
    this.liveness = new Liveness(this.pid, config.worker)
  }

  /** @param {number} fd of the process @returns {Socket | null} */
  pipe(fd) {
    return this.forked ? /** @type {any} */ (this.child.stdio?.[fd] ?? null) : null
  }

  get bus() {
    return this.pipe(BUS)
  }

  /** @param {Message<Table>} message @returns {boolean} false if it is unreachable */
  send(message) {
    if (!this.child.connected) return false
    // The result may be false due to backpressure.
    this.child.send(message)
    return true
  }

  /** @param {string} reason */
  kill(reason) {
    this.reason ||= reason
    // Without a pid Node.js would kill the whole process group.
    if (this.forked) this.child.kill('SIGKILL')
  }
}
