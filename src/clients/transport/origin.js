import { UpgradeRefusal } from '../server/contract.js'

/** @import { Refusals } from '../../metrics/refusals.js' */
/** @import { Exchange, SocketServer } from '../server/contract.js' */

/** Scheme, host name (at most 253 characters) and port fit. A longer header is refused without a comparison. */
const MAX_LENGTH = 512

/**
 * Matches a glob without a RegExp: one that backtracks could block a worker for hours with a few stars and a long
 * header. Only the last star moves, so the time is at most the product of both lengths.
 * @param {string} glob `*` is any run of characters, `?` is any one
 * @param {string} text
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

/** An entry of `client.allowed_origins`: pages of this machine. */
const LOOPBACK = 'loopback'
/**
 * Their origins: `localhost` and the names below it, 127.0.0.0/8 and [::1], with any port. A glob would not do:
 * `http://127.*` matches a host name like 127.example.com.
 */
const LOOPBACK_ORIGIN =
  /^https?:\/\/(?:(?:[a-z0-9_-]{1,63}\.){0,20}localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/

/**
 * Which pages may connect (client protocol).
 * @param {readonly string[]} allowed origins, globs or `loopback`; empty: only requests without an Origin header pass
 * @returns {(origin: string) => boolean} for the header's value, '' if absent
 */
export function createOriginCheck(allowed) {
  if (allowed.includes('*')) return () => true
  const lowered = allowed.map(origin => origin.toLowerCase())
  const exact = new Set(lowered)
  const loopback = exact.delete(LOOPBACK)
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
 * The origin of the page behind a request. A browser omits it from a GET for an image, a script or a link, but tells
 * that the page is another one (https://www.w3.org/TR/fetch-metadata/); such a request counts as one of origin `null`.
 * @param {Exchange} exchange whose handler has not returned yet
 * @returns {string} '' without a page, or for one of the gateway's own
 */
function originOf(exchange) {
  const origin = exchange.header('origin')
  if (origin !== '' || exchange.method !== 'GET') return origin
  const site = exchange.header('sec-fetch-site')
  return site === 'cross-site' || site === 'same-site' ? 'null' : ''
}

/**
 * For pages that the gateway serves itself. Behind a proxy that changes `Host`, the browser's own statement counts,
 * which it makes over TLS and for localhost.
 * @param {Exchange} exchange whose handler has not returned yet
 * @returns {boolean} whether it comes from a page of the address that it was sent to, or from no page
 */
export function isOwnPage(exchange) {
  const origin = originOf(exchange)
  if (origin === '' || exchange.header('sec-fetch-site') === 'same-origin') return true
  if (origin.length > MAX_LENGTH || !URL.canParse(origin)) return false
  const { protocol, host } = new URL(origin)
  const own = `${protocol}//${exchange.header('host')}`
  // As an URL, because a proxy may add the default port.
  return URL.canParse(own) && new URL(own).host === host
}

const ANY_CACHE = 'private, no-cache, no-store, must-revalidate, max-age=0'

/** Browsers and proxies must not cache. */
export const NO_CACHE = Object.freeze({ 'Cache-Control': ANY_CACHE, Pragma: 'no-cache', Expires: '0' })

/** Characters of an origin in the log and in an answer. */
const MAX_SHOWN = 200
/** The option that allows origins. */
const OPTION = 'client.allowed_origins'
/** The origin is quoted in the answer: a browser must not take it for HTML. */
const REFUSED = Object.freeze({
  ...NO_CACHE,
  'Content-Type': 'text/plain; charset=utf-8',
  'X-Content-Type-Options': 'nosniff',
})

/** @param {Exchange} exchange whose handler has not returned yet @returns {string} body of a 403 */
export function notAllowed(exchange) {
  const origin = originOf(exchange).slice(0, MAX_SHOWN)
  return `the origin of the page, ${JSON.stringify(origin)}, is not in ${OPTION}`
}

/**
 * CORS (client protocol). A request of a page with a disallowed origin gets 403 before its body is read: withholding
 * the answer from the page would be too late, because the commands in the request have run as the user of its browser.
 * A preflight is answered without the headers.
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
   * @param {Exchange} exchange whose handler has not returned yet
   * @param {Record<string, string>} [headers] other headers of the answer
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

  /**
   * @param {Exchange} exchange whose handler has not returned yet
   * @param {string} methods allowed for pages of other origins
   * @returns {Record<string, string>} headers of the answer to `OPTIONS`
   */
  preflight(exchange, methods) {
    return this.headers(exchange, {
      'Access-Control-Allow-Methods': methods,
      'Access-Control-Max-Age': '300',
    })
  }

  /** @param {Exchange} exchange whose handler has not returned yet @returns {boolean} false: refused, and counted */
  admits(exchange) {
    const origin = originOf(exchange)
    if (this.#allows(origin)) return true
    this.#refusals.add('origin', exchange, { origin: origin.slice(0, MAX_SHOWN), option: OPTION })
    return false
  }

  /** @param {Exchange} exchange whose handler has not returned yet @returns {UpgradeRefusal} for a WebSocket */
  refusal(exchange) {
    return new UpgradeRefusal(403, REFUSED, notAllowed(exchange))
  }

  /**
   * Routes a method of a path; a request of a disallowed origin gets 403.
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
   * Routes `POST` and `OPTIONS` of a path; every other method gets 405.
   * @param {SocketServer} server @param {string} path @param {(exchange: Exchange) => void} handler
   */
  post(server, path, handler) {
    this.route(server, 'POST', path, handler)
    server.route('OPTIONS', path, exchange =>
      exchange.reply(204, this.preflight(exchange, 'POST, OPTIONS'), ''),
    )
    this.refuse(server, path, 'POST, OPTIONS')
  }

  /**
   * Answers 405 to all methods of a path without a route.
   * @param {SocketServer} server @param {string} path @param {string} methods with one
   */
  refuse(server, path, methods) {
    server.route('*', path, exchange =>
      exchange.reply(405, this.headers(exchange, { Allow: methods }), 'Method Not Allowed'),
    )
  }
}
