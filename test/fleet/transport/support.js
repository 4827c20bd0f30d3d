// A listener that records what it receives, and a scripted TCP server.

import { createHash } from 'node:crypto'
import { createServer } from 'node:net'
import { Dialer } from '../../../fleet/drone/transport/dialer.js'
import { KEY } from '../../../fleet/drone/transport/websocket.js'
import { within } from '../../kit/wait.js'

/** @typedef {import('../../../fleet/drone/transport/connection.js').Connection} Connection */

/** Everything that the connections of a dialer have received. */
export class Received {
  /** @type {{connection: Connection, text: string}[]} */
  messages = []
  /** @type {{connection: Connection, code: number, reason: string}[]} */
  ends = []
  /** Whether pings are answered. */
  pong = true
  /** @type {((message: any) => void) | undefined} called with each message that is received */
  onMessage
  /** @type {Map<Connection, {texts: string[], published: any[]}>} */
  #received = new Map()
  /** @type {Set<() => void>} */
  #waiting = new Set()

  message(connection, buffer, start, end) {
    const text = buffer.toString('utf8', start, end)
    this.messages.push({ connection, text })
    const { texts, published } = this.#of(connection)
    texts.push(text)
    if (text.includes('"pub":')) {
      const message = JSON.parse(text)
      published.push((message.push ?? message).pub.data)
    }
    if (text === '{}' && this.pong) connection.send('{}')
    this.onMessage?.({ connection, text })
    this.#look()
  }

  closed(connection, code, reason) {
    this.ends.push({ connection, code, reason })
    this.#look()
  }

  #look() {
    for (const look of this.#waiting) look()
  }

  /** @template T @param {() => T} condition @returns {Promise<NonNullable<T>>} when it is true; rejects if it throws */
  until(condition) {
    return within(
      new Promise((resolve, reject) => {
        const look = () => {
          try {
            const value = condition()
            if (!value) return
            resolve(value)
          } catch (error) {
            reject(error)
          }
          this.#waiting.delete(look)
        }
        this.#waiting.add(look)
        look()
      }),
      condition.toString(),
    )
  }

  /** @param {Connection} connection */
  #of(connection) {
    const known = this.#received.get(connection) ?? { texts: [], published: [] }
    this.#received.set(connection, known)
    return known
  }

  /** @param {Connection} connection that is open @returns {{texts: string[], published: any[]}} what it received */
  open(connection) {
    const end = this.ends.find(each => each.connection === connection)
    if (end) throw new Error(`ended with ${end.code} ${end.reason}`)
    return this.#of(connection)
  }

  /** @param {Connection} connection @returns {string[]} */
  of(connection) {
    return this.#of(connection).texts
  }

  /** @param {Connection} connection */
  async end(connection) {
    const { code, reason } = await this.until(() => this.ends.find(each => each.connection === connection))
    return { code, reason }
  }

  /** @param {Connection} connection @param {(text: string) => boolean} matches */
  message1(connection, matches) {
    return this.until(() => this.open(connection).texts.find(matches))
  }
}

/**
 * @param {Partial<import('../../../fleet/drone/transport/dialer.js').DialerOptions>} options
 * @returns {{dialer: Dialer, received: Received}}
 */
export function start(options) {
  const received = new Received()
  const dialer = new Dialer(
    { targets: [], allow: ['127.0.0.1'], transport: 'websocket', addresses: [], ports: '', ...options },
    received,
  )
  return { dialer, received }
}

/**
 * A TCP server.
 * @param {any} t
 * @param {(socket: import('node:net').Socket) => void} onSocket
 * @param {string} [host]
 * @returns {Promise<{url: string, port: number, sockets: Set<import('node:net').Socket>, count: number}>}
 */
export async function rawServer(t, onSocket, host = '127.0.0.1') {
  const sockets = new Set()
  const server = createServer(socket => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    raw.count++
    onSocket(socket)
  })
  const raw = { url: '', port: 0, sockets, count: 0 }
  await new Promise(resolve => server.listen(0, host, () => resolve(undefined)))
  raw.port = /** @type {import('node:net').AddressInfo} */ (server.address()).port
  raw.url = `http://${host.includes(':') ? `[${host}]` : host}:${raw.port}`
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return raw
}

/** @param {import('node:net').Socket} socket @returns {Promise<string>} the head of a request */
export const request = socket =>
  new Promise(resolve => {
    let text = ''
    const onData = chunk => {
      text += chunk.toString('latin1')
      if (!text.includes('\r\n\r\n')) return
      socket.off('data', onData)
      resolve(text)
    }
    socket.on('data', onData)
  })

/** The answer to the key of a drone in this process (RFC 6455, 4.2.2). */
export const ACCEPT = createHash('sha1').update(`${KEY}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')

export const SWITCHING =
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
  `Sec-WebSocket-Accept: ${ACCEPT}\r\n\r\n`

/** @param {string | Buffer} payload @param {number} [first] @returns {Buffer} a server's frame */
export function frame(payload, first = 0x81) {
  const bytes = Buffer.from(payload)
  const { length } = bytes
  if (length < 126) return Buffer.concat([Buffer.of(first, length), bytes])
  const head = Buffer.alloc(length < 65_536 ? 4 : 10)
  head[0] = first
  head[1] = head.length === 4 ? 126 : 127
  if (head.length === 4) head.writeUInt16BE(length, 2)
  else head.writeBigUInt64BE(BigInt(length), 2)
  return Buffer.concat([head, bytes])
}
