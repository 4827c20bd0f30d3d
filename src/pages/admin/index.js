// The admin endpoints below admin.handler_prefix: login, stats stream, commands, server API methods, and the page
// (page/: plain files for the browser). Endpoints: docs/admin.md.
// Guarantees: a token grants the rights of the API key, and only in the Authorization header, which other sites cannot
// make a browser send; other origins get 403 before the body is read; wrong keys are counted by address across all
// workers of the node (login-guard.js).

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
/** @import { ApiContext } from '../../backends/api/context.js' */
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
 * @property {() => any} [settings] current block `admin`; default: that of the start
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

/** Maximum body of a login or a command, bytes. */
const MAX_SMALL = 4096
const MAX_BODY = 1024 * 1024

/** Error of a 403. */
const FOREIGN =
  'request from another origin: open the admin page directly; proxies must forward its Host header'

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
  // Only local users may stop the gateway; the log may contain sensitive data.
  if (type === 'stop' || type === 'log') return null
  throw new BadBody('unknown command')
}

/** Only with an admin key. @param {AdminParts} parts */
export function mountAdmin(parts) {
  const { config, server, view, context, broker, calls, version, worker, counting } = parts
  const { settings = () => config.admin, clock = Date.now, sleep = setTimeout } = parts
  const prefix = config.admin.handler_prefix
  const guard = new LoginGuard({ control: broker.control, calls, worker, counting, clock })
  const stream = new StatsStream({ view, server, clock })
  /** @type {AdminTokens | null} */
  let lastTokens = null
  /** Uses the current key and secret: a reload may change them. */
  const tokens = () => {
    const { password, secret } = settings()
    if (!lastTokens?.isFor(password, secret)) lastTokens = new AdminTokens({ password, secret })
    return lastTokens
  }

  /**
   * @param {Exchange} exchange
   * @param {number} limit bytes
   * @param {(body: string) => void | Promise<void>} work
   */
  const read = (exchange, limit, work) =>
    exchange.body(limit, async bytes => {
      if (bytes === null) return replyError(exchange, 413, `the body is longer than ${limit} bytes`)
      try {
        await work(bytes.toString())
      } catch (error) {
        if (error instanceof BadBody) return replyError(exchange, 400, 'invalid request body')
        const { status, message, code } = publicError(error, context.logger)
        replyError(exchange, status, message, {}, { code })
      }
    })

  /**
   * @param {string} method
   * @param {string} name
   * @param {(exchange: Exchange) => void} handler
   */
  const route = (method, name, handler) => {
    server.route(method, `${prefix}/api/${name}`, exchange => {
      if (isOwnPage(exchange)) handler(exchange)
      else replyError(exchange, 403, FOREIGN)
    })
    server.route('*', `${prefix}/api/${name}`, exchange =>
      replyError(exchange, 405, `method must be ${method}`, { Allow: method }),
    )
  }

  /**
   * For requests with a valid token.
   * @param {(exchange: Exchange, expires: number) => void} handler expires: unix ms
   */
  const authorized = handler => (/** @type {Exchange} */ exchange) => {
    const expires = tokens().check(bearerToken(exchange), clock())
    if (expires !== 0) handler(exchange, expires)
    else replyError(exchange, 401, 'login required', { 'WWW-Authenticate': 'Bearer realm="halley admin"' })
  }

  route('POST', 'login', exchange => {
    const address = exchange.remoteAddress()
    read(exchange, MAX_SMALL, async body => {
      const { password } = parseJson(body) ?? {}
      if (typeof password !== 'string') throw new BadBody('password must be a string')
      const right = tokens().matches(password)
      const wait = await guard.tried(address, right)
      if (wait < 0) {
        const seconds = Math.ceil(-wait / 1000)
        const text = `too many wrong keys from your address, try again in ${seconds} s`
        return replyError(exchange, 429, text, { 'Retry-After': `${seconds}` })
      }
      if (wait > 0) await sleep(wait)
      if (right) replyJson(exchange, JSON.stringify(tokens().issue(clock())))
      else replyError(exchange, 401, 'wrong key')
    })
  })
  route(
    'GET',
    'stream',
    authorized((exchange, expires) => stream.open(exchange, expires)),
  )
  route(
    'POST',
    'command',
    authorized(exchange =>
      read(exchange, MAX_SMALL, async body => {
        const command = readCommand(body)
        if (command === null) return replyError(exchange, 403, 'not allowed over HTTP')
        const answer = await view.command(command).then(
          text => ({ error: null, text }),
          (/** @type {Error} */ { message }) => ({ error: message }),
        )
        replyJson(exchange, JSON.stringify(answer))
      }),
    ),
  )
  for (const [name, { fields, run }] of methods)
    route(
      'POST',
      name,
      authorized(exchange =>
        read(exchange, MAX_BODY, async body => {
          const params = readObject(fields, parseJson(body), body)
          replyJson(exchange, `{"result":${await run(params, context)}}`)
        }),
      ),
    )
  const html = fileURLToPath(new URL('./page/index.html', import.meta.url))
  const page = serveBody(fillPage(html, { prefix, version }), '.html')
  server.route('*', prefix, page)
  server.route('*', `${prefix}/`, page)
  servePageFiles(server, `${prefix}/assets`, 'pages/admin/page')
}
