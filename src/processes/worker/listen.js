import v8 from 'node:v8'
import { createServer } from '../../clients/server/index.js'
import { Listener } from '../../clients/server/listener.js'
import { TLS_BLOCKS, tlsOf } from '../../config/pem.js'
import { softLimit } from '../../metrics/process-sample.js'

/** @import { Config } from '../../config/options.js' */
/** @import { ServerTls } from '../../config/pem.js' */
/** @import { LimitedLog } from '../../base/log.js' */
/** @import { SocketServer } from '../../clients/server/contract.js' */
/** @import { Logger } from '../../clients/server/index.js' */

/** @typedef {Config['http_server']} HttpServer */

/** The socket servers of a worker, and their certificates. A reload has two steps, see live-config.js. */
export class Servers {
  /** For clients. */
  server
  /** For the server API, the admin page, metrics and health; may be the same. */
  internal
  #tls
  /** Steps of the next commit, and its options. @type {(() => void)[]} */
  #prepared = []
  /** @type {HttpServer | null} */
  #next = null

  /** @param {HttpServer} options @param {Logger} logger @returns {Promise<Servers>} @throws {Error} one line */
  static async create(options, logger) {
    const tls = tlsOf(options)
    const server = await createServer({ driver: options.driver, logger, tls: tls.clients })
    // Compiles functions on their first call: thousands of clients may connect to a new worker. With node:http and ws
    // it costs more than it saves.
    if (server.name === 'uws') v8.setFlagsFromString('--always-sparkplug')
    // Internal endpoints have their own port if configured.
    if (options.internal_port === 0) return new Servers(server, server, options)
    return new Servers(
      server,
      await createServer({ driver: server.name, logger, tls: tls.internal }),
      options,
    )
  }

  /** @param {SocketServer} server @param {SocketServer} internal @param {HttpServer} options */
  constructor(server, internal, options) {
    this.server = server
    this.internal = internal
    this.#tls = options
  }

  /** @param {HttpServer} options of another configuration @throws {Error} nothing is changed */
  prepare(options) {
    this.#next = null
    this.#prepared = this.#renewals(options)
    this.#next = options
  }

  /** @param {HttpServer} options @returns {(() => void)[]} steps that use its certificates @throws {Error} */
  #renewals(options) {
    if (TLS_BLOCKS.every(block => samePair(options[block], this.#tls[block]))) return []
    const { clients, internal } = tlsOf(options)
    /** @type {(() => void)[]} */
    const prepared = []
    if (clients !== null) prepared.push(this.server.prepareTls(clients))
    if (internal !== null && this.internal !== this.server) prepared.push(this.internal.prepareTls(internal))
    return [...prepared, () => (this.#tls = options)]
  }

  /** A starting worker may have missed `prepare`. @param {HttpServer} options current @throws {Error} */
  commit(options) {
    if (this.#next !== options) this.prepare(options)
    for (const use of this.#prepared.splice(0)) use()
  }
}

/** @param {ServerTls} a @param {ServerTls} b */
const samePair = (a, b) =>
  a.cert_pem === b.cert_pem && a.key_pem === b.key_pem && a.client_ca_pem === b.client_ca_pem

/** @param {HttpServer} options @param {Servers} servers @param {LimitedLog} log */
export function createListener({ address, port, internal_address, internal_port }, servers, log) {
  const { server, internal } = servers
  const host = address || '0.0.0.0'
  const endpoints = [{ server, host, port }]
  if (internal !== server)
    endpoints.push({ server: internal, host: internal_address || host, port: internal_port })
  const limit = softLimit()
  const onChange = (/** @type {boolean} */ paused) =>
    paused
      ? log.warn({ limit }, 'too few free file descriptors: not accepting new connections')
      : log.warn({ limit }, 'accepting new connections again')
  return new Listener(endpoints, { limit, onChange })
}
