// A process of the load generator: a drone's engine with more transports, bare WebSocket, Socket.IO and Protobuf, and
// with nchan's way to publish.

import { runEngine } from '../fleet/drone/engine-process.js'
import { BINARY, frame, TEXT, WebSocketConnection } from '../fleet/drone/transport/websocket.js'
import { CLOSED } from '../fleet/drone/transport/wire.js'
import { NCHAN_PUBLISH } from './peers/nchan.js'

/** A WebSocket to a bare library, or to nchan: its path subscribes it with the upgrade. */
class BareConnection extends WebSocketConnection {
  get channel() {
    return Object.keys(JSON.parse(this.outbox).subs ?? {})[0] ?? ''
  }

  /** @override */
  get path() {
    return `/?ch=${this.channel}`
  }

  /** @override There is nothing to send. */
  flush() {}

  /** @override @param {number} status @param {string} head */
  answered(status, head) {
    super.answered(status, head)
    if (this.state !== CLOSED) this.upgraded()
  }

  upgraded() {
    this.subscribed()
  }

  /** Tells the engine what a gateway would reply. */
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
/** What is around the publication of an event: `42["p",` and `]`. */
const EVENT_HEAD = 7
const EVENT_TAIL = 1

/** Socket.IO 4 over WebSocket; the server puts the client into the room that its path names. */
class SocketIoConnection extends BareConnection {
  /** @override */
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

/** Field numbers and types in Centrifuge's Protobuf. */
const REPLY = { id: 1, error: 2, push: 4, connect: 5, subscribe: 6 }
const ERROR = { code: 1, message: 2 }
const CONNECT = { ping: 7, pong: 8, time: 11 }
const VARINT = 0
const FIXED64 = 1
const BYTES = 2

/** @param {number} value @returns {number[]} */
const varint = value => (value < 128 ? [value] : [(value & 127) | 128, ...varint(Math.floor(value / 128))])

/** @param {number[]} bytes @returns {number[]} with their length before them */
const delimited = bytes => [...varint(bytes.length), ...bytes]

/** @param {any} command connect, subscribe, or `{}`, a pong @returns {number[]} */
function encode({ id, subscribe }) {
  if (!id) return delimited([])
  const body = subscribe
    ? [0x2a, ...delimited([0x0a, ...delimited([...Buffer.from(subscribe.channel)])])]
    : [0x22, ...delimited([])]
  return delimited([0x08, ...varint(id), ...body])
}

/**
 * @param {Buffer} bytes @param {number} at @param {number} end
 * @returns {Record<number, any>} by field: numbers, and [start, end] of values with a length
 */
function fieldsOf(bytes, at, end) {
  /** @type {Record<number, any>} */
  const fields = {}
  const next = () => {
    let value = 0
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at++]
      value += (byte & 127) * scale
      if (!(byte & 128)) return value
    }
  }
  while (at < end) {
    const tag = next()
    const type = tag & 7
    if (type === VARINT) fields[tag >> 3] = next()
    else if (type === BYTES) {
      const length = next()
      fields[tag >> 3] = [at, at + length]
      at += length
    } else at += type === FIXED64 ? 8 : 4
  }
  return fields
}

/** The Centrifuge protocol in Protobuf: passes replies to the engine as JSON, publications as they are. */
class ProtobufConnection extends WebSocketConnection {
  /** @override */
  get path() {
    return '/connection/websocket?format=protobuf'
  }

  /** @override */
  flush() {
    if (this.status !== 101 || this.outbox === '') return
    const commands = this.outbox.split('\n').flatMap(line => encode(JSON.parse(line)))
    this.outbox = ''
    this.write(frame(BINARY, Uint8Array.from(commands)))
  }

  /** @override @param {Buffer} buffer @param {number} at @param {number} end */
  message(buffer, at, end) {
    while (at < end) {
      let length = 0
      for (let scale = 1; ; scale *= 128) {
        const byte = buffer[at++]
        length += (byte & 127) * scale
        if (!(byte & 128)) break
      }
      // A push has no id, so its field comes first.
      if (length > 0 && buffer[at] === ((REPLY.push << 3) | BYTES)) this.line(buffer, at, at + length)
      else this.#reply(buffer, at, at + length)
      at += length
    }
  }

  /** @param {Buffer} buffer @param {number} start @param {number} end */
  #reply(buffer, start, end) {
    const reply = fieldsOf(buffer, start, end)
    /** @type {any} */
    const message = start === end ? {} : { id: reply[REPLY.id] }
    if (reply[REPLY.error]) {
      const error = fieldsOf(buffer, .../** @type {[number, number]} */ (reply[REPLY.error]))
      message.error = {
        code: error[ERROR.code],
        message: buffer.toString('utf8', ...(error[ERROR.message] ?? [0, 0])),
      }
    } else if (reply[REPLY.connect]) {
      const connect = fieldsOf(buffer, .../** @type {[number, number]} */ (reply[REPLY.connect]))
      message.connect = {
        ping: connect[CONNECT.ping],
        pong: connect[CONNECT.pong] === 1,
        time: connect[CONNECT.time],
      }
    } else if (reply[REPLY.subscribe]) message.subscribe = {}
    const bytes = Buffer.from(JSON.stringify(message))
    this.line(bytes, 0, bytes.length)
  }
}

/** @type {NonNullable<import('../fleet/drone/engine/lane.js').SingleRequest>} */
function singleRequest(target, text, headers) {
  if (target.prefix !== NCHAN_PUBLISH) return target.post('/api/publish', text, headers)
  const [, channel] = /^{"channel":"([^"]*)"/.exec(text) ?? []
  return target.post(`?ch=${channel}`, text, `Accept: text/json\r\n${headers}`)
}

const transports = {
  uni_bare: BareConnection,
  uni_socket_io: SocketIoConnection,
  protobuf: ProtobufConnection,
}
runEngine(process, { transports, singleRequest })
