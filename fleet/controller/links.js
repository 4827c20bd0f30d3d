// Links to drones: incoming, and dialled to listening drones.

import { setTimeout as sleep } from 'node:timers/promises'
import { MAX_LINE } from '../link/link.js'
import { REASONS } from '../link/reasons.js'
import { dialLink, listenLinks } from '../link/tls.js'
import { checkMessage } from './messages.js'

/** @import { Link } from '../link/link.js' */
/** @import { Program } from '../program.js' */
/** @import { Hello } from '../schema.js' */

/** Maximum characters of a first line; only known drones may send longer ones. */
const FIRST_LINE = 65_536
const HELLO_TIMEOUT = 10_000
/** Timeout to close a link after sending a program, ms; normally the drone closes it. */
const PROGRAM_TIMEOUT = 120_000
/** Delay between attempts to dial a listening drone, ms: the first, and the maximum. */
const REDIAL = { first: 250, longest: 5000 }

/** ms in which refused connections are reported once. */
const QUIET = 10_000

/**
 * @typedef {{onHello: (hello: Hello, link: Link) => string, onProgram: (sha256: unknown) => Promise<Program>, onMessage:
 *   (id: string, link: Link, message: any) => void, onLost: (id: string, link: Link, reason: string) => void, onFault:
 *   (text: string) => void}} LinkEvents `onHello`: '', or the reason of the refusal; `onMessage`: checked
 */

/** @param {string} address host:port; an IPv6 host may be in brackets */
export function hostAndPort(address) {
  const match = /^(?:\[(.+)\]|([^:]*)):(\d+)$/.exec(address)
  if (match === null || Number(match[3]) > 65_535)
    throw new Error(`"${address}" is not HOST:PORT, as in 0.0.0.0:7400`)
  return { host: match[1] ?? match[2], port: Number(match[3]) }
}

/** @param {string} text HOST or HOST:PORT @param {number} [port] default */
export const addressOf = (text, port = 0) => (text.includes(':') ? hostAndPort(text) : { host: text, port })

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

  /** @param {string} host @param {number} port 0: a free one @returns {Promise<number>} the port */
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
      throw new Error(`cannot listen for drones on ${host}:${port}: ${why}`)
    }
    return this.#server.port
  }

  /** Port scans must not fill the log. @param {string} text */
  #onRefused(text) {
    this.#refused++
    const now = Date.now()
    if (now - this.#reportedAt < QUIET) return
    const more = this.#refused > 1 ? ` (${this.#refused} refused so far)` : ''
    this.#reportedAt = now
    this.#events.onFault(`${text}${more}`)
  }

  /** Resolves when the link is closed, with whether it was accepted. @param {Link} link @param {string} remote @param {string} [expected] id */
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
      if (!greets || message.run !== this.#run) return refuse('not a drone of this run')
      const known = expected ?? link.identity.slice(this.#run.length + 1)
      if (message.id !== known) return refuse(`its hello names ${message.id}, but its identity is ${known}`)
      if (message.type === 'program') {
        // One program per link.
        link.onMessage = () => {}
        timer = setTimeout(() => void link.close('the program download timed out'), PROGRAM_TIMEOUT)
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

  /** @param {Link} link @param {{id: string, ask: number, sha256: unknown}} request @returns {Promise<boolean>} sent */
  async #sendProgram(link, { id, ask, sha256 }) {
    try {
      const { bytes } = await this.#events.onProgram(sha256)
      link.send({ type: 'answer', ask, result: bytes.toString('base64') })
      return true
    } catch (error) {
      link.send({ type: 'answer', ask, error: error.message })
      this.#onRefused(`cannot send the program to ${id}: ${error.message}`)
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
        // Back off if the drone was not accepted.
        if (await this.#onLink(link, `${host}:${port}`, id)) wait = REDIAL.first
        this.#links.delete(link)
      } catch (error) {
        if (wait === REDIAL.longest) this.#onRefused(`${id} cannot be dialled: ${error.message}`)
      }
      // Jitter spreads simultaneous attempts.
      await sleep(wait * (0.5 + Math.random() / 2), undefined, { signal }).catch(() => {})
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
