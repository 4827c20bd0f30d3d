import { FrameWriter } from './frames.js'

/** Backlog of a worker, in bytes, above which its senders wait until it has read. */
const BEHIND_BYTES = 16 * 1024 * 1024
/** Ticks (seconds) that others wait for a worker, which reads nothing, until it counts as stuck. */
const STUCK_TICKS = 5

/** One worker, for the host. */
export class Link {
  /** Workers whose frames wait until this one has read its backlog. @type {Set<Link>} */
  senders = new Set()
  /** Reasons why the host does not read its frames. */
  #pauses = 0
  /** Ticks with a backlog above BEHIND_BYTES of which it has read nothing. */
  silent = 0
  /** Bytes that the kernel had not accepted at the last tick. */
  unwritten = 0
  /** Calls made to other workers. */
  calls = 0

  /**
   * @param {import('node:net').Socket} socket @param {string} name for the log
   * @param {number} worker its number
   * @param {number} number @param {boolean} surveyed whether it answers surveys
   */
  constructor(socket, name, worker, number, surveyed) {
    this.socket = socket
    this.name = name
    this.worker = worker
    this.number = number
    this.surveyed = surveyed
    this.writer = new FrameWriter(socket)
  }

  /** Stops reading from it, until `resume` was called as often. */
  pause() {
    if (++this.#pauses === 1) this.socket.pause()
  }

  resume() {
    if (--this.#pauses === 0) this.socket.resume()
  }

  get behind() {
    return this.writer.backlog > BEHIND_BYTES
  }

  /** Called once a second while it is behind. @returns {boolean} whether it is stuck */
  check() {
    // `writableLength` falls only when a whole write is done, which may be megabytes. The queue of the handle has no
    // public way, but Node.js itself judges by it whether a socket times out (net.Socket, _onTimeout). Without it no
    // worker is stuck: liveness.js still finds those that stand still.
    const { writeQueueSize } = /** @type {any} */ (this.socket)._handle ?? {}
    if (typeof writeQueueSize !== 'number') return false
    this.silent = this.unwritten === writeQueueSize ? this.silent + 1 : 0
    this.unwritten = writeQueueSize
    return this.silent >= STUCK_TICKS
  }
}
