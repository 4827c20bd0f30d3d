// A client that speaks raw frames: what the tests of the protocol's details need.

import { once } from 'node:events'
import WebSocket from 'ws'

/**
 * One WebSocket connection. Every message (a line of a frame) is kept in order; `next` takes them one by one.
 */
export class RawClient {
  /** @type {any[]} parsed messages not taken yet; pings are `{}` */
  messages = []
  /** @type {string[]} the frames as they came */
  frames = []
  #wake = () => {}
  #lastId = 0

  /** @param {WebSocket} socket */
  constructor(socket) {
    this.socket = socket
    /** @type {Promise<{code: number, reason: string}>} */
    this.closed = new Promise(resolve =>
      socket.once('close', (code, reason) => {
        this.ended = { code, reason: reason.toString() }
        this.#wake()
        resolve(this.ended)
      }),
    )
    /** @type {{code: number, reason: string} | null} */
    this.ended = null
    socket.on('error', () => {})
    socket.on('message', data => {
      this.frames.push(data.toString())
      for (const line of data.toString().split('\n')) this.messages.push(JSON.parse(line))
      this.#wake()
    })
  }

  /**
   * @param {string} url
   * @param {{headers?: Record<string, string>, protocols?: string[]}} [options]
   */
  static async open(url, { headers, protocols = [] } = {}) {
    const socket = new WebSocket(url, protocols, { headers, perMessageDeflate: false })
    const client = new RawClient(socket)
    await once(socket, 'open')
    return client
  }

  /**
   * @param {string} url
   * @param {object} [request] of the connect command
   * @param {object} [options]
   */
  static async connected(url, request = {}, options = {}) {
    const client = await RawClient.open(url, options)
    const reply = await client.call('connect', request)
    if (reply.error) throw new Error(`connect: ${reply.error.code}`)
    client.connect = reply.connect
    return client
  }

  /** @type {any} the connect result */
  connect = null

  /** @param {string} text */
  sendText(text) {
    this.socket.send(text)
  }

  /** @param {object[]} commands in one frame */
  send(...commands) {
    this.socket.send(commands.map(command => JSON.stringify(command)).join('\n'))
  }

  /**
   * @param {(message: any) => boolean} [matches] messages that do not match stay
   * @returns {Promise<any>} rejects when the connection closes first
   */
  async next(matches = () => true) {
    for (;;) {
      const index = this.messages.findIndex(matches)
      if (index >= 0) return this.messages.splice(index, 1)[0]
      if (this.ended) throw new Error(`closed with ${this.ended.code} ${this.ended.reason}`)
      await new Promise(resolve => {
        this.#wake = () => resolve(undefined)
      })
    }
  }

  /**
   * Sends a command and waits for its reply.
   * @param {string} method
   * @param {object} request
   */
  async call(method, request = {}) {
    const id = ++this.#lastId
    this.send({ id, [method]: request })
    return this.next(message => message.id === id)
  }

  /**
   * @param {string} channel
   * @param {object} [request]
   */
  async subscribe(channel, request = {}) {
    return this.call('subscribe', { channel, ...request })
  }

  /** @param {string} [type] of the push: pub, join, leave, unsubscribe, subscribe, refresh ... */
  async push(type) {
    return (await this.next(message => message.push && (!type || type in message.push))).push
  }

  close() {
    this.socket.close()
    return this.closed
  }
}
