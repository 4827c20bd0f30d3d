// A WebSocket client that sends raw frames, for protocol details.

import { once } from 'node:events'
import WebSocket from 'ws'
import { WebSocketClient } from './protocol-client.js'
import { within } from './wait.js'

/** JSON; a message is a line of a frame. */
export class RawClient extends WebSocketClient {
  /** @type {string[]} */
  frames = []

  /** @param {WebSocket} socket */
  constructor(socket) {
    super(socket)
    socket.on('message', data => {
      this.frames.push(data.toString())
      const lines = data.toString().split('\n')
      this.received(lines.map(line => JSON.parse(line)))
    })
  }

  /**
   * @param {string} url
   * @param {{headers?: Record<string, string>, protocols?: string[], ca?: string}} [options] `ca`: PEM
   */
  static async open(url, { headers, protocols = [], ca } = {}) {
    const socket = new WebSocket(url, protocols, { headers, ca, perMessageDeflate: false })
    const client = new RawClient(socket)
    await within(once(socket, 'open'), 'a connection to open')
    return client
  }

  /** @param {string} url @param {object} [request] of the connect command @param {object} [options] */
  static async connected(url, request = {}, options = {}) {
    const client = await RawClient.open(url, options)
    await client.login(request)
    return client
  }

  /** @param {string} text */
  sendText(text) {
    this.socket.send(text)
  }

  /** @param {...object} commands in one frame */
  send(...commands) {
    this.socket.send(commands.map(command => JSON.stringify(command)).join('\n'))
  }
}
