// halley-gateway/api: the server API for backends in Node.js. Uses fetch of Node.js and nothing else.

import { didYouMean } from '../../config/nearest.js'
import { ApiError } from './api-error.js'
import { HttpCalls } from './http-calls.js'
import { ServerApi } from './server-api.js'

export { ApiError, ServerApi }

/**
 * @typedef {import('./server-api.js').Command} Command
 * @typedef {import('./server-api.js').Outcome} Outcome
 * @typedef {import('./server-api.js').PublishOptions} PublishOptions
 * @typedef {import('./server-api.js').Position} Position
 *
 * @typedef {object} ApiClientOptions
 * @property {string | URL} url of the gateway, or of its server API behind a prefix; without a path `/api` is added
 * @property {string} [key] `http_api.key` of the gateway
 * @property {number} [timeout] for one attempt, ms; default 5000
 * @property {number} [retries] after the first attempt; default 2. Reads and publications are repeated, other calls
 *   only if they were not sent. 0: publications get no idempotency keys
 * @property {number} [connections] requests at the same time, at most; default 32. Others wait within 64 MB
 */

/** Options with their defaults and, for numbers, their range. */
const DEFAULTS = Object.freeze({ url: '', key: '', timeout: 5000, retries: 2, connections: 32 })
/** @type {Record<string, [number, number]>} */
const RANGES = { timeout: [1, 2 ** 31 - 1], retries: [0, 10], connections: [1, 1024] }

/**
 * A client of the server API. Connections are kept alive and shared; a publication gets an idempotency key, so that
 * repeating it after a lost answer publishes nothing twice. Methods reject with an ApiError.
 */
export class ApiClient extends ServerApi {
  #calls

  /** @param {ApiClientOptions} options @throws {TypeError} names the wrong option */
  constructor(options) {
    const { url, ...read } = readOptions(options)
    const calls = new HttpCalls({ url, ...read })
    super((method, text, repeatable) => calls.send(method, text, repeatable), { keys: read.retries > 0 })
    this.#calls = calls
  }

  /** Ends calls under way with an error; later ones are refused. Idle connections end by themselves. */
  close() {
    this.#calls.close()
  }
}

/** @param {any} options @returns {Required<Omit<ApiClientOptions, 'url'>> & {url: string}} @throws {TypeError} */
function readOptions(options) {
  if (options === null || typeof options !== 'object')
    throw new TypeError('ApiClient needs options with a url')
  for (const name of Object.keys(options)) {
    if (Object.hasOwn(DEFAULTS, name)) continue
    const near = didYouMean(name, Object.keys(DEFAULTS))
    throw new TypeError(`ApiClient has no option ${JSON.stringify(name.slice(0, 64))}${near}`)
  }
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
  const { url, key, ...numbers } = { ...DEFAULTS, ...given }
  if (typeof key !== 'string' || /[^\x20-\x7e]/.test(key))
    throw new TypeError('ApiClient: key must be a string of printable ASCII characters')
  for (const [name, [min, max]] of Object.entries(RANGES)) {
    const value = /** @type {Record<string, any>} */ (numbers)[name]
    if (!Number.isInteger(value) || value < min || value > max)
      throw new TypeError(`ApiClient: ${name} must be an integer from ${min} to ${max}`)
  }
  return { ...numbers, key, url: addressOf(url) }
}

/** @param {unknown} url @returns {string} without a slash at its end @throws {TypeError} */
function addressOf(url) {
  const text = String(url)
  const read = URL.canParse(text) ? new URL(text) : null
  if (read === null || !/^https?:$/.test(read.protocol) || read.username !== '' || read.search !== '')
    throw new TypeError('ApiClient: url must be an http: or https: address, without credentials and query')
  return read.origin + (read.pathname === '/' ? '/api' : read.pathname.replace(/\/+$/, ''))
}
