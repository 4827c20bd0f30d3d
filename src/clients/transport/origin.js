import { UpgradeRefusal } from '../server/contract.js'

/** @import { Refusals } from '../../metrics/refusals.js' */
/** @import { Exchange, SocketServer } from '../server/contract.js' */

/** Maximum length of an Origin header: fits scheme, host name of 253 characters, and port. */
const MAX_LENGTH = 512

/**
 * Matches a glob without a RegExp: backtracking could block a worker. Only the last star moves: the time is at most
 * the product of both lengths.
 * @param {string} glob `*` is any run of characters, `?` any character @param {string} text
 */
function matches(glob, text) {
  let at = 0
  let star = -1
  let resume = 0
  for (let i = 0; i < text.length; ) {
    if (glob[at] === '*') {
      star = at++
      resume = i
    } else if (glob[at] === '?' || glob[at] === text[i]) {
      at++
      i++
    } else if (star !== -1) {
      at = star + 1
      i = ++resume
    } else return false
  }
  while (glob[at] === '*') at++
  return at === glob.length
}

/** `localhost`, its subdomains, 127.0.0.0/8 and [::1]. The glob `http://127.*` would match 127.example.com. */
const LOOPBACK_ORIGIN =
  /^https?:\/\/(?:(?:[a-z0-9_-]{1,63}\.){0,20}localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/

/**
 * @param {readonly string[]} allowed origins, globs or `loopback`; empty: only requests without an Origin header pass
 * @returns {(origin: string) => boolean} for the header's value, '' if absent
 */
export function createOriginCheck(allowed) {
  if (allowed.includes('*')) return () => true
  const lowered = allowed.map(origin => origin.toLowerCase())
  const exact = new Set(lowered)
  const loopback = exact.delete('loopback')
  const globs = lowered.filter(origin => /[*?]/.test(origin))
  return origin => {
    if (origin === '') return true
    if (origin.length > MAX_LENGTH) return false
    const lower = origin.toLowerCase()
    return (
      exact.has(lower) ||
      (loopback && LOOPBACK_ORIGIN.test(lower)) ||
      globs.some(glob => matches(glob, lower))
    )
  }
}

/**
 * Origin of a request's page. Browsers omit it from a GET for an image, a script or a link, but indicate another site
 * (https://www.w3.org/TR/fetch-metadata/): such a request has origin `null`.
 * @param {Exchange} exchange before its handler returns
 * @returns {string} '' without a page, or for the gateway's pages
 */
function originOf(exchange) {
  const origin = exchange.header('origin')
  if (origin !== '' || exchange.method !== 'GET') return origin
  const site = exchange.header('sec-fetch-site')
  return site === 'cross-site' || site === 'same-site' ? 'null' : ''
}

/**
 * Behind a proxy that changes `Host`, uses `Sec-Fetch-Site`, which browsers send over TLS and to localhost.
 * @param {Exchange} exchange before its handler returns
 * @returns {boolean} whether the page has the request's origin, or there is no page
 */
export function isOwnPage(exchange) {
  const origin = originOf(exchange)
  if (origin === '' || exchange.header('sec-fetch-site') === 'same-origin') return true
  if (origin.length > MAX_LENGTH || !URL.canParse(origin)) return false
  const { protocol, host } = new URL(origin)
  const own = `${protocol}//${exchange.header('host')}`
  // A proxy may add the default port.
  return URL.canParse(own) && new URL(own).host === host
}

export const NO_CACHE = Object.freeze({
  'Cache-Control': 'private, no-cache, no-store, must-revalidate, max-age=0',
  Pragma: 'no-cache',
  Expires: '0',
})

/** Maximum characters of an origin in logs and responses. */
const MAX_SHOWN = 200
const OPTION = 'client.allowed_origins'
/** The response quotes the origin: it must not be parsed as HTML. */
const REFUSED = Object.freeze({
  ...NO_CACHE,
  'Content-Type': 'text/plain; charset=utf-8',
  'X-Content-Type-Options': 'nosniff',
})

/** @param {Exchange} exchange before its handler returns @returns {string} body of a 403 */
export function notAllowed(exchange) {
  const origin = originOf(exchange).slice(0, MAX_SHOWN)
  return `the origin of the page, ${JSON.stringify(origin)}, is not in ${OPTION}`
}

/**
 * CORS (client protocol). A request from a disallowed origin gets 403 before its body is read: its commands would run
 * as the browser's user. Its preflight gets no CORS headers.
 */
export class Cors {
  #allows
  #refusals

  /** @param {(origin: string) => boolean} allowsOrigin @param {Pick<Refusals, 'add'>} refusals */
  constructor(allowsOrigin, refusals) {
    this.#allows = allowsOrigin
    this.#refusals = refusals
  }

  /**
   * @param {Exchange} exchange before its handler returns @param {Record<string, string>} [headers] others
   * @returns {Record<string, string>}
   */
  headers(exchange, headers = {}) {
    const origin = exchange.header('origin')
    if (origin === '' || !this.#allows(origin)) return headers
    const requested = exchange.header('access-control-request-headers')
    return {
      ...headers,
      'Access-Control-Allow-Origin': origin,
      'Access-Control-Allow-Credentials': 'true',
      ...(requested === '' ? null : { 'Access-Control-Allow-Headers': requested }),
      Vary: 'Origin',
    }
  }

  /** @param {Exchange} exchange before its handler returns @param {string} methods of the path */
  preflight(exchange, methods) {
    return this.headers(exchange, {
      'Access-Control-Allow-Methods': methods,
      'Access-Control-Max-Age': '300',
    })
  }

  /** @param {Exchange} exchange before its handler returns @returns {boolean} false: refused, and counted */
  admits(exchange) {
    const origin = originOf(exchange)
    if (this.#allows(origin)) return true
    this.#refusals.add('origin', exchange, { origin: origin.slice(0, MAX_SHOWN), option: OPTION })
    return false
  }

  /** @param {Exchange} exchange before its handler returns @returns {UpgradeRefusal} for a WebSocket */
  refusal(exchange) {
    return new UpgradeRefusal(403, REFUSED, notAllowed(exchange))
  }

  /**
   * @param {SocketServer} server @param {string} method @param {string} path
   * @param {(exchange: Exchange) => void} handler
   */
  route(server, method, path, handler) {
    server.route(method, path, exchange => {
      if (this.admits(exchange)) handler(exchange)
      else exchange.reply(403, REFUSED, notAllowed(exchange))
    })
  }

  /**
   * Routes `POST` and `OPTIONS` of a path; other methods get 405.
   * @param {SocketServer} server @param {string} path @param {(exchange: Exchange) => void} handler
   */
  post(server, path, handler) {
    this.route(server, 'POST', path, handler)
    server.route('OPTIONS', path, exchange =>
      exchange.reply(204, this.preflight(exchange, 'POST, OPTIONS'), ''),
    )
    this.refuse(server, path, 'POST, OPTIONS')
  }

  /** Sends 405 to all other methods. @param {SocketServer} server @param {string} path @param {string} methods */
  refuse(server, path, methods) {
    server.route('*', path, exchange =>
      exchange.reply(405, this.headers(exchange, { Allow: methods }), 'Method Not Allowed'),
    )
  }
}
