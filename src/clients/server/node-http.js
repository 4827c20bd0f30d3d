import http from 'node:http'
import https from 'node:https'
import { addressOf } from './node-stream.js'
import { nodeTls } from './tls.js'

/** @import { ServerTls } from './tls.js' */

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
