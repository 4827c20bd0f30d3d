// Calls of HTTP proxies: one POST with JSON for each event.

import { createRequire } from 'node:module'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { packageVersion } from '../../base/version.js'
import { CallFailed } from '../../clients/hooks/contract.js'
import { tlsOptions } from '../../config/pem.js'
import { decodeAnswer, encodeRequest } from './proxy-json.js'

/** @import { ProxyOptions } from '../../config/options.js' */
/** @import { Agent, Dispatcher } from 'undici' */
/** @import { CancelToken } from '../../clients/hooks/events.js' */
/** @import { ProxyAnswer } from './proxy-answers.js' */
/** @import { ProxyCall, ProxyTransport } from './proxies.js' */

const require = createRequire(import.meta.url)
const unpack = promisify(gunzip)

/** Idle connections are closed after this time, or a second before the time that the backend names, ms. */
const KEEP_ALIVE_MS = 4000
const MAX_REDIRECTS = 3
/** A redirect with another status turns the POST into a GET: it is a failure. */
const REDIRECTS = new Set([307, 308])
/** Of a gateway in front of the backend: it is down. */
const DOWN = new Set([502, 503, 504])

/** The headers that HTTP calls have unless the configuration or the client sends others. */
const DEFAULTS = Object.freeze({ 'user-agent': `Halley/${packageVersion()}` })

/** @param {ReadonlyMap<string, readonly string[]>} headers @returns {string[]} name, value, name, value ... */
function linesOf(headers) {
  const lines = ['content-type', 'application/json', 'accept-encoding', 'gzip']
  for (const name of Object.keys(DEFAULTS)) {
    if (!headers.has(name)) lines.push(name, DEFAULTS[/** @type {keyof typeof DEFAULTS} */ (name)])
  }
  for (const [name, values] of headers) for (const value of values) lines.push(name, value)
  return lines
}

/** @implements {ProxyTransport} */
export class HttpTransport {
  protocol = 'http'
  #origin
  #path
  #limit
  #transforms
  /** @type {Agent} */
  #agent
  /** Lines of the headers of most calls: proxies that forward no headers of clients always pass the same map. */
  #last = { headers: new Map(), lines: /** @type {string[]} */ ([]) }

  /** @param {ProxyOptions} options of the proxy @throws {Error} naming a key of its TLS block */
  constructor({ endpoint, timeout, http, max_response_size }) {
    // Loaded on first use: gateways without proxies save 10 MB a worker.
    const { Agent } = /** @type {typeof import('undici')} */ (require('undici'))
    const { origin, pathname, search } = new URL(endpoint)
    this.#origin = origin
    this.#path = pathname + search
    this.#limit = max_response_size
    this.#transforms = http.status_to_code_transforms
    this.#agent = new Agent({
      connections: http.max_connections,
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      // The token of a call ends its wait.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: { timeout: timeout || 1000, ...(http.tls.enabled ? tlsOptions(http.tls) : {}) },
    })
  }

  /**
   * @param {string} event @param {Record<string, any>} fields @param {ProxyCall} call
   * @returns {Promise<ProxyAnswer>}
   */
  async call(event, fields, { headers, token }) {
    const body = encodeRequest(fields)
    if (this.#last.headers !== headers)
      this.#last = { headers: /** @type {any} */ (headers), lines: linesOf(headers) }
    const { lines } = this.#last
    let { origin, path } = { origin: this.#origin, path: this.#path }
    for (let redirects = 0; ; redirects++) {
      const response = await this.#post(origin, path, body, lines, token)
      const { status } = response
      if (status === 200) return decodeAnswer(event, await this.#unpack(response))
      const transform = this.#transforms.find((/** @type {any} */ { status_code }) => status_code === status)
      if (transform !== undefined) return transformed(transform)
      const target = REDIRECTS.has(status) ? redirectOf(response.header('location'), origin + path) : null
      if (target === null || redirects === MAX_REDIRECTS)
        throw new CallFailed(`status ${status}`, DOWN.has(status) ? 'unavailable' : 'status')
      origin = target.origin
      path = target.pathname + target.search
    }
  }

  /**
   * @param {string} origin @param {string} path @param {string} body @param {string[]} lines @param {CancelToken} token
   * @returns {Promise<Response>}
   */
  #post(origin, path, body, lines, token) {
    return new Promise((resolve, reject) => {
      const response = new Response(this.#limit, token, resolve, reject)
      this.#agent.dispatch({ origin, path, method: 'POST', headers: lines, body }, response)
    })
  }

  /** @param {Response} response @returns {Buffer | Promise<Buffer>} */
  #unpack(response) {
    const bytes = response.body
    if (response.header('content-encoding').toLowerCase() !== 'gzip') return bytes
    return unpack(bytes, { maxOutputLength: this.#limit }).catch(error => {
      throw error.code === 'ERR_BUFFER_TOO_LARGE'
        ? tooLarge()
        : new CallFailed('the answer is not valid gzip', 'answer')
    })
  }

  /** Calls under way end first. */
  async close() {
    await this.#agent.close()
  }
}

const tooLarge = () => new CallFailed('the answer is larger than max_response_size', 'size')

/** @param {any} error of undici @returns {CallFailed} */
function failureOf(error) {
  // Several addresses of a host were tried.
  const { code, message } = error.errors?.[0] ?? error
  return new CallFailed(!code || message.includes(code) ? message : `${message} (${code})`, 'unreachable')
}

/**
 * The response to one request: a handler of undici's dispatch(), which costs half of its request().
 * @implements {Dispatcher.DispatchHandlers}
 */
class Response {
  status = 0
  #limit
  #token
  #resolve
  #reject
  /** @type {Buffer[]} name, value, name, value ... */
  #headers = []
  /** @type {Buffer[]} */
  #chunks = []
  #size = 0
  #over = false
  /** @type {((error?: Error) => void) | null} of the request; null: it waits for a connection */
  #abort = null

  /**
   * @param {number} limit bytes @param {CancelToken} token @param {(response: Response) => void} resolve
   * @param {(error: Error) => void} reject
   */
  constructor(limit, token, resolve, reject) {
    this.#limit = limit
    this.#token = token
    this.#resolve = resolve
    this.#reject = reject
    token.onCancel = () => this.#fail(/** @type {Error} */ (token.reason))
    if (token.cancelled) token.onCancel()
  }

  /** @returns {Buffer} as it came */
  get body() {
    return this.#chunks.length === 1 ? this.#chunks[0] : Buffer.concat(this.#chunks)
  }

  /** @param {string} name in lower case @returns {string} '' = none */
  header(name) {
    for (let at = 0; at < this.#headers.length; at += 2)
      if (this.#headers[at].toString('latin1').toLowerCase() === name)
        return this.#headers[at + 1].toString('latin1')
    return ''
  }

  /** @param {(error?: Error) => void} abort @throws {Error} nobody waits any more: `abort` would cost the connection */
  onConnect(abort) {
    if (this.#over) throw new Error('aborted')
    this.#abort = abort
  }

  /** @param {number} status @param {Buffer[]} headers */
  onHeaders(status, headers) {
    this.status = status
    this.#headers = headers
    return true
  }

  /** @param {Buffer} chunk */
  onData(chunk) {
    this.#size += chunk.length
    if (this.#size <= this.#limit) {
      if (this.status === 200) this.#chunks.push(chunk)
    } else if (this.status === 200) this.#fail(tooLarge())
    else {
      // The status alone counts.
      this.onComplete()
      this.#abort?.()
    }
    return true
  }

  onComplete() {
    if (this.#over) return
    this.#end()
    this.#resolve(this)
  }

  /** @param {Error} error */
  onError(error) {
    this.#fail(failureOf(error))
  }

  /** @param {Error} error */
  #fail(error) {
    if (this.#over) return
    this.#end()
    this.#reject(error)
    this.#abort?.(error)
  }

  #end() {
    this.#over = true
    this.#token.onCancel = null
  }
}

/**
 * @param {string} location header @param {string} from URL
 * @returns {URL | null} null: not to another host, and not from https to http: the request may hold secrets
 */
function redirectOf(location, from) {
  if (location === '' || !URL.canParse(location, from)) return null
  const target = new URL(location, from)
  const source = new URL(from)
  if (target.origin === source.origin) return target
  return target.hostname === source.hostname && target.protocol === 'https:' ? target : null
}

/** @param {ProxyOptions['http']['status_to_code_transforms'][number]} transform @returns {ProxyAnswer} as if the backend had sent it */
function transformed({ to_error: error, to_disconnect: disconnect }) {
  if (disconnect.code > 0) return { result: null, error: null, disconnect }
  return { result: null, error, disconnect: null }
}
