import { once } from 'node:events'
import net from 'node:net'
import { WebSocket } from 'ws'
import { createServer } from '../../../../src/clients/server/index.js'
import { freePort } from '../../../kit/ports.js'
import { turn, until } from '../../../kit/wait.js'

/** Far more than the buffers of the kernel, and a limit above it, bytes. */
const PILE = 10_000_000
export const MAX_BUFFERED = 100_000_000

/** Values by name, in order of arrival. */
export class Inbox {
  /** The WebSocket of `connect`. @type {any} */
  socket
  #values = new Map()
  #taken = new Map()

  put(name, value) {
    if (this.#values.has(name)) this.#values.get(name).push(value)
    else this.#values.set(name, [value])
  }

  /** Waits for the next value. @returns {Promise<any>} */
  async next(name) {
    const at = this.#taken.get(name) ?? 0
    this.#taken.set(name, at + 1)
    await until(() => this.count(name) > at, name)
    return this.#values.get(name)[at]
  }

  async take(name, count) {
    const taken = []
    while (taken.length < count) taken.push(await this.next(name))
    return taken
  }

  /** Number of all values. */
  count(name) {
    return this.#values.get(name)?.length ?? 0
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

/** A logger that keeps its lines. */
export class Log extends Inbox {
  untrusted() {}

  error(details, message) {
    this.put('error', { ...details, message })
  }

  warn(message) {
    this.put('warn', message)
  }
}

/** A client with access to raw bytes. */
export class RawClient {
  received = Buffer.alloc(0)
  ended = false
  /** Of the response to the handshake. */
  head = ''

  constructor(socket) {
    this.socket = socket
    socket.on('data', data => {
      this.received = Buffer.concat([this.received, data])
    })
    socket.on('error', () => {})
    for (const event of ['end', 'close'])
      socket.on(event, () => {
        this.ended = true
      })
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
    const end = (await client.until('\r\n\r\n')).indexOf('\r\n\r\n') + 4
    client.head = client.text.slice(0, end)
    client.received = client.received.subarray(end)
    return client
  }

  write(data) {
    this.socket.write(data)
  }

  get text() {
    return this.received.toString('latin1')
  }

  /** @returns {Promise<string>} all bytes, once they contain `part`; rejects if the connection ends before */
  async until(part) {
    await until(() => this.text.includes(part) || this.ended, part)
    if (!this.text.includes(part)) throw new Error(`ended with ${JSON.stringify(this.text)}`)
    return this.text
  }

  /** Resolves when the server has ended or cut the connection; then ends this side. */
  async end() {
    await until(() => this.ended, 'the end of the connection')
    this.socket.end()
  }

  /** Resolves when the connection is closed. */
  gone() {
    return new Promise(resolve => this.socket.once('close', resolve))
  }
}

export const get = (path, extra = '') => `GET ${path} HTTP/1.1\r\nHost: here\r\n${extra}\r\n`

export const upgradeRequest = (path, extra = '') =>
  get(
    path,
    'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n' +
      `Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${extra}`,
  )

export const post = (path, body, extra = '') =>
  `POST ${path} HTTP/1.1\r\nHost: here\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${extra}\r\n${body}`

/** A client frame, masked with zeros. */
export function clientFrame(opcode, data) {
  const payload = Buffer.from(data)
  return Buffer.concat([Buffer.from([0x80 | opcode, 0x80 | payload.length, 0, 0, 0, 0]), payload])
}

/** How uWebSockets.js is loaded; undefined: as always. @type {{load: (() => Promise<any>) | undefined}} */
export const library = { load: undefined }

/** A listening server; `build` gets it before. */
export async function serve(t, driver, build, /** @type {any} */ logger = new Log()) {
  const server = await createServer({ driver, logger, load: library.load })
  build(server)
  const port = await freePort()
  await server.listen('127.0.0.1', port)
  t.teardown(() => server.shutdown())
  return { server, port, url: `http://127.0.0.1:${port}`, logger }
}

/** A server with one WebSocket route. */
export async function sockets(t, driver, options = {}) {
  const recorder = new Recorder(options)
  return { recorder, ...(await serve(t, driver, server => server.websocket('/ws', recorder.route))) }
}

/** The same, and a client connected to it. */
export async function pair(t, driver, options = {}) {
  const rig = await sockets(t, driver, options)
  const client = await connect(t, rig.port)
  return { ...rig, client, connection: await rig.recorder.opened() }
}

/** The same with a raw client. */
export async function rawPair(t, driver, options = {}, extra = '') {
  const rig = await sockets(t, driver, options)
  const client = await RawClient.upgraded(t, rig.port, '/ws', extra)
  return { ...rig, client, connection: await rig.recorder.opened() }
}

/** A pair whose client has left 50 messages of 200 KB unread. */
export async function slowPair(t, driver) {
  const rig = await pair(t, driver, { maxBuffered: MAX_BUFFERED })
  rig.client.socket.pause()
  for (let i = 0; i < 50; i++) rig.server.send(rig.connection, Buffer.alloc(PILE / 50), true)
  await turn()
  if (rig.server.buffered(rig.connection) === 0) throw new Error('the kernel has taken everything')
  return rig
}

/** Calls `write` with 0, 1, 2 ... once a turn until the next overflow. @returns {Promise<number>} number of calls */
export async function untilOverflow(recorder, write) {
  const before = recorder.count('overflow')
  let written = 0
  const overflows = () => {
    if (recorder.count('overflow') > before) return true
    write(written++)
    return false
  }
  await until(overflows, 'overflow', { everyTurn: true })
  return written
}

/** An open WebSocket that records its events. */
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

/** The status of a refused handshake. */
export async function refusal(port, path) {
  const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`)
  socket.on('error', () => {})
  const [, response] = await once(socket, 'unexpected-response')
  socket.terminate()
  return response.statusCode
}

/** A stream route that records its calls. */
export class StreamRecorder extends Inbox {
  constructor(options = {}) {
    super()
    this.route = {
      maxBuffered: 1024 * 1024,
      overflow: stream => this.put('overflow', stream),
      close: stream => this.put('close', stream),
      ...options,
    }
  }
}

/** Decodes chunked coding. */
class Dechunker {
  #rest = Buffer.alloc(0)
  #begun = false
  /** Sizes of the chunks. */
  sizes = []
  /** @type {Buffer[]} */
  body = []
  /** Bytes of the body. */
  received = 0
  ended = false

  push(data) {
    this.#rest = this.#rest.length === 0 ? data : Buffer.concat([this.#rest, data])
    if (!this.#begun) {
      const end = this.#rest.indexOf('\r\n\r\n')
      if (end < 0) return
      this.#begun = true
      this.#rest = this.#rest.subarray(end + 2)
    }
    while (this.#next());
  }

  /** Reads a chunk, after a line break. @returns {boolean} false: it is incomplete, or the last one */
  #next() {
    const start = this.#rest.indexOf('\r\n', 2) + 2
    if (start < 2) return false
    const size = Number.parseInt(this.#rest.toString('latin1', 2, start), 16)
    if (Number.isNaN(size)) throw new Error('not chunked')
    if (size === 0) this.ended = true
    if (this.ended || this.#rest.length < start + size) return false
    this.sizes.push(size)
    this.received += size
    this.body.push(this.#rest.subarray(start, start + size))
    this.#rest = this.#rest.subarray(start + size)
    return true
  }

  get text() {
    return Buffer.concat(this.body).toString()
  }
}

/** A server with one route of streams; `begun` is called for each. */
export async function streams(t, driver, options = {}, begun = (/** @type {any} */ ..._stream) => {}) {
  const recorder = new StreamRecorder(options)
  const rig = await serve(t, driver, server => {
    server.route('*', '/stream', exchange => {
      const stream = exchange.stream(200, { 'Content-Type': 'text/plain' }, recorder.route)
      recorder.put('stream', stream)
      if (stream !== null) begun(stream, server)
    })
  })
  return { ...rig, recorder }
}

/** A raw client with a stream. */
export async function open(t, { port, recorder }) {
  const client = await RawClient.connect(t, port)
  client.write(get('/stream'))
  return { client, stream: await recorder.next('stream') }
}

/** Decodes the bytes of a client from now on, instead of keeping them. */
export function dechunk(client) {
  const dechunker = new Dechunker()
  client.socket.removeAllListeners('data')
  dechunker.push(client.received)
  client.socket.on('data', data => dechunker.push(data))
  return dechunker
}

/** Writes messages to a stream that does not read, until it overflows. @returns {Promise<number>} their number */
export const fill = (server, stream, recorder, message) =>
  untilOverflow(recorder, i => server.write(stream, message(i)))

/** Bytes that a client of this machine can leave in the buffers of the kernel. */
export async function kernelBuffers(t) {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const connection = once(server, 'connection')
  const { port } = /** @type {net.AddressInfo} */ (server.address())
  const client = await RawClient.connect(t, port)
  const [socket] = await connection
  client.socket.pause()
  socket.on('error', () => {})
  let written = 0
  const isFull = () => {
    if (socket.writableLength > 0) return true
    socket.write(Buffer.alloc(1000))
    written += 1000
    return false
  }
  await until(isFull, 'full buffers', { everyTurn: true })
  socket.destroy()
  server.close()
  return written
}
