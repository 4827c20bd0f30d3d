import { once } from 'node:events'
import net from 'node:net'
import { WebSocket } from 'ws'
import { createServer } from '../../../../src/clients/server/index.js'
import { freePort } from '../../../kit/ports.js'

/** Values by name, in the order they came; `next` waits for a value that is missing. */
export class Inbox {
  /** The WebSocket of `connect`. @type {any} */
  socket
  #values = new Map()
  #waiting = new Map()
  #counts = new Map()

  put(name, value) {
    this.#counts.set(name, this.count(name) + 1)
    const waiter = this.#waiting.get(name)?.shift()
    if (waiter !== undefined) waiter(value)
    else if (this.#values.has(name)) this.#values.get(name).push(value)
    else this.#values.set(name, [value])
  }

  next(name) {
    const values = this.#values.get(name)
    if (values?.length > 0) return Promise.resolve(values.shift())
    return new Promise(resolve => {
      if (this.#waiting.has(name)) this.#waiting.get(name).push(resolve)
      else this.#waiting.set(name, [resolve])
    })
  }

  async take(name, count) {
    const taken = []
    while (taken.length < count) taken.push(await this.next(name))
    return taken
  }

  /** How often it came in all. */
  count(name) {
    return this.#counts.get(name) ?? 0
  }
}

/** A WebSocket route that records its calls. */
export class Recorder extends Inbox {
  constructor(options = {}) {
    super()
    this.route = {
      maxMessage: 65536,
      maxBuffered: 1024 * 1024,
      compression: null,
      protocols: [],
      upgrade: () => ({}),
      open: (connection, accepted) => this.put('open', { connection, accepted }),
      message: (connection, data, binary) => {
        this.put('message', { connection, data: Buffer.from(data.toString('latin1'), 'latin1'), binary })
      },
      close: (connection, code, reason) => this.put('close', { connection, code, reason }),
      overflow: connection => this.put('overflow', { connection }),
      pong: connection => this.put('pong', { connection }),
      ...options,
    }
  }

  async opened() {
    return (await this.next('open')).connection
  }
}

/** A logger that keeps what is logged. */
export class Log extends Inbox {
  stranger() {}

  error(details, message) {
    this.put('error', { ...details, message })
  }

  warn(message) {
    this.put('warn', message)
  }
}

/** A client that sees the bytes. */
export class RawClient {
  received = Buffer.alloc(0)
  ended = false
  #waiting = []

  constructor(socket) {
    this.socket = socket
    socket.on('data', data => {
      this.received = Buffer.concat([this.received, data])
      this.#look()
    })
    socket.on('error', () => {})
    socket.on('end', () => this.#finish())
    socket.on('close', () => this.#finish())
  }

  static async connect(t, port) {
    const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
    await once(socket, 'connect')
    t.teardown(() => socket.destroy())
    return new RawClient(socket)
  }

  /** With the handshake done. */
  static async upgraded(t, port, path = '/ws', extra = '') {
    const client = await RawClient.connect(t, port)
    client.write(upgradeRequest(path, extra))
    await client.until('\r\n\r\n')
    client.received = client.received.subarray(client.received.indexOf('\r\n\r\n') + 4)
    return client
  }

  write(data) {
    this.socket.write(data)
  }

  get text() {
    return this.received.toString('latin1')
  }

  /** All that came, once it contains this. Rejects when the server hangs up before. */
  until(part) {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ part, resolve, reject })
      this.#look()
    })
  }

  /** Resolves when the connection is gone, however. */
  gone() {
    return new Promise(resolve => this.socket.once('close', resolve))
  }

  #look() {
    for (const waiter of [...this.#waiting]) {
      if (this.text.includes(waiter.part)) waiter.resolve(this.text)
      else if (this.ended) waiter.reject(new Error(`ended with ${JSON.stringify(this.text)}`))
      else continue
      this.#waiting.splice(this.#waiting.indexOf(waiter), 1)
    }
  }

  #finish() {
    this.ended = true
    this.#look()
  }
}

export function upgradeRequest(path, extra = '') {
  return (
    `GET ${path} HTTP/1.1\r\nHost: here\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
    `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${extra}\r\n`
  )
}

export function post(path, body, extra = '') {
  return `POST ${path} HTTP/1.1\r\nHost: here\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${extra}\r\n${body}`
}

/** A client frame, masked with zeros. */
export function clientFrame(opcode, data) {
  const payload = Buffer.from(data)
  return Buffer.concat([Buffer.from([0x80 | opcode, 0x80 | payload.length, 0, 0, 0, 0]), payload])
}

/** How uWebSockets.js is loaded; undefined: as always. @type {{load: (() => Promise<any>) | undefined}} */
export const library = { load: undefined }

/** A listening server; `build` gets it before it listens. */
export async function serve(t, driver, build, /** @type {any} */ logger = new Log()) {
  const server = await createServer({ driver, logger, load: library.load })
  build(server)
  const port = await freePort()
  await server.listen('127.0.0.1', port)
  t.teardown(() => server.shutdown())
  return { server, port, url: `http://127.0.0.1:${port}`, logger }
}

/** A server with one WebSocket route, and a client connected to it. */
export async function pair(t, driver, options = {}) {
  const recorder = new Recorder(options)
  const { server, port } = await serve(t, driver, server => server.websocket('/ws', recorder.route))
  const client = await connect(t, port)
  const connection = await recorder.opened()
  return { server, port, recorder, client, connection }
}

/** An open WebSocket and what comes out of it. */
export async function connect(t, port, path = '/ws', protocols = [], options = {}) {
  const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, protocols, options)
  const client = new Inbox()
  client.socket = socket
  socket.on('message', (data, binary) => client.put('message', binary ? data : data.toString()))
  socket.on('ping', () => client.put('ping'))
  socket.on('pong', data => client.put('pong', data.toString()))
  socket.on('close', (code, reason) => client.put('close', { code, reason: reason.toString() }))
  t.teardown(() => socket.terminate())
  await once(socket, 'open')
  return client
}

/** The status a handshake is refused with. */
export async function refusal(port, path) {
  const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`)
  socket.on('error', () => {})
  const [, response] = await once(socket, 'unexpected-response')
  socket.terminate()
  return response.statusCode
}
