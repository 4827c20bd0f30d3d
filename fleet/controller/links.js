// Links to drones: those that dial in, and those that listen and are dialled.

import { MAX_LINE } from '../link/link.js'
import { dialLink, listenLinks } from '../link/tls.js'
import { checkMessage } from './messages.js'

/** @typedef {import('../link/link.js').Link} Link */
/** @typedef {import('../schema.js').Hello} Hello */

/** Maximum characters of a first line; only known drones may send longer ones. */
const FIRST_LINE = 65_536
/** ms after which a link without a hello is closed. */
const HELLO_TIMEOUT = 10_000
/** ms after which a link that carried a program is closed; normally its drone closes it. */
const PROGRAM_TIMEOUT = 120_000
/** ms between two attempts to dial a listening drone: the first, and the longest. */
const REDIAL = { first: 250, longest: 5000 }
const REASONS = /** @type {Record<string, string>} */ ({
  EADDRINUSE: 'is in use',
  EADDRNOTAVAIL: 'is not of this machine',
  EACCES: 'may not be taken by this user',
  ENOTFOUND: 'has a name that is not known',
  EAI_AGAIN: 'has a name that is not known',
})

/** ms in which refused strangers are reported once. */
const QUIET = 10_000

/**
 * @typedef {object} LinkEvents
 * @property {(hello: Hello, link: Link) => string} onHello '': accepted; else the reason of the refusal
 * @property {(sha256: unknown) => Promise<import('../program.js').Program>} onProgram a drone requests its program;
 *   rejects with a one-line reason
 * @property {(id: string, link: Link, message: any) => void} onMessage checked
 * @property {(id: string, link: Link, reason: string) => void} onLost
 * @property {(text: string) => void} onFault
 */

/** Spreads simultaneous attempts. @param {number} ms @returns {number} 0.5 to 1 of it */
const jittered = ms => ms * (0.5 + Math.random() / 2)

/** @param {string} address host:port; an IPv6 host may be in brackets */
export function hostAndPort(address) {
  const match = /^(?:\[(.+)\]|([^:]*)):(\d+)$/.exec(address)
  if (match === null || Number(match[3]) > 65_535)
    throw new Error(`"${address}" is not HOST:PORT, as in 0.0.0.0:7400`)
  return { host: match[1] ?? match[2], port: Number(match[3]) }
}

export class Links {
  #run
  #secret
  #events
  /** @type {{port: number, close: () => Promise<void>} | null} */
  #server = null
  /** Dialled drones. @type {Map<string, AbortController>} */
  #dialled = new Map()
  /** Dialled links; the server closes its own. @type {Set<Link>} */
  #links = new Set()
  #refused = 0
  #reportedAt = 0

  /** @param {{run: string, secret: string}} run @param {LinkEvents} events */
  constructor({ run, secret }, events) {
    this.#run = run
    this.#secret = secret
    this.#events = events
  }

  /**
   * @param {string} host @param {number} port 0: a free one @returns {Promise<number>} the port @throws {Error} one
   *   line
   */
  async listen(host, port) {
    try {
      this.#server = await listenLinks({
        host,
        port,
        secret: this.#secret,
        run: this.#run,
        onLink: (link, remote) => this.#onLink(link, remote),
        onFault: text => this.#onRefused(text),
      })
    } catch (error) {
      const { code, message } = /** @type {NodeJS.ErrnoException} */ (error)
      const why = REASONS[code ?? ''] ?? message
      throw new Error(`${host}:${port}, which drones dial, ${why}`)
    }
    return this.#server.port
  }

  /** Port scans must not fill the log. @param {string} text */
  #onRefused(text) {
    this.#refused++
    const now = Date.now()
    if (now - this.#reportedAt < QUIET) return
    const more = this.#refused > 1 ? ` (${this.#refused} of them by now)` : ''
    this.#reportedAt = now
    this.#events.onFault(`${text}${more}`)
  }

  /**
   * @param {Link} link @param {string} remote @param {string} [expected] id of the dialled drone
   * @returns {Promise<boolean>} when it is closed: whether it was accepted
   */
  #onLink(link, remote, expected) {
    link.maxLine = FIRST_LINE
    let id = ''
    let served = false
    let timer = setTimeout(() => void link.close('no hello'), HELLO_TIMEOUT)
    const refuse = (/** @type {string} */ why) => {
      clearTimeout(timer)
      this.#onRefused(`${id || remote} was refused: ${why}`)
      void link.close(why)
    }
    link.onMessage = message => {
      try {
        checkMessage(message)
      } catch (error) {
        return refuse(`invalid message: ${error.message}`)
      }
      if (id !== '') return this.#events.onMessage(id, link, message)
      clearTimeout(timer)
      const greets = message.type === 'hello' || message.type === 'program'
      if (!greets || message.run !== this.#run) return refuse('it is not a drone of this run')
      const known = expected ?? link.identity.slice(this.#run.length + 1)
      if (message.id !== known) return refuse(`it says hello as ${message.id}, but its identity is ${known}`)
      if (message.type === 'program') {
        // One program per link.
        link.onMessage = () => {}
        timer = setTimeout(() => void link.close('the program was not taken in time'), PROGRAM_TIMEOUT)
        void this.#sendProgram(link, message).then(sent => {
          served = sent
        })
        return
      }
      const why = this.#events.onHello(message, link)
      if (why !== '') return refuse(why)
      id = message.id
      link.maxLine = MAX_LINE
    }
    return new Promise(resolve => {
      link.onClose = reason => {
        clearTimeout(timer)
        if (id !== '') this.#events.onLost(id, link, reason)
        resolve(id !== '' || served)
      }
    })
  }

  /**
   * Sends a machine the drone's program. @param {Link} link @param {{id: string, ask: number, sha256: unknown}}
   * request
   * @returns {Promise<boolean>} whether it was sent
   */
  async #sendProgram(link, { id, ask, sha256 }) {
    try {
      const { bytes } = await this.#events.onProgram(sha256)
      link.send({ type: 'answer', ask, result: bytes.toString('base64') })
      return true
    } catch (error) {
      link.send({ type: 'answer', ask, error: error.message })
      this.#onRefused(`${id} cannot have its program: ${error.message}`)
      return false
    }
  }

  /** Dials a listening drone repeatedly until `stopDialling`. @param {string} id @param {string} address host:port */
  dial(id, address) {
    this.stopDialling(id)
    const controller = new AbortController()
    this.#dialled.set(id, controller)
    void this.#dialOn(id, hostAndPort(address), controller.signal)
  }

  /** @param {string} id @param {{host: string, port: number}} address @param {AbortSignal} signal */
  async #dialOn(id, { host, port }, signal) {
    let wait = REDIAL.first
    while (!signal.aborted) {
      try {
        const link = await dialLink({
          host,
          port,
          secret: this.#secret,
          identity: `${this.#run}/controller`,
          timeout: 5000,
        })
        if (signal.aborted) return void link.close()
        this.#links.add(link)
        // A drone that was not accepted is not dialled four times a second.
        if (await this.#onLink(link, `${host}:${port}`, id)) wait = REDIAL.first
        this.#links.delete(link)
      } catch (error) {
        if (wait === REDIAL.longest) this.#onRefused(`${id} cannot be dialled: ${error.message}`)
      }
      if (signal.aborted) return
      await new Promise(resolve => {
        const timer = setTimeout(resolve, jittered(wait))
        signal.addEventListener('abort', () => {
          clearTimeout(timer)
          resolve(undefined)
        })
      })
      wait = Math.min(REDIAL.longest, wait * 2)
    }
  }

  /** @param {string} id */
  stopDialling(id) {
    this.#dialled.get(id)?.abort()
    this.#dialled.delete(id)
  }

  async close() {
    for (const id of [...this.#dialled.keys()]) this.stopDialling(id)
    await Promise.all([...this.#links].map(link => link.close()))
    await this.#server?.close()
  }
}
