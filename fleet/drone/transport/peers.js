// Connections to servers without the Centrifuge protocol: bare WebSocket libraries, nchan and Socket.IO. The
// path subscribes a connection to its channel.

import { frame, TEXT, WebSocketConnection } from './websocket.js'
import { CLOSED } from './wire.js'

/** A WebSocket to a bare library, or to nchan: its path subscribes it with the upgrade. */
export class BareConnection extends WebSocketConnection {
  get channel() {
    return Object.keys(JSON.parse(this.outbox).subs ?? {})[0] ?? ''
  }

  get path() {
    return `/?ch=${this.channel}`
  }

  /** @override Nothing to send. */
  flush() {}

  /** @override @param {number} status @param {string} head */
  answered(status, head) {
    super.answered(status, head)
    if (this.state !== CLOSED) this.upgraded()
  }

  upgraded() {
    this.subscribed()
  }

  subscribed() {
    const bytes = Buffer.from(`{"connect":{"subs":{"${this.channel}":{}}}}`)
    this.outbox = ''
    this.line(bytes, 0, bytes.length)
  }
}

/** First bytes of packets: of Engine.IO, and of Socket.IO in its messages. */
const ENGINE = { open: 0x30, close: 0x31, ping: 0x32, message: 0x34 }
const SOCKET = { connect: 0x30, event: 0x32, connectError: 0x34 }
const CONNECT_PACKET = frame(TEXT, '40')
const PONG_PACKET = frame(TEXT, '3')
/** Bytes around the publication of an event: `42["p",` and `]`. */
const EVENT_HEAD = 7
const EVENT_TAIL = 1

/** Socket.IO 4 over WebSocket; the server adds the client to the room in its path. */
export class SocketIoConnection extends BareConnection {
  get path() {
    return `/socket.io/?EIO=4&transport=websocket&ch=${this.channel}`
  }

  /** @override The subscription follows the packets of both protocols. */
  upgraded() {}

  /** @override @param {Buffer} buffer @param {number} start @param {number} end */
  message(buffer, start, end) {
    const type = buffer[start]
    if (type === ENGINE.ping) this.write(PONG_PACKET)
    else if (type === ENGINE.open) this.write(CONNECT_PACKET)
    else if (type === ENGINE.close) this.end('closed by target')
    else if (type === ENGINE.message) {
      const packet = buffer[start + 1]
      if (packet === SOCKET.event) this.line(buffer, start + EVENT_HEAD, end - EVENT_TAIL)
      else if (packet === SOCKET.connect) this.subscribed()
      else if (packet === SOCKET.connectError) this.end('connect error')
    }
  }
}
