// Clients of the two-way protocol, over any transport.

import { within } from './wait.js'

/** Keeps messages in order until `next` takes them. */
export class ProtocolClient {
  /** @type {any[]} parsed pending messages; pings are `{}` */
  messages = []
  /** @type {any} the connect result */
  connect = null
  /** Close reason; '': open. */
  #left = ''
  /** @type {(() => void)[]} */
  #waiting = []
  lastId = 0

  /** @param {any[]} messages */
  received(messages) {
    this.messages.push(...messages)
    this.#wake()
  }

  /** @param {string} why */
  left(why) {
    this.#left = why
    this.#wake()
  }

  /**
   * @param {(message: any) => boolean} [matches] others wait
   * @returns {Promise<any>} rejects if the connection closes first
   */
  next(matches = () => true) {
    return within(
      this.#next(matches),
      () => `a message; unread messages: ${JSON.stringify(this.messages).slice(0, 1000)}`,
    )
  }

  /** @param {(message: any) => boolean} matches */
  async #next(matches) {
    for (;;) {
      const index = this.messages.findIndex(matches)
      if (index >= 0) return this.messages.splice(index, 1)[0]
      if (this.#left !== '') throw new Error(this.#left)
      await new Promise(resolve => this.#waiting.push(() => resolve(undefined)))
    }
  }

  #wake() {
    for (const wake of this.#waiting.splice(0)) wake()
  }

  /** @param {...object} _commands @returns {void | Promise<any>} */
  send(..._commands) {
    throw new Error('subclasses implement send')
  }

  /** @param {string} method */
  async call(method, request = {}) {
    const id = ++this.lastId
    await this.send({ id, [method]: request })
    return this.next(message => message.id === id)
  }

  /** @param {object} [request] of the connect command; throws on an error reply */
  async login(request = {}) {
    const { connect, error } = await this.call('connect', request)
    if (error) throw new Error(`connect: ${error.code}`)
    this.connect = connect
  }

  /** @param {string} channel */
  async subscribe(channel, request = {}) {
    return this.call('subscribe', { channel, ...request })
  }

  /** @param {string} [type] of the push: pub, join, leave, unsubscribe, subscribe, refresh ... */
  async push(type) {
    return (await this.next(message => message.push && (!type || type in message.push))).push
  }
}

export class WebSocketClient extends ProtocolClient {
  /** @type {{code: number, reason: string} | null} */
  ended = null
  #closed

  /** @param {import('ws').WebSocket} socket */
  constructor(socket) {
    super()
    this.socket = socket
    this.#closed = new Promise(resolve =>
      socket.once('close', (code, reason) => {
        this.ended = { code, reason: reason.toString() }
        this.left(`closed with ${code} ${reason}`)
        resolve(this.ended)
      }),
    )
    socket.on('error', () => {})
  }

  /** Resolves to its close code and reason; rejects if it stays open. */
  get closed() {
    return within(this.#closed, 'the end of a connection')
  }

  close() {
    this.socket.close()
    return this.closed
  }
}
