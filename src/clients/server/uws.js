import { setAlignedInterval } from '../../base/timers.js'
import { Backlog } from './contract.js'
import { Routes } from './routes.js'
import { asBytes } from './text.js'
import { createSecureApp } from './tls.js'
import { UnreadChecks, UwsExchange } from './uws-exchange.js'
import { UwsStreams } from './uws-streams.js'
import { UwsWebSockets } from './uws-websockets.js'

/** @import { HttpRequest, HttpResponse } from 'uWebSockets.js' */
/** @import { Exchange, SocketServer, WebSocketRoute } from './contract.js' */
/** @import { ServerTls } from './tls.js' */

/** Listening sockets: one backlog of 512 is too small for a burst of connects. */
const LISTENERS = 8
const SWEEP_INTERVAL = 1000
/** Turns up to this length, ms, leave few connections queued. */
const QUIET_TURN = 0.2
/** Maximum wait for such a turn, ms. */
const MAX_CLOSE_DELAY = 100

const UWS_METHODS = /** @type {const} */ ({
  GET: 'get',
  POST: 'post',
  OPTIONS: 'options',
  DELETE: 'del',
  PATCH: 'patch',
  PUT: 'put',
  HEAD: 'head',
  CONNECT: 'connect',
  TRACE: 'trace',
})

/** @implements {SocketServer} */
export class UwsServer extends UwsWebSockets {
  name = /** @type {const} */ ('uws')
  fallback = ''
  #uws
  #app
  #host
  #routes = new Routes()
  #registered = false
  /** @type {any[]} */
  #listeners = []
  /** @type {(() => void) | undefined} */
  #stopSweeps

  /**
   * @param {typeof import('uWebSockets.js')} uws
   * @param {{logger?: {error: (details: object, message: string) => void}, tls?: ServerTls | null}} [options]
   */
  constructor(uws, { logger, tls = null } = {}) {
    const app = tls === null ? uws.App() : createSecureApp(uws, tls)
    /** @type {import('./uws-exchange.js').Host} */
    const host = {
      log: error => logger?.error({ err: error }, 'HTTP handler failed'),
      streams: new UwsStreams(),
      checks: new UnreadChecks(),
      closing: false,
      unanswered: 0,
    }
    super(uws, app, host)
    this.#uws = uws
    this.#app = app
    this.#host = host
  }

  /** @param {string} method @param {string} path @param {(exchange: Exchange) => void} handler */
  route(method, path, handler) {
    this.#routes.add(method, path, handler)
  }

  /** @param {string} path @param {WebSocketRoute} route */
  websocket(path, route) {
    super.websocket(path, route)
    this.#routes.fallback(path, exchange => exchange.reply(400, null, 'Bad Request'))
  }

  /** @param {string} host @param {number} port */
  async listen(host, port) {
    if (!this.#registered) this.#register()
    this.#registered = true
    for (let i = 0; i < LISTENERS; i++) {
      const before = this.#listeners.length
      const listening = (/** @type {any} */ token) => {
        if (token !== false) this.#listeners.push(token)
      }
      // The library reads an empty host (all addresses) as the port.
      if (host === '') this.#app.listen(port, listening)
      else this.#app.listen(asBytes(host), port, listening)
      if (i === 0 && this.#listeners.length === before) {
        throw new Error(`cannot listen on ${host}:${port}: the address is in use or not available`)
      }
    }
    this.#stopSweeps ??= setAlignedInterval(() => {
      this.sweep()
      this.#host.streams.sweep()
    }, SWEEP_INTERVAL)
  }

  /** Only validates: the library loads certificates once. @param {ServerTls} tls */
  prepareTls(tls) {
    createSecureApp(this.#uws, tls)
    return () => {}
  }

  /** @param {any} client */
  remoteAddress(client) {
    return client.place === undefined ? this.#host.streams.remoteAddress(client) : super.remoteAddress(client)
  }

  /** @param {any} stream @param {string | Uint8Array} data */
  write(stream, data) {
    this.#host.streams.write(stream, data)
  }

  /** @param {any} stream */
  flush(stream) {
    this.#host.streams.flush(stream)
  }

  /** @param {any} stream @param {string | Uint8Array} data */
  end(stream, data) {
    this.#host.streams.end(stream, data)
  }

  /** @param {any} stream */
  unread(stream) {
    return this.#host.streams.unread(stream)
  }

  /** @param {any} stream */
  cut(stream) {
    this.#host.streams.cut(stream)
  }

  backlog() {
    const backlog = Object.assign(new Backlog(), super.backlog())
    this.#host.streams.addTo(backlog)
    return backlog
  }

  get unanswered() {
    return this.#host.unanswered
  }

  stopListening() {
    for (const token of this.#listeners.splice(0)) this.#uws.us_listen_socket_close(token)
  }

  drain() {
    if (this.#host.closing) return
    this.#host.closing = true
    const last = performance.now() + MAX_CLOSE_DELAY
    let turn = Number.NEGATIVE_INFINITY
    // Closing a listening socket resets queued connections. Each turn accepts them first: wait for a short turn.
    const close = () => {
      const now = performance.now()
      const quiet = now - turn <= QUIET_TURN
      turn = now
      if (quiet || now >= last) this.stopListening()
      else setImmediate(close)
    }
    setImmediate(close)
  }

  shutdown() {
    this.#listeners = []
    this.#stopSweeps?.()
    this.#app.close()
  }

  #register() {
    this.#routes.fallback('/*', exchange => exchange.reply(404, null, 'Not Found'))
    for (const [path, methods] of this.#routes.entries()) {
      const fixed = path.endsWith('*') ? '' : path
      const other = methods.get('*')
      // Also '*' for each method: the library tries all its paths before `any`, so GET '/*' would win over '*' '/api'.
      for (const [method, native] of Object.entries(UWS_METHODS)) {
        const handler = methods.get(method) ?? other
        if (handler === undefined) continue
        this.#app[native](asBytes(path), (res, req) =>
          this.#answer(res, req, method, fixed || req.getUrl(), handler),
        )
      }
      if (other === undefined) continue
      this.#app.any(asBytes(path), (res, req) =>
        this.#answer(res, req, req.getCaseSensitiveMethod().toUpperCase(), fixed || req.getUrl(), other),
      )
    }
  }

  /**
   * @param {HttpResponse} res @param {HttpRequest} req
   * @param {string} method @param {string} path @param {(exchange: Exchange) => void} handler
   */
  #answer(res, req, method, path, handler) {
    const exchange = new UwsExchange(res, req, method, path, this.#host)
    try {
      handler(exchange)
    } catch (error) {
      exchange.fail(error)
    }
    exchange.handlerReturned()
  }
}
