import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import net from 'node:net'
import { createSecureContext } from 'node:tls'
import { constants, deflateRawSync } from 'node:zlib'
import { WebSocketServer } from 'ws'
import { ChunkMaker } from './chunk-maker.js'
import { Backlog, retryAfter, UpgradeRefusal } from './contract.js'
import { chooseSubprotocol, DEFLATE_OFFER, offersDeflate } from './handshake.js'
import { NodeConnection, Topics } from './node-connection.js'
import { createBodies, NodeExchange } from './node-exchange.js'
import { NodeRequests } from './node-requests.js'
import { addressOf } from './node-stream.js'
import { Routes } from './routes.js'
import { checkHeader, closeReason } from './text.js'
import { nodeTls } from './tls.js'

/** @import { Socket } from 'node:net' */
/** @import { Exchange, SocketServer, WebSocketRoute } from './contract.js' */
/** @import { NodeStream } from './node-stream.js' */
/** @import { ServerTls } from './tls.js' */

const FIN = 0x80
/** Compressed (RFC 7692, section 6). */
const RSV1 = 0x40
const TEXT = 1
const BINARY = 2
/** Bytes of the empty block after a flush, not sent. */
const EMPTY_BLOCK = 4

/** RFC 6455, section 5.2. @param {string | Uint8Array} data @param {boolean} binary */
const encodeMessage = (data, binary) => encode(FIN | (binary ? BINARY : TEXT), data)

/**
 * RFC 7692, section 7.2.1. Uncompressed if not longer.
 * @param {string | Uint8Array} data @param {boolean} binary @param {number} level of zlib
 */
function encodeCompressed(data, binary, level) {
  const deflated = deflateRawSync(data, { level, finishFlush: constants.Z_SYNC_FLUSH })
  const length = deflated.length - EMPTY_BLOCK
  if (length >= data.length) return encodeMessage(data, binary)
  return encode(FIN | RSV1 | (binary ? BINARY : TEXT), deflated.subarray(0, length))
}

/** @param {number} first byte of the header @param {string | Uint8Array} data */
function encode(first, data) {
  const text = typeof data === 'string'
  const length = text ? Buffer.byteLength(data) : data.length
  const start = length < 126 ? 2 : length < 65536 ? 4 : 10
  const frame = Buffer.allocUnsafe(start + length)
  frame[0] = first
  if (start === 2) {
    frame[1] = length
  } else if (start === 4) {
    frame[1] = 126
    frame.writeUInt16BE(length, 2)
  } else {
    frame[1] = 127
    frame.writeUInt32BE(Math.floor(length / 0x100000000), 2)
    frame.writeUInt32BE(length >>> 0, 6)
  }
  if (text) frame.write(data, start)
  else frame.set(data, start)
  return frame
}

/** Writes of one turn: a connection's first frame is sent immediately, later frames and streams at its end. */
class TurnWrites {
  #chunks
  #turn = 1
  #begun = false
  /** @type {(NodeConnection | NodeStream)[]} */
  #held = []
  #end = () => this.#endTurn()

  /** @param {ChunkMaker} chunks */
  constructor(chunks) {
    this.#chunks = chunks
  }

  /** @param {NodeConnection} connection @param {Buffer} frame */
  write(connection, frame) {
    const { socket } = connection
    if (connection.held) {
      socket.write(frame)
      return
    }
    const isFirst = connection.turn !== this.#turn
    if (isFirst) {
      connection.turn = this.#turn
      this.#begin()
      socket.write(frame)
      if (socket.writableLength === 0) return
    }
    connection.held = true
    socket.cork()
    this.hold(connection)
    if (!isFirst) socket.write(frame)
  }

  /** Releases held writes at the turn's end. @param {NodeConnection | NodeStream} written */
  hold(written) {
    this.#held.push(written)
    this.#begin()
  }

  #begin() {
    if (this.#begun) return
    this.#begun = true
    setImmediate(this.#end)
  }

  #endTurn() {
    this.#turn++
    this.#begun = false
    const held = this.#held
    if (held.length === 0) return
    this.#held = []
    for (const written of held) written.release(this.#chunks)
    this.#chunks.clear()
  }
}

/** Timeouts of uWebSockets.js. */
const HEADERS_TIMEOUT = 10_000
const REQUEST_TIMEOUT = 30_000
/** Longer than the keep-alive timeout of backends, to avoid their errors. */
const KEEP_ALIVE_TIMEOUT = 75_000

/** Has no body. @param {http.IncomingMessage} req */
const isBare = ({ headers }) =>
  headers['transfer-encoding'] === undefined && (headers['content-length'] ?? '0') === '0'

const USE_HTTPS = 'this port requires TLS: use https:// or wss://\n'
const NOT_TLS =
  'HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n' +
  `Content-Length: ${USE_HTTPS.length}\r\n\r\n${USE_HTTPS}`

const OPTIONS = {
  headersTimeout: HEADERS_TIMEOUT,
  requestTimeout: REQUEST_TIMEOUT,
  keepAliveTimeout: KEEP_ALIVE_TIMEOUT,
  connectionsCheckingInterval: 5000,
  // Since Node.js 24.9, which cannot return the connection after a body.
  shouldUpgradeCallback: isBare,
}

/** @param {ServerTls | null} tls @param {import('./index.js').Logger} [logger] */
function createHttpServer(tls, logger) {
  if (tls === null) return http.createServer(OPTIONS)
  const options = { ...OPTIONS, handshakeTimeout: HEADERS_TIMEOUT, ALPNProtocols: ['http/1.1'] }
  const server = https.createServer({ ...options, ...nodeTls(tls) })
  // Before the listener of node:https, which closes the connection.
  server.prependListener('tlsClientError', (/** @type {any} */ error, /** @type {any} */ socket) => {
    if (error.code !== 'ERR_SSL_HTTP_REQUEST') return
    // Private: Node.js has no public access to the connection below TLS.
    socket._parent?.write(NOT_TLS)
    logger?.untrusted({ remote_address: addressOf(socket) }, 'plain HTTP on a TLS port')
  })
  return server
}

/** @typedef {any} Handle a NodeConnection */

/**
 * Piece limits of an unfinished message (200 bytes each): a fragment per 1 KB, a read per 512 bytes; else 1008.
 * @param {number} maxMessage bytes
 */
const pieceLimits = maxMessage => ({
  maxFragments: 64 + Math.ceil(maxMessage / 1024),
  maxBufferedChunks: 64 + Math.ceil(maxMessage / 512),
})

const LISTEN_BACKLOG = 4096
const CLOSE_TIMEOUT = 5000

/** The socket server on node:http and ws, if uWebSockets.js cannot load. @implements {SocketServer} */
export class NodeServer {
  name = /** @type {const} */ ('node')
  #http
  /** @type {import('./node-exchange.js').Host} */
  #host
  #requests
  #routes = new Routes()
  /** @type {Map<string, {group: import('./node-connection.js').Group, acceptor: WebSocketServer}>} */
  #endpoints = new Map()
  #topics = new Topics()
  /** @type {Set<NodeConnection>} */
  #open = new Set()
  /** With unread bytes after a write. @type {Set<NodeConnection | NodeStream>} */
  slow = new Set()
  #chunks = new ChunkMaker()
  #writes = new TurnWrites(this.#chunks)
  /** Result of `upgrade` for `open`: `handleUpgrade` calls both synchronously. */
  #accepted = /** @type {any} */ (null)

  /** @param {{logger?: import('./index.js').Logger, tls?: ServerTls | null, fallback?: string}} [options] */
  constructor({ logger, tls = null, fallback = '' } = {}) {
    this.fallback = fallback
    this.#host = {
      log: error => logger?.error({ err: error }, 'HTTP server or handler failed'),
      chunks: this.#chunks,
      done: socket => this.#requests.done(socket),
      hold: stream => this.#writes.hold(stream),
      slow: this.slow,
      bodies: createBodies(),
      closing: false,
      unanswered: 0,
    }
    this.#http = createHttpServer(tls, logger)
    this.#http.on('error', this.#host.log)
    this.#requests = new NodeRequests((req, res) => this.#request(req, res), this.#host)
    this.#http.on('request', (req, res) => this.#requests.add(req, res))
    this.#http.on('upgrade', (req, socket, head) => this.#upgrade(req, /** @type {any} */ (socket), head))
    this.#routes.fallback('/*', exchange => exchange.reply(404, null, 'Not Found'))
  }

  /** @param {string} method @param {string} path @param {(exchange: Exchange) => void} handler */
  route(method, path, handler) {
    this.#routes.add(method, path, handler)
  }

  /** @param {string} path @param {WebSocketRoute} route */
  websocket(path, route) {
    const options = {
      noServer: true,
      clientTracking: false,
      perMessageDeflate: route.compression
        ? { serverNoContextTakeover: true, clientNoContextTakeover: true }
        : false,
      maxPayload: route.maxMessage,
      ...pieceLimits(route.maxMessage),
      closeTimeout: CLOSE_TIMEOUT,
      WebSocket: NodeConnection,
      // Called for well-formed handshakes, before the response.
      verifyClient: (/** @type {any} */ info, /** @type {any} */ verdict) =>
        this.#verify(route, info.req, verdict),
    }
    this.#endpoints.set(path, { group: { route, server: this }, acceptor: new WebSocketServer(options) })
    this.#routes.fallback(path, exchange => exchange.reply(400, null, 'Bad Request'))
  }

  /** @param {ServerTls} tls @returns {() => void} @throws {Error} */
  prepareTls(tls) {
    const options = nodeTls(tls)
    createSecureContext(options)
    return () => /** @type {https.Server} */ (this.#http).setSecureContext(options)
  }

  /** @param {string} host @param {number} port */
  async listen(host, port) {
    this.#http.listen({ host, port, backlog: LISTEN_BACKLOG })
    try {
      await once(this.#http, 'listening')
    } catch (error) {
      throw new Error(`cannot listen on ${host}:${port}: ${error.message}`)
    }
  }

  /** @param {Handle} connection @param {string | Uint8Array} data @param {boolean} binary */
  send(connection, data, binary) {
    if (!connection.live) return
    const { compression } = connection.group.route
    const frame =
      connection.deflates && data.length >= compression.minSize
        ? encodeCompressed(data, binary, compression.level)
        : encodeMessage(data, binary)
    this.#writes.write(connection, frame)
  }

  /** @param {Handle} connection */
  ping(connection) {
    if (connection.live) connection.ping()
  }

  /** @param {Handle} connection @param {string} topic */
  subscribe(connection, topic) {
    if (connection.live) this.#topics.join(connection, topic)
  }

  /** @param {Handle} connection @param {string} topic */
  unsubscribe(connection, topic) {
    this.#topics.leave(connection, topic)
  }

  /** @param {string} topic @param {string | Uint8Array} data @param {boolean} binary */
  publish(topic, data, binary) {
    const members = this.#topics.members(topic)
    if (members === undefined) return
    let plain = null
    let compressed = null
    for (const connection of members) {
      if (!connection.live) continue
      const { compression } = connection.group.route
      if (connection.deflates && compression !== null && data.length >= compression.minSize) {
        compressed ??= encodeCompressed(data, binary, compression.level)
        this.#writes.write(connection, compressed)
      } else {
        plain ??= encodeMessage(data, binary)
        this.#writes.write(connection, plain)
      }
    }
  }

  /** A turn's writes are sent together. @param {Handle} _connection @param {() => void} work */
  cork(_connection, work) {
    work()
  }

  /** @param {Handle} connection */
  buffered(connection) {
    return connection.socket.writableLength
  }

  /** @param {Handle} connection @param {number} code @param {string} reason */
  close(connection, code, reason) {
    if (connection.closeCode !== 0) return
    connection.closeCode = code
    connection.closeReason = reason
    connection.close(code, closeReason(reason))
  }

  /** @param {Handle} connection */
  terminate(connection) {
    connection.terminate()
  }

  /** @param {any} client */
  remoteAddress(client) {
    return client.remoteAddress
  }

  /** @param {any} stream @param {string | Uint8Array} data */
  write(stream, data) {
    stream.write(data)
  }

  /** @param {any} stream */
  flush(stream) {
    stream.flush(this.#chunks)
  }

  /** @param {any} stream @param {string | Uint8Array} data */
  end(stream, data) {
    stream.end(data)
  }

  /** @param {any} stream */
  unread(stream) {
    return stream.unread
  }

  /** @param {any} stream */
  cut(stream) {
    stream.cut()
  }

  backlog() {
    const backlog = new Backlog()
    for (const written of this.slow) {
      const { unread } = written
      if (unread === 0) this.slow.delete(written)
      else backlog.add(unread)
    }
    return backlog
  }

  get unanswered() {
    return this.#host.unanswered
  }

  drain() {
    this.#host.closing = true
    this.stopListening()
  }

  stopListening() {
    // `close` of node:http also closes idle connections, and stops timeouts of connections without a request.
    if (this.#http.listening) net.Server.prototype.close.call(this.#http)
  }

  shutdown() {
    this.stopListening()
    for (const connection of this.#open) connection.terminate()
    this.#http.closeAllConnections()
  }

  /** @param {NodeConnection} connection */
  remove(connection) {
    this.#open.delete(connection)
    this.#topics.leaveAll(connection)
  }

  /** @param {http.IncomingMessage} req @param {http.ServerResponse} res */
  #request(req, res) {
    const exchange = new NodeExchange(req, res, this.#host)
    try {
      this.#routes.find(exchange.method, exchange.path)?.(exchange)
    } catch (error) {
      exchange.fail(error)
    }
  }

  /** @param {http.IncomingMessage} req @returns undefined: no handshake (RFC 6455, section 4.1) for a route */
  #endpoint(req) {
    if (req.headers.upgrade?.toLowerCase() !== 'websocket' || !isBare(req)) return undefined
    const { url = '/' } = req
    const mark = url.indexOf('?')
    return this.#endpoints.get(mark < 0 ? url : url.slice(0, mark))
  }

  /** @param {http.IncomingMessage} req @param {Socket} socket @param {Buffer} head */
  #upgrade(req, socket, head) {
    // The handshake would precede the response to an earlier request.
    if (this.#requests.busy(socket)) return socket.destroy()
    const endpoint = this.#endpoint(req)
    if (endpoint === undefined) return this.#decline(req, socket, head)
    const { group, acceptor } = endpoint
    // ws selects the first protocol, and rejects empty and repeated offers.
    const protocol = chooseSubprotocol(req.headers['sec-websocket-protocol'] ?? '', group.route.protocols)
    if (protocol === '') delete req.headers['sec-websocket-protocol']
    else req.headers['sec-websocket-protocol'] = protocol
    // ws rejects unacceptable extension offers.
    const extensions = req.headers['sec-websocket-extensions'] ?? ''
    if (offersDeflate(extensions)) req.headers['sec-websocket-extensions'] = DEFLATE_OFFER
    else delete req.headers['sec-websocket-extensions']
    acceptor.handleUpgrade(req, socket, head, (/** @type {any} */ connection) => {
      const accepted = this.#accepted
      this.#accepted = null
      connection.attach(group, socket)
      this.#open.add(connection)
      group.route.open(connection, accepted)
    })
  }

  /**
   * Ignores upgrades to unknown protocols (Java's HTTP client offers h2c): returns the detached connection to
   * node:http, with the same request without upgrade headers.
   * @param {http.IncomingMessage} req @param {Socket} socket @param {Buffer} head
   */
  #decline(req, socket, head) {
    let text = `${req.method} ${req.url} HTTP/${req.httpVersion}\r\n`
    for (let i = 0; i < req.rawHeaders.length; i += 2) {
      const name = req.rawHeaders[i].toLowerCase()
      if (name !== 'upgrade' && name !== 'connection')
        text += `${req.rawHeaders[i]}: ${req.rawHeaders[i + 1]}\r\n`
    }
    socket.unshift(Buffer.concat([Buffer.from(`${text}\r\n`, 'latin1'), head]))
    // `connection` would start another TLS handshake.
    this.#http.emit(this.#http instanceof https.Server ? 'secureConnection' : 'connection', socket)
  }

  /**
   * @param {WebSocketRoute} route @param {http.IncomingMessage} req
   * @param {(verified: boolean, status?: number, message?: string, headers?: object) => void} verdict
   */
  #verify(route, req, verdict) {
    const exchange = new NodeExchange(req, null, this.#host)
    const protocol = req.headers['sec-websocket-protocol'] ?? ''
    /** @type {number | object} */
    let answer = 500
    try {
      // `handleUpgrade` ignores disconnected clients.
      const refused = req.socket.readable && req.socket.writable ? route.upgrade(exchange, protocol) : 400
      if (refused instanceof UpgradeRefusal)
        for (const name in refused.headers) checkHeader(name, refused.headers[name])
      answer = refused
    } catch (error) {
      this.#host.log(error)
    }
    if (typeof answer === 'number')
      return verdict(false, answer, undefined, answer === 503 ? retryAfter() : undefined)
    if (answer instanceof UpgradeRefusal) return verdict(false, answer.status, answer.body, answer.headers)
    this.#accepted = answer
    verdict(true)
  }
}
