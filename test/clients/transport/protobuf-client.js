// A client that speaks raw Protobuf frames: its messages are written and read by the SDK's own code.

import { once } from 'node:events'
import WebSocket from 'ws'
import { WebSocketClient } from '../../kit/protocol-client.js'
import { commandFrame, repliesOf } from '../protocol/sdk-messages.js'

/**
 * One WebSocket connection in Protobuf.
 */
export class ProtobufClient extends WebSocketClient {
  /** @type {{data: Buffer, binary: boolean}[]} the frames as they came */
  frames = []

  /** @param {WebSocket} socket */
  constructor(socket) {
    super(socket)
    socket.on('message', (data, binary) => {
      this.frames.push({ data: /** @type {Buffer} */ (data), binary })
      this.received(repliesOf(/** @type {Buffer} */ (data)))
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
    await client.login(request)
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
}
