// Clients of one-way long-poll: the drone's engine has no such transport.

import { Dialer } from '../fleet/drone/transport/dialer.js'
import { HttpWire } from '../fleet/drone/transport/http.js'
import { Target } from '../fleet/drone/transport/target.js'
import { OPEN } from '../fleet/drone/transport/wire.js'
import { post } from './servers.js'

/** Concurrent connects: fewer than a listen backlog of 512. */
const CONCURRENCY = 256
/** Maximum s that the server holds a poll: longer than any round. */
const TIMEOUT = 60

class Poller extends HttpWire {
  /** Body received so far. */
  #text = ''
  #resolve

  /**
   * @param {Target} target @param {string} channel @param {Pollers} group
   * @param {() => void} resolve called when it is connected, or has failed
   */
  constructor(target, channel, group, resolve) {
    super(target)
    this.channel = channel
    this.group = group
    this.#resolve = resolve
  }

  /** @override */
  opened() {
    this.state = OPEN
    this.dialer.unwatch(this)
    this.#poll('')
    this.#resolve()
  }

  /** @param {string} cursor */
  #poll(cursor) {
    const path = `/connection/uni_poll?channel=${this.channel}&timeout=${TIMEOUT}&cursor=${cursor}`
    this.write(Buffer.from(this.target.head(`GET ${path}`, '')))
  }

  /** @override @param {Buffer} buffer @param {number} start @param {number} end */
  body(buffer, start, end) {
    this.#text += buffer.toString('latin1', start, end)
  }

  /** @override */
  done() {
    const text = this.#text
    this.#text = ''
    this.group.answered(this.status, text)
    this.#poll(/"cursor":"([^"]*)"/.exec(text)?.[1] ?? '')
  }

  /** @override */
  gone() {
    this.group.ended()
    this.#resolve()
  }
}

/** @param {number} channel @returns {string} its name, in the namespace with history: cursors need one */
const channelName = channel => `kept:ch${channel}`

/** Clients that poll again after each answer, each over one connection. */
export class Pollers {
  answers = 0
  /** Publications in the answers. */
  received = 0
  /** Error answers, and connections that ended. */
  faults = 0
  #apis
  #conns
  #channels
  /** @type {Poller[]} */
  #pollers = []
  #stopping = false
  /** @type {{answers: number, resolve: () => void} | null} */
  #waiting = null

  /**
   * @param {import('./servers.js').Api[]} apis of the clients; the first one is also the publisher's
   * @param {number} conns @param {number} channels
   */
  constructor(apis, conns, channels) {
    this.#apis = apis
    this.#conns = conns
    this.#channels = channels
  }

  /** Connects all clients; each starts to poll. */
  async start() {
    // The dialer serves its wires only. It dials nothing itself: transport and listener are not used.
    const dialer = new Dialer(
      {
        targets: this.#apis.map(({ url }) => url),
        allow: this.#apis.map(({ url }) => new URL(url).host),
        transport: 'websocket',
        addresses: [],
        ports: '',
      },
      /** @type {any} */ ({}),
    )
    const targets = this.#apis.map(({ url }) => new Target(dialer, url))
    let next = 0
    const connectNext = async () => {
      while (next < this.#conns) {
        const i = next++
        // Distributes the clients of each channel over all nodes.
        const api = (i + Math.floor(i / this.#channels)) % this.#apis.length
        await this.#connect(targets[api], channelName(i % this.#channels))
      }
    }
    await Promise.all(Array.from({ length: CONCURRENCY }, connectNext))
  }

  /**
   * @param {Target} target @param {string} channel
   * @returns {Promise<void>} resolves when it is connected, or has failed
   */
  #connect(target, channel) {
    return new Promise(resolve => {
      const poller = new Poller(target, channel, this, resolve)
      this.#pollers.push(poller)
      poller.open()
    })
  }

  /** A connection has ended. */
  ended() {
    if (!this.#stopping) this.faults++
  }

  /** @param {number} status @param {string} answer */
  answered(status, answer) {
    this.answers++
    if (status !== 200) this.faults++
    this.received += answer.split('"data":').length - 1
    if (this.#waiting === null || this.answers < this.#waiting.answers) return
    this.#waiting.resolve()
    this.#waiting = null
  }

  /** @param {number} answers @returns {Promise<void>} resolves when `this.answers` has reached this number */
  wait(answers) {
    return new Promise(resolve => {
      if (this.answers >= answers) resolve()
      else this.#waiting = { answers, resolve }
    })
  }

  /** @param {number} channel @param {number} size bytes of the payload */
  async publish(channel, size) {
    const data = { text: 'x'.repeat(Math.max(0, size - '{"text":""}'.length)) }
    await post(this.#apis[0], 'publish', JSON.stringify({ channel: channelName(channel), data }))
  }

  stop() {
    this.#stopping = true
    for (const poller of this.#pollers) poller.end('closed')
  }
}
