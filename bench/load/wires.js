import { maskedFrame, OPCODE, upgradeRequest } from './websocket.js'

/**
 * How a client of one kind connects, subscribes to channel `ch<n>`, and knows that it has.
 *
 * @typedef {object} Wire
 * @property {boolean} framed whether messages come in WebSocket frames; else they are lines
 * @property {string} status of the answer to its request
 * @property {(host: string, path: string, channel: number) => string} request
 * @property {((channel: number) => Buffer) | null} hello what it says next; null: nothing
 * @property {Buffer | null} welcome stands in the answer that makes it a subscriber; null: the head does
 * @property {Buffer[]} refusals one of these stands in an answer that does not
 * @property {Buffer} ping payload of a ping
 * @property {Buffer | null} pong what it answers; null: nothing
 */

/** @param {number} channel */
const request = channel => `{"subs":{"ch${channel}":{}}}`

/**
 * @param {number[]} bytes
 * @returns {number[]} with their length before them
 */
const delimited = bytes => [bytes.length, ...bytes]

/** @param {number} channel */
const protobufHello = channel => {
  const name = [...Buffer.from(`ch${channel}`)]
  const connect = delimited([0x08, 1, 0x22, 0])
  const subscribe = delimited([0x08, 2, 0x2a, ...delimited([0x0a, ...delimited(name)])])
  return maskedFrame(OPCODE.binary, Buffer.from([...connect, ...subscribe]))
}

const LINE_PING = Buffer.from('{}')

/** @type {Record<string, Wire>} */
export const WIRES = Object.freeze({
  // The Centrifuge protocol in JSON: connect and subscribe in one frame.
  websocket: {
    framed: true,
    status: '101',
    request: upgradeRequest,
    hello: channel =>
      maskedFrame(OPCODE.text, `{"id":1,"connect":{}}\n{"id":2,"subscribe":{"channel":"ch${channel}"}}`),
    welcome: Buffer.from('"id":2'),
    refusals: [Buffer.from('"error"')],
    ping: LINE_PING,
    pong: maskedFrame(OPCODE.text, LINE_PING),
  },
  // The same in Protobuf: a reply is id (field 1), then error (2) or subscribe (6).
  protobuf: {
    framed: true,
    status: '101',
    request: (host, path) => upgradeRequest(host, `${path}?format=protobuf`),
    hello: protobufHello,
    welcome: Buffer.from([0x08, 2, 0x32]),
    refusals: [Buffer.from([0x08, 1, 0x12]), Buffer.from([0x08, 2, 0x12])],
    ping: Buffer.from([0]),
    pong: maskedFrame(OPCODE.binary, Buffer.from([0])),
  },
  uni_sse: {
    framed: false,
    status: '200',
    request: (host, path, channel) =>
      `GET ${path}?cf_connect=${encodeURIComponent(request(channel))} HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
    hello: null,
    welcome: Buffer.from('"connect"'),
    refusals: [Buffer.from('"disconnect"')],
    ping: LINE_PING,
    pong: null,
  },
  uni_http_stream: {
    framed: false,
    status: '200',
    request: (host, path, channel) => {
      const body = request(channel)
      return `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    },
    hello: null,
    welcome: Buffer.from('"connect"'),
    refusals: [Buffer.from('"disconnect"')],
    ping: LINE_PING,
    pong: null,
  },
  // The Centrifuge protocol in JSON, for clients that subscribe later.
  connected: {
    framed: true,
    status: '101',
    request: upgradeRequest,
    hello: () => maskedFrame(OPCODE.text, '{"id":1,"connect":{}}'),
    welcome: Buffer.from('"id":1'),
    refusals: [Buffer.from('"error"')],
    ping: LINE_PING,
    pong: maskedFrame(OPCODE.text, LINE_PING),
  },
  // A bare library: subscribed by the path, as soon as the upgrade is done.
  bare: {
    framed: true,
    status: '101',
    request: (host, path, channel) => upgradeRequest(host, path.replace('%d', String(channel))),
    hello: null,
    welcome: null,
    refusals: [],
    ping: LINE_PING,
    pong: null,
  },
})

/** Those that a client may be asked to use. */
export const TRANSPORTS = ['websocket', 'protobuf', 'uni_sse', 'uni_http_stream']
