// The admin endpoints below admin.handler_prefix: login, stats stream, commands, server API methods, and the page.
// It imports api, auth (secrets), transport (calls between workers) and server; the page (page/) is plain files for
// the browser.
// It promises: a token allows what the API key allows, and only in the Authorization header, which no other site can
// make a browser send; pages of other origins get 403 before their body is read; wrong keys are counted by address,
// over all workers of the node (login-guard.js). Endpoints: docs/admin.md.

import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { publicError } from '../../backends/api/answers.js'
import { BadBody, parseJson, readObject } from '../../backends/api/params.js'
import { fillPage, serveBody } from '../../clients/server/static-files.js'
import { isOwnPage } from '../../clients/transport/origin.js'
import { servePageFiles } from '../files.js'
import { replyError, replyJson } from './answers.js'
import { LoginGuard } from './login-guard.js'
import { methods } from './methods.js'
import { StatsStream } from './stats-stream.js'
import { AdminTokens } from './tokens.js'

/** @import { Config } from '../../config/options.js' */
/** @import { ApiContext, Method } from '../../backends/api/context.js' */
/** @import { Broker } from '../../channels/broker/contract.js' */
/** @import { Exchange, SocketServer } from '../../clients/server/contract.js' */
/** @import { StatsCommand, StatsMessage } from '../../metrics/schema.js' */
/** @import { Calls } from '../../clients/transport/calls.js' */

/**
 * @typedef {object} StatsView a worker's view of its node's statistics
 * @property {(listener: (message: StatsMessage) => void) => () => void} watch `hello` first, then a message a
 *   second, until the returned function is called
 * @property {(command: StatsCommand) => Promise<string | undefined>} command rejects with the reason
 * @typedef {object} AdminParts
 * @property {Config} config at the start
 * @property {() => any} [settings] its block `admin`, as it is now; default: as at the start
 * @property {SocketServer} server not listening yet
 * @property {StatsView} view
 * @property {ApiContext} context of the server API
 * @property {Broker} broker
 * @property {Calls} calls
 * @property {string} version of the gateway
 * @property {number} worker number of this worker
 * @property {() => number} counting number of the worker that counts logins for its node
 * @property {() => number} [clock] unix ms
 * @property {(ms: number) => Promise<unknown>} [sleep]
 */

/** Largest body of a login or a command, bytes. */
const MAX_SMALL = 4096
const MAX_BODY = 1024 * 1024

/** Error of a 403. */
const FOREIGN =
  'from a page of another address: open the admin page itself, and let proxies pass its Host header'

/** @param {Exchange} exchange @returns {string} '' if there is none */
const bearerToken = exchange => /^bearer +([^ ]+) *$/i.exec(exchange.header('authorization'))?.[1] ?? ''

/** @param {any} value */
const isIndex = value => Number.isInteger(value) && value >= 0

/** @param {string} body @returns {StatsCommand | null} null: not allowed over HTTP @throws {BadBody} */
export function readCommand(body) {
  const { type, worker } = parseJson(body) ?? {}
  if (type === 'gc' && (worker === undefined || worker === null || isIndex(worker)))
    return { type, worker: worker ?? null }
  if (type === 'restart' && (worker === null || isIndex(worker))) return { type, worker }
  if (type === 'reload') return { type }
  // Only a local user may stop the gateway; the log may hold more than figures.
  if (type === 'stop' || type === 'log') return null
  throw new BadBody('unknown command')
}

class Admin {
  #view
  #context
  #clock
  #sleep
  #settings
  /** @type {AdminTokens | null} */
  #lastTokens = null
  #guard
  #stream

  /** @param {AdminParts & {settings: () => Config['admin'], clock: () => number, sleep: (ms: number) => Promise<unknown>}} parts */
  constructor({ settings, server, view, context, broker, calls, worker, counting, clock, sleep }) {
    this.#view = view
    this.#context = context
    this.#clock = clock
    this.#sleep = sleep
    this.#settings = settings
    this.#guard = new LoginGuard({ control: broker.control, calls, worker, counting, clock })
    this.#stream = new StatsStream({ view, server, clock })
  }

  /** Those of the current key and secret: a reload may change them. */
  get #tokens() {
    const { password, secret } = this.#settings()
    if (!this.#lastTokens?.isFor(password, secret)) this.#lastTokens = new AdminTokens({ password, secret })
    return this.#lastTokens
  }

  /** @param {Exchange} exchange @returns {number} expiry of its token, unix ms; 0: it was refused */
  #authorize(exchange) {
    const expires = this.#tokens.check(bearerToken(exchange), this.#clock())
    if (expires === 0) {
      replyError(exchange, 401, 'log in first', { 'WWW-Authenticate': 'Bearer realm="halley admin"' })
    }
    return expires
  }

  /** @param {Exchange} exchange @param {number} limit bytes @param {(body: string) => void | Promise<void>} work */
  #read(exchange, limit, work) {
    exchange.body(limit, async bytes => {
      if (bytes === null) return replyError(exchange, 413, `the body is longer than ${limit} bytes`)
      const body = bytes.toString()
      try {
        await work(body)
      } catch (error) {
        if (error instanceof BadBody) return replyError(exchange, 400, 'the body is not what this takes')
        const { status, message, code } = publicError(error, this.#context.logger)
        replyError(exchange, status, message, {}, { code })
      }
    })
  }

  /** @param {Exchange} exchange */
  login(exchange) {
    const address = exchange.remoteAddress()
    this.#read(exchange, MAX_SMALL, async body => {
      const { password } = parseJson(body) ?? {}
      if (typeof password !== 'string') throw new BadBody('password must be a string')
      const right = this.#tokens.matches(password)
      const wait = await this.#guard.tried(address, right)
      if (wait < 0) {
        const seconds = Math.ceil(-wait / 1000)
        replyError(exchange, 429, `too many wrong keys from your address, try again in ${seconds} s`, {
          'Retry-After': `${seconds}`,
        })
        return
      }
      if (wait > 0) await this.#sleep(wait)
      if (right) replyJson(exchange, JSON.stringify(this.#tokens.issue(this.#clock())))
      else replyError(exchange, 401, 'wrong key')
    })
  }

  /** @param {Exchange} exchange */
  stream(exchange) {
    const expires = this.#authorize(exchange)
    if (expires !== 0) this.#stream.open(exchange, expires)
  }

  /** @param {Exchange} exchange */
  command(exchange) {
    if (this.#authorize(exchange) === 0) return
    this.#read(exchange, MAX_SMALL, async body => {
      const command = readCommand(body)
      if (command === null) return replyError(exchange, 403, 'not from elsewhere')
      const answer = await this.#view.command(command).then(
        text => ({ error: null, text }),
        (/** @type {Error} */ { message }) => ({ error: message }),
      )
      replyJson(exchange, JSON.stringify(answer))
    })
  }

  /** @param {Method} method @returns {(exchange: Exchange) => void} */
  method({ fields, run }) {
    return exchange => {
      if (this.#authorize(exchange) === 0) return
      this.#read(exchange, MAX_BODY, async body => {
        const params = readObject(fields, parseJson(body), body)
        replyJson(exchange, `{"result":${await run(params, this.#context)}}`)
      })
    }
  }
}

/** Only with an admin key. @param {AdminParts} parts */
export function mountAdmin({ clock = Date.now, sleep = setTimeout, ...parts }) {
  const { config, server, version, settings = () => config.admin } = parts
  const prefix = config.admin.handler_prefix
  const admin = new Admin({ ...parts, settings, clock, sleep })
  /** @param {string} method @param {string} name @param {(exchange: Exchange) => void} handler */
  const route = (method, name, handler) => {
    server.route(method, `${prefix}/api/${name}`, exchange => {
      if (isOwnPage(exchange)) handler(exchange)
      else replyError(exchange, 403, FOREIGN)
    })
    server.route('*', `${prefix}/api/${name}`, exchange =>
      replyError(exchange, 405, `${method} only`, { Allow: method }),
    )
  }
  route('POST', 'login', exchange => admin.login(exchange))
  route('GET', 'stream', exchange => admin.stream(exchange))
  route('POST', 'command', exchange => admin.command(exchange))
  for (const [name, method] of methods) route('POST', name, admin.method(method))
  const html = fileURLToPath(new URL('./page/index.html', import.meta.url))
  const page = serveBody(fillPage(html, { prefix, version }), '.html')
  server.route('*', prefix, page)
  server.route('*', `${prefix}/`, page)
  servePageFiles(server, `${prefix}/assets`, 'pages/admin/page')
}
