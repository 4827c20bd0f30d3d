// A client that speaks raw Protobuf frames: its messages are written and read by the SDK's own code.

import { once } from 'node:events'
import WebSocket from 'ws'
import { WebSocketClient } from '../../kit/protocol-client.js'
import { commandFrame, repliesOf } from '../protocol/sdk-messages.js'

/** One WebSocket connection in Protobuf. */
export class ProtobufClient extends WebSocketClient {
  /** @type {{data: Buffer, binary: boolean}[]} received frames */
  frames = []

  /** @param {WebSocket} socket */
  constructor(socket) {
    super(socket)
    socket.on('message', (data, binary) => {
      this.frames.push({ data: /** @type {Buffer} */ (data), binary })
      this.received(repliesOf(/** @type {Buffer} */ (data)))
    })
  }

  /** @param {string} url @param {typeof ProtobufClient} [Client] */
  static async open(url, Client = ProtobufClient) {
    const client = new Client(new WebSocket(url, ['centrifuge-protobuf'], { perMessageDeflate: false }))
    await once(client.socket, 'open')
    return client
  }

  /** @param {string} url @param {object} [request] of the connect command @param {typeof ProtobufClient} [Client] */
  static async connected(url, request = {}, Client = ProtobufClient) {
    const client = await ProtobufClient.open(url, Client)
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
