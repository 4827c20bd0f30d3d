// Calls of HTTP proxies: one POST with JSON for each event.

import { createRequire } from 'node:module'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { tlsOptions } from '../config/pem.js'
import { packageVersion } from '../version.js'
import { CallFailed } from './contract.js'
import { decodeAnswer, encodeRequest } from './proxy-json.js'

/** @import { Agent, Dispatcher } from 'undici' */
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

  /** @param {Readonly<Record<string, any>>} options of the proxy @throws {Error} naming a key of its TLS block */
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
      // The signal of a call ends its wait.
      headersTimeout: 0,
      bodyTimeout: 0,
      maxResponseSize: max_response_size,
      connect: { timeout: timeout || 1000, ...(http.tls.enabled ? tlsOptions(http.tls) : {}) },
    })
  }

  /**
   * @param {string} event @param {Record<string, any>} fields @param {ProxyCall} call
   * @returns {Promise<ProxyAnswer>}
   */
  async call(event, fields, { headers, signal }) {
    const body = encodeRequest(fields)
    if (this.#last.headers !== headers)
      this.#last = { headers: /** @type {any} */ (headers), lines: linesOf(headers) }
    const { lines } = this.#last
    let { origin, path } = { origin: this.#origin, path: this.#path }
    for (let redirects = 0; ; redirects++) {
      const response = await this.#post(origin, path, body, lines, signal)
      const { statusCode: status, headers: answered } = response
      if (status === 200) return decodeAnswer(event, await this.#read(response))
      await discard(response)
      const transform = this.#transforms.find((/** @type {any} */ { status_code }) => status_code === status)
      if (transform !== undefined) return transformed(transform)
      const target = REDIRECTS.has(status) ? redirectOf(answered.location, origin + path) : null
      if (target === null || redirects === MAX_REDIRECTS)
        throw new CallFailed(`status ${status}`, DOWN.has(status) ? 'unavailable' : 'status')
      origin = target.origin
      path = target.pathname + target.search
    }
  }

  /**
   * @param {string} origin @param {string} path @param {string} body @param {string[]} lines @param {AbortSignal} signal
   * @returns {Promise<Dispatcher.ResponseData>}
   */
  async #post(origin, path, body, lines, signal) {
    try {
      return await this.#agent.request({ origin, path, method: 'POST', headers: lines, body, signal })
    } catch (error) {
      throw failureOf(error, signal)
    }
  }

  /** @param {Dispatcher.ResponseData} response @returns {Promise<Buffer>} unpacked */
  async #read({ body, headers }) {
    let bytes
    try {
      bytes = Buffer.from(await body.arrayBuffer())
    } catch (error) {
      throw failureOf(error)
    }
    if (String(headers['content-encoding'] ?? '').toLowerCase() !== 'gzip') return bytes
    try {
      return await unpack(bytes, { maxOutputLength: this.#limit })
    } catch (error) {
      if (error.code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge()
      throw new CallFailed('the answer is not valid gzip', 'answer')
    }
  }

  /** Calls under way end first. */
  async close() {
    await this.#agent.close()
  }
}

const tooLarge = () => new CallFailed('the answer is larger than max_response_size', 'size')

/** Reads the rest of an answer that nobody needs, so that its connection can be used again. @param {any} response */
const discard = ({ body }) => body.dump().catch(() => {})

/** @param {any} error of undici @param {AbortSignal} [signal] @returns {Error} */
function failureOf(error, signal) {
  if (signal?.aborted) return signal.reason
  if (error.code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') return tooLarge()
  // Several addresses of a host were tried.
  const { code, message } = error.errors?.[0] ?? error
  return new CallFailed(!code || message.includes(code) ? message : `${message} (${code})`, 'unreachable')
}

/**
 * @param {any} location header @param {string} from URL
 * @returns {URL | null} null: not to another host, and not from https to http: the request may hold secrets
 */
function redirectOf(location, from) {
  if (typeof location !== 'string' || !URL.canParse(location, from)) return null
  const target = new URL(location, from)
  const source = new URL(from)
  if (target.origin === source.origin) return target
  return target.hostname === source.hostname && target.protocol === 'https:' ? target : null
}

/** @param {any} transform of the configuration @returns {ProxyAnswer} as if the backend had sent it */
function transformed({ to_error: error, to_disconnect: disconnect }) {
  if (disconnect.code > 0) return { result: null, error: null, disconnect }
  return { result: null, error, disconnect: null }
}
