import { once } from 'node:events'
import net from 'node:net'
import { until } from '../../../kit/wait.js'
import { Inbox, RawClient, serve } from './rig.js'

export const get = (path, extra = '') => `GET ${path} HTTP/1.1\r\nHost: here\r\n${extra}\r\n`

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

/** Undoes chunked coding. */
class Dechunker {
  #rest = Buffer.alloc(0)
  head = ''
  /** The chunks' sizes. */
  sizes = []
  /** @type {Buffer[]} */
  body = []
  /** Bytes of the body. */
  received = 0
  ended = false

  push(data) {
    this.#rest = this.#rest.length === 0 ? data : Buffer.concat([this.#rest, data])
    if (this.head === '') {
      const end = this.#rest.indexOf('\r\n\r\n')
      if (end < 0) return
      this.head = this.#rest.toString('latin1', 0, end)
      this.#rest = this.#rest.subarray(end + 2)
    }
    // Between the chunks: the line break of the one before, or of the head, then the size.
    for (;;) {
      const end = this.#rest.indexOf('\r\n', 2)
      if (end < 0) return
      const size = Number.parseInt(this.#rest.toString('latin1', 2, end), 16)
      if (Number.isNaN(size)) throw new Error('not chunked')
      if (size === 0) {
        this.ended = true
        return
      }
      if (this.#rest.length < end + 2 + size) return
      this.sizes.push(size)
      this.received += size
      this.body.push(this.#rest.subarray(end + 2, end + 2 + size))
      this.#rest = this.#rest.subarray(end + 2 + size)
    }
  }

  get text() {
    return Buffer.concat(this.body).toString()
  }
}

/** A server with one route of streams; each begins as soon as it is asked for. */
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

/** A raw client with a stream, which counts what it gets. */
export async function open(t, { port, recorder }) {
  const client = await RawClient.connect(t, port)
  client.write(get('/stream'))
  const stream = await recorder.next('stream')
  return { client, stream }
}

/** Resolves when the server has ended or cut the connection. */
export function hungUp({ socket }) {
  return new Promise(resolve => socket.once('end', resolve).once('close', resolve))
}

/** The client's bytes as they come, without keeping them all twice. */
export function dechunk(client) {
  const dechunker = new Dechunker()
  client.socket.removeAllListeners('data')
  dechunker.push(client.received)
  client.socket.on('data', data => dechunker.push(data))
  return dechunker
}

/** Writes messages until the client, which does not read, overflows. Returns the number of messages. */
export async function fill(server, stream, recorder, message) {
  const before = recorder.count('overflow')
  let written = 0
  const overflows = () => {
    if (recorder.count('overflow') > before) return true
    server.write(stream, message(written++))
    return false
  }
  await until(overflows, 'overflow', { everyTurn: true })
  return written
}

/** Bytes that a client of this machine can leave in the kernel's buffers. */
export async function kernelBuffers(t) {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const connection = once(server, 'connection')
  const client = await RawClient.connect(
    t,
    /** @type {import('node:net').AddressInfo} */ (server.address()).port,
  )
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
