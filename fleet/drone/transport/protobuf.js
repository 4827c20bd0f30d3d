// The Centrifuge protocol in Protobuf over WebSocket, without recovery.

import { BINARY, frame, WebSocketConnection } from './websocket.js'

const REPLY = { id: 1, error: 2, push: 4, connect: 5, subscribe: 6 }
const ERROR = { code: 1, message: 2 }
const CONNECT = { ping: 7, pong: 8, time: 11 }
const VARINT = 0
const FIXED64 = 1
const BYTES = 2

/** @param {number} value @returns {number[]} */
const varint = value => (value < 128 ? [value] : [(value & 127) | 128, ...varint(Math.floor(value / 128))])

/** @param {number[]} bytes @returns {number[]} prefixed with their length */
const delimited = bytes => [...varint(bytes.length), ...bytes]

/** @param {any} command connect, subscribe, or `{}`, a pong @returns {number[]} */
function encode({ id, subscribe }) {
  if (!id) return delimited([])
  const body = subscribe
    ? [0x2a, ...delimited([0x0a, ...delimited([...Buffer.from(subscribe.channel)])])]
    : [0x22, ...delimited([])]
  return delimited([0x08, ...varint(id), ...body])
}

/** By field: numbers, [start, end] of values with a length. @param {Buffer} bytes @param {number} at @param {number} end */
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

/** Passes replies to the engine as JSON, publications as they are. */
export class ProtobufConnection extends WebSocketConnection {
  get path() {
    return '/connection/websocket?format=protobuf'
  }

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
