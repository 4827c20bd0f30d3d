import { closeSync, openSync } from 'node:fs'
import { setAlignedInterval } from '../../base/timers.js'

/** @import { SocketServer } from './contract.js' */

/** @typedef {{server: SocketServer, host: string, port: number}} Endpoint */

const ANY_FILE = '/dev/null'
/** Reserved descriptors: a tenth of the limit, within these bounds. */
const RESERVE_SHARE = 0.1
const MIN_RESERVE = 16
const MAX_RESERVE = 128
/** Free descriptors above the reserve to resume: for listening sockets and some clients. */
const RESUME_MARGIN = 32
/** Each check wakes an idle worker. */
const CHECK_MS = 250
const RESUME_CHECKS = 2

/** @returns {number} a descriptor; -1: none left in the process or system */
function openAny() {
  try {
    return openSync(ANY_FILE, 'r')
  } catch (error) {
    if (error.code === 'EMFILE' || error.code === 'ENFILE') return -1
    throw error
  }
}

/**
 * Listens for all socket servers of a worker, and pauses when descriptors run out: otherwise the event loop retries
 * failing accepts forever. During a pause, the kernel uses other workers of the port, or refuses.
 *
 * The reserve consists of open descriptors, because accepted connections cannot be counted. A pause closes them, for
 * connections to Redis, key requests and files.
 */
export class Listener {
  paused = false
  /** Other workers of the port accept new connections. */
  #resting = false
  #stopped = false
  #endpoints
  #onChange
  #reserve
  /** @type {number[]} descriptors */
  #held = []
  #checks = 0
  #stopChecks = () => {}

  /**
   * @param {Endpoint[]} endpoints @param {object} options
   * @param {number | null} options.limit descriptors of this process; null if unknown
   * @param {(paused: boolean) => void} options.onChange
   */
  constructor(endpoints, { limit, onChange }) {
    this.#endpoints = endpoints
    this.#onChange = onChange
    const share = Math.floor((limit ?? Infinity) * RESERVE_SHARE)
    this.#reserve = Math.min(MAX_RESERVE, Math.max(MIN_RESERVE, share))
  }

  /** @throws {Error} one line */
  async listen() {
    for (const { server, host, port } of this.#endpoints) await server.listen(host, port)
    this.#hold(this.#reserve)
    this.#stopChecks = setAlignedInterval(() => this.#check(), CHECK_MS)
  }

  /** @param {boolean} on */
  rest(on) {
    if (this.#stopped || on === this.#resting) return
    this.#resting = on
    if (this.paused) return
    if (on) this.#close()
    else this.#listenAgain()
  }

  /** Permanent; existing connections stay open. */
  stopListening() {
    this.#stopped = true
    this.#stopChecks()
    this.#release(0)
    for (const { server } of this.#endpoints) server.drain()
  }

  #check() {
    if (this.paused) {
      if (++this.#checks % RESUME_CHECKS === 0) this.#tryToResume()
      return
    }
    const free = openAny()
    if (free !== -1) return closeSync(free)
    this.paused = true
    this.#close()
    this.#release(0)
    this.#onChange(true)
  }

  #tryToResume() {
    const enough = this.#hold(this.#reserve + RESUME_MARGIN)
    this.#release(enough ? this.#reserve : 0)
    if (!enough) return
    this.paused = false
    if (this.#resting) this.#onChange(false)
    else this.#listenAgain(() => this.#onChange(false))
  }

  #close() {
    for (const { server } of this.#endpoints) server.stopListening()
  }

  /** @param {() => void} [done] */
  async #listenAgain(done = () => {}) {
    try {
      await Promise.all(this.#endpoints.map(({ server, host, port }) => server.listen(host, port)))
    } catch {
      this.#close()
      this.#release(0)
      this.paused = true
      return
    }
    if (this.#resting || this.#stopped) this.#close()
    done()
  }

  /** @param {number} count */
  #hold(count) {
    while (this.#held.length < count) {
      const descriptor = openAny()
      if (descriptor === -1) return false
      this.#held.push(descriptor)
    }
    return true
  }

  /** @param {number} keep */
  #release(keep) {
    for (const descriptor of this.#held.splice(keep)) closeSync(descriptor)
  }
}
