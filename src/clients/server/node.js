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
import { Bodies, NodeExchange } from './node-exchange.js'
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
/** The message is compressed (RFC 7692, section 6). */
const RSV1 = 0x40
const TEXT = 1
const BINARY = 2
/** Bytes of the empty block after a flush, which the sender strips and the receiver appends. */
const EMPTY_BLOCK = 4

/**
 * One message as one frame from server to client (RFC 6455, section 5.2), which is never masked.
 * @param {string | Uint8Array} data
 * @param {boolean} binary
 * @returns {Buffer}
 */
export function encodeMessage(data, binary) {
  return encode(FIN | (binary ? BINARY : TEXT), data)
}

/**
 * Compressed without the context of earlier messages (RFC 7692, section 7.2.1); plain if that is not longer.
 * @param {string | Uint8Array} data
 * @param {boolean} binary
 * @param {number} level of zlib
 * @returns {Buffer}
 */
export function encodeCompressed(data, binary, level) {
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

/**
 * What the node server writes in one turn of the event loop. The first frame of a connection leaves at once, as most
 * turns have one for each; later ones are corked until the end of the turn. Streams write at its end.
 */
export class TurnWrites {
  #chunks
  /** Number of this turn, among those that write. */
  #turn = 1
  /** Something was written in this turn. */
  #begun = false
  /** @type {(NodeConnection | NodeStream)[]} wait for the end of the turn */
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

  /** Calls its `release` at the end of the turn. @param {NodeConnection | NodeStream} written */
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
/** Backends keep idle connections for about a minute; a server that closes first causes errors there. */
const KEEP_ALIVE_TIMEOUT = 75_000
const TIMEOUTS = {
  headersTimeout: HEADERS_TIMEOUT,
  requestTimeout: REQUEST_TIMEOUT,
  keepAliveTimeout: KEEP_ALIVE_TIMEOUT,
  connectionsCheckingInterval: 5000,
}

/** @param {http.IncomingMessage} req @returns {boolean} whether it has no body */
export const isBare = ({ headers }) =>
  headers['transfer-encoding'] === undefined && (headers['content-length'] ?? '0') === '0'

const USE_HTTPS = 'this port speaks TLS: use https:// or wss://\n'
/** The answer to plain HTTP on a TLS port. */
const NOT_TLS =
  'HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n' +
  `Content-Length: ${USE_HTTPS.length}\r\n\r\n${USE_HTTPS}`

const OPTIONS = {
  ...TIMEOUTS,
  // Since Node.js 24.9; newer ones give `upgrade` no connection that can be given back after a body.
  shouldUpgradeCallback: isBare,
}

/** @param {ServerTls | null} tls @param {import('./index.js').Logger} [logger] */
export function createHttpServer(tls, logger) {
  if (tls === null) return http.createServer(OPTIONS)
  const options = { ...OPTIONS, handshakeTimeout: HEADERS_TIMEOUT, ALPNProtocols: ['http/1.1'] }
  const server = https.createServer({ ...options, ...nodeTls(tls) })
  // Before the listener of node:https, which ends the connection.
  server.prependListener('tlsClientError', (/** @type {any} */ error, /** @type {any} */ socket) => {
    if (error.code !== 'ERR_SSL_HTTP_REQUEST') return
    // Node.js has no public way to the connection below TLS; without this field it ends without an answer.
    socket._parent?.write(NOT_TLS)
    logger?.stranger({ remote_address: addressOf(socket) }, 'plain HTTP on a TLS port')
  })
  return server
}

/** @typedef {any} Handle a NodeConnection */

/**
 * `ws` keeps the pieces of an unfinished message as they came, each with some 200 bytes of its own. So the limits
 * follow the longest message, for pieces of an ordinary size: 1 KB for fragments, 512 bytes for what the socket reads
 * at once. More of them close with 1008.
 * @param {number} maxMessage bytes
 */
const pieceLimits = maxMessage => ({
  maxFragments: 64 + Math.ceil(maxMessage / 1024),
  maxBufferedChunks: 64 + Math.ceil(maxMessage / 512),
})

const LISTEN_BACKLOG = 4096
const CLOSE_TIMEOUT = 5000
/** The socket server on node:http and ws, where uWebSockets.js does not load. @implements {SocketServer} */
export class NodeServer {
  name = /** @type {const} */ ('node')
  #http
  /** @type {import('./node-exchange.js').Host} */
  #host
  #requests
  #routes = new Routes()
  /** @type {Map<string, {group: import('./node-connection.js').Group, acceptor: WebSocketServer}>} */
  #endpoints = new Map()
  /** @type {Topics<NodeConnection>} */
  #topics = new Topics()
  /** @type {Set<NodeConnection>} */
  #open = new Set()
  /** @type {Set<NodeConnection | NodeStream>} had unread bytes after a write; removed when a check finds none */
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
      bodies: new Bodies(),
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
      // Called between the checks of the handshake and its answer: only well-formed requests get here, and each
      // accepted one is opened.
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

  /** @param {string} host @param {number} port @returns {Promise<void>} */
  listen(host, port) {
    return new Promise((resolve, reject) => {
      const failed = (/** @type {Error} */ error) => {
        reject(new Error(`cannot listen on ${host}:${port}: ${error.message}`))
      }
      this.#http.once('error', failed)
      this.#http.listen({ host, port, backlog: LISTEN_BACKLOG }, () => {
        this.#http.off('error', failed)
        resolve()
      })
    })
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
    // Encoded at most once each, on first use.
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

  /** All writes of an event-loop turn leave together anyway. @param {Handle} _connection @param {() => void} work */
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
    // `close` of node:http would also end idle connections, and the timeouts of those without a request.
    if (this.#http.listening) net.Server.prototype.close.call(this.#http)
  }

  shutdown() {
    this.stopListening()
    for (const connection of this.#open) connection.terminate()
    this.#http.closeAllConnections()
  }

  /** The connection is gone. @param {NodeConnection} connection */
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

  /**
   * @param {http.IncomingMessage} req
   * @returns undefined: no WebSocket handshake for a path that has some. One with a body is none (RFC 6455, section 4.1)
   */
  #endpoint(req) {
    if (req.headers.upgrade?.toLowerCase() !== 'websocket' || !isBare(req)) return undefined
    const { url = '/' } = req
    const mark = url.indexOf('?')
    return this.#endpoints.get(mark < 0 ? url : url.slice(0, mark))
  }

  /** @param {http.IncomingMessage} req @param {Socket} socket @param {Buffer} head */
  #upgrade(req, socket, head) {
    if (this.#requests.busy(socket)) {
      // It would overtake the answer to an earlier request.
      socket.destroy()
      return
    }
    const endpoint = this.#endpoint(req)
    if (endpoint === undefined) {
      this.#decline(req, socket, head)
      return
    }
    const { group, acceptor } = endpoint
    // ws would refuse an empty or repetitive offer, and chooses the first one: offer the chosen protocol only.
    const protocol = chooseSubprotocol(req.headers['sec-websocket-protocol'] ?? '', group.route.protocols)
    if (protocol === '') delete req.headers['sec-websocket-protocol']
    else req.headers['sec-websocket-protocol'] = protocol
    // ws would also refuse an extension offer that it cannot accept.
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
   * Continues without the upgrade. A server must ignore an unknown protocol: Java's HTTP client offers h2c with every
   * request. node:http has already detached the connection, so this gives it back with the same request, without the
   * upgrade headers.
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
    // With TLS, `connection` would begin another handshake.
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
      // `handleUpgrade` drops a client that has left, without `open`.
      const refused = req.socket.readable && req.socket.writable ? route.upgrade(exchange, protocol) : 400
      if (refused instanceof UpgradeRefusal)
        for (const name in refused.headers) checkHeader(name, refused.headers[name])
      answer = refused
    } catch (error) {
      this.#host.log(error)
    }
    if (typeof answer === 'number') {
      verdict(false, answer, undefined, answer === 503 ? retryAfter() : undefined)
      return
    }
    if (answer instanceof UpgradeRefusal) {
      verdict(false, answer.status, answer.body, answer.headers)
      return
    }
    this.#accepted = answer
    verdict(true)
  }
}
