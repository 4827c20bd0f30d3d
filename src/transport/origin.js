/** Scheme, a host name of at most 253 letters, port. A longer header is no origin, and costs no comparison. */
const MAX_LENGTH = 512

/**
 * Not a RegExp: it backtracks, and a few stars and one long header would keep a worker busy for hours. Here only the
 * last star moves on, so the time is at most the product of both lengths.
 *
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
 * Which pages may connect (client protocol, section 18).
 * @param {string[]} allowed origins or globs; empty: only requests without an Origin header pass
 * @returns {(origin: string) => boolean} takes the header's value, '' if absent
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

/** Nobody keeps an answer: not a browser, not a proxy. */
export const NO_CACHE = Object.freeze({ 'Cache-Control': ANY_CACHE, Pragma: 'no-cache', Expires: '0' })

/**
 * What pages of other origins may read (client protocol, section 18). An origin that is not allowed is not refused: it
 * gets no CORS headers, and its browser keeps the answer from it.
 */
export class Cors {
  #allows

  /** @param {(origin: string) => boolean} allowsOrigin */
  constructor(allowsOrigin) {
    this.#allows = allowsOrigin
  }

  /**
   * @param {import('../server/contract.js').Exchange} exchange whose handler has not returned yet
   * @param {Record<string, string>} [headers] that the answer carries anyway
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
   * @param {import('../server/contract.js').Exchange} exchange whose handler has not returned yet
   * @param {string} methods that pages of other origins may use
   * @returns {Record<string, string>} headers of the answer to `OPTIONS`
   */
  preflight(exchange, methods) {
    return this.headers(exchange, {
      'Access-Control-Allow-Methods': methods,
      'Access-Control-Max-Age': '300',
    })
  }

  /**
   * Takes `POST` on a path, and `OPTIONS`; every other method gets 405.
   * @param {import('../server/contract.js').SocketServer} server
   * @param {string} path
   * @param {(exchange: import('../server/contract.js').Exchange) => void} handler
   */
  post(server, path, handler) {
    server.route('POST', path, handler)
    server.route('OPTIONS', path, exchange =>
      exchange.reply(204, this.preflight(exchange, 'POST, OPTIONS'), ''),
    )
    server.route('*', path, exchange =>
      exchange.reply(405, this.headers(exchange, { Allow: 'POST, OPTIONS' }), 'Method Not Allowed'),
    )
  }
}
