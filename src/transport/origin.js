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

/**
 * Which pages may connect (client protocol).
 * @param {string[]} allowed origins or globs; empty: only requests without an Origin header pass
 * @returns {(origin: string) => boolean} for the header's value, '' if absent
 */
export function createOriginCheck(allowed) {
  if (allowed.includes('*')) return () => true
  const lowered = allowed.map(origin => origin.toLowerCase())
  const exact = new Set(lowered)
  const globs = lowered.filter(origin => /[*?]/.test(origin))
  return origin => {
    if (origin === '') return true
    if (origin.length > MAX_LENGTH) return false
    const lower = origin.toLowerCase()
    return exact.has(lower) || globs.some(glob => matches(glob, lower))
  }
}

const ANY_CACHE = 'private, no-cache, no-store, must-revalidate, max-age=0'

/** Browsers and proxies must not cache. */
export const NO_CACHE = Object.freeze({ 'Cache-Control': ANY_CACHE, Pragma: 'no-cache', Expires: '0' })

/**
 * CORS headers (client protocol). A request of a disallowed origin is answered without them, so that the
 * browser withholds the answer from the page.
 */
export class Cors {
  #allows

  /** @param {(origin: string) => boolean} allowsOrigin */
  constructor(allowsOrigin) {
    this.#allows = allowsOrigin
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

  /**
   * Routes `POST` and `OPTIONS` of a path; every other method gets 405.
   * @param {SocketServer} server @param {string} path @param {(exchange: Exchange) => void} handler
   */
  post(server, path, handler) {
    server.route('POST', path, handler)
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
