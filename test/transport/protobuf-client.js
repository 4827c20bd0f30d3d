// A client that speaks raw Protobuf frames: its messages are written and read by the SDK's own code.

import { once } from 'node:events'
import WebSocket from 'ws'
import { commandFrame, repliesOf } from '../protocol/sdk-messages.js'

/**
 * One WebSocket connection. Every message is kept in order; `next` takes them one by one.
 */
export class ProtobufClient {
  /** @type {any[]} not taken yet; pings are `{}` */
  messages = []
  /** @type {{data: Buffer, binary: boolean}[]} the frames as they came */
  frames = []
  /** @type {{code: number, reason: string} | null} */
  ended = null
  /** @type {any} the connect result */
  connect = null
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
    socket.on('error', () => {})
    socket.on('message', (data, binary) => {
      this.frames.push({ data: /** @type {Buffer} */ (data), binary })
      this.messages.push(...repliesOf(/** @type {Buffer} */ (data)))
      this.#wake()
    })
  }

  /**
   * @param {string} url
   * @param {string[]} [protocols]
   */
  static async open(url, protocols = ['centrifuge-protobuf']) {
    const socket = new WebSocket(url, protocols, { perMessageDeflate: false })
    const client = new ProtobufClient(socket)
    await once(socket, 'open')
    return client
  }

  /**
   * @param {string} url
   * @param {object} [request] of the connect command
   * @param {string[]} [protocols]
   */
  static async connected(url, request = {}, protocols) {
    const client = await ProtobufClient.open(url, protocols)
    const { connect, error } = await client.call('connect', request)
    if (error) throw new Error(`connect: ${error.code}`)
    client.connect = connect
    return client
  }

  /** @param {...object} commands in one frame */
  send(...commands) {
    this.socket.send(commandFrame(...commands))
  }

  /** @param {Uint8Array} bytes @param {boolean} [binary] */
  sendBytes(bytes, binary = true) {
    this.socket.send(bytes, { binary })
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

  /** @param {string} [type] of the push */
  async push(type) {
    return (await this.next(({ push }) => push && (!type || type in push))).push
  }
}
