// halley-gateway/api: the server API for backends in Node.js. Depends only on the built-in fetch.

import { setTimeout as wait } from 'node:timers/promises'
import { didYouMean } from '../../config/nearest.js'
import { ApiError } from './api-error.js'
import { ServerApi } from './server-api.js'
import { limitCalls, MAX_BODY } from './wire.js'

/** Maximum response: a history of 16 MB as base64, and its fields. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024
/** Delay before the first retry, doubled with each retry, with a random factor of 0.5 to 1. */
const FIRST_RETRY_MS = 100
const MAX_RETRY_AFTER_MS = 5000
/** Error codes of failed connects: the server has not received the call. */
const NOT_SENT = [
  'EAI_AGAIN',
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'UND_ERR_CONNECT_TIMEOUT',
]
/** HTTP statuses of temporary failures of the gateway or of a reverse proxy. */
const TEMPORARY_STATUSES = [429, 500, 502, 503, 504]
const TEMPORARY_CODES = [100, 111]

/** HTTP status -> API error code, for responses not sent by the API. @type {Record<number, number>} */
const CODE_OF_STATUS = { 400: 107, 401: 101, 403: 103, 404: 104, 405: 104, 413: 106, 429: 111 }

/**
 * An attempt without an API response. `unsent`: the server has not run the call; `delay`: ms, from `Retry-After`.
 * @typedef {{error: ApiError, unsent?: boolean, temporary?: boolean, delay?: number}} Failure
 */

/** @typedef {{answer: any, failure?: undefined} | {answer?: undefined, failure: Failure}} Attempt */

/**
 * Server API calls over HTTP, with a timeout per attempt and retries where safe.
 * @param {Required<Omit<ApiClientOptions, 'url'>> & {url: string}} options `url` without trailing slash
 */
function httpCalls({ url, key, timeout, retries, connections }) {
  let running = 0
  /** Calls waiting for a connection. @type {(() => void)[]} */
  const waiting = []
  const closed = new AbortController()
  /** One per request in progress. @type {Set<AbortController>} */
  const requests = new Set()

  function throwIfClosed() {
    if (closed.signal.aborted) throw new ApiError('the client is closed')
  }

  /** Runs a task when a connection is free. @template T @param {() => Promise<T>} task @returns {Promise<T>} */
  async function withConnection(task) {
    if (running >= connections) {
      await new Promise(resolve => waiting.push(() => resolve(undefined)))
      throwIfClosed()
    } else running++
    try {
      return await task()
    } finally {
      const next = waiting.shift()
      if (next) next()
      else running--
    }
  }

  /** @param {string} method @param {Buffer} body @param {number} time limit, ms @returns {Promise<Attempt>} */
  async function attempt(method, body, time) {
    const request = new AbortController()
    let timedOut = false
    const timer = setTimeout(() => {
      timedOut = true
      request.abort()
    }, time)
    requests.add(request)
    try {
      const response = await fetch(`${url}/${method}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...(key === '' ? null : { 'x-api-key': key }) },
        // Undici accepts a Buffer; the DOM type does not.
        body: /** @type {any} */ (body),
        redirect: 'manual',
        signal: request.signal,
      })
      return readAnswer(response, await readBody(response))
    } catch (error) {
      if (error instanceof ApiError) return { failure: { error } }
      const { code, message } = error.cause ?? error
      const reason = timedOut
        ? new ApiError(`no response from ${url} within ${time} ms`)
        : new ApiError(`no response from ${url}: ${code ?? message}`, { cause: error })
      return { failure: { error: reason, unsent: !timedOut && NOT_SENT.includes(code), temporary: true } }
    } finally {
      clearTimeout(timer)
      requests.delete(request)
    }
  }

  return {
    /** @type {import('./server-api.js').Send} */
    async send(method, text, repeatable, answers) {
      throwIfClosed()
      const body = Buffer.from(text)
      if (body.length > MAX_BODY)
        throw new ApiError(`limit exceeded: a call of ${body.length} bytes (maximum ${MAX_BODY})`, {
          code: 106,
        })
      for (let tries = 0; ; tries++) {
        const { answer, failure } = await withConnection(() => attempt(method, body, timeout + answers))
        const mayRetry = tries < retries && (repeatable || failure?.unsent)
        if (failure) {
          throwIfClosed()
          if (!mayRetry || !failure.temporary) throw failure.error
        } else if (!mayRetry || !TEMPORARY_CODES.includes(answer.error?.code)) return answer
        const backoff = FIRST_RETRY_MS * 2 ** tries * (0.5 + Math.random() / 2)
        const delay = Math.max(backoff, failure?.delay ?? 0)
        await wait(delay, undefined, { signal: closed.signal }).catch(() => {})
        throwIfClosed()
      }
    },

    close() {
      closed.abort()
      for (const request of requests) request.abort()
      for (const start of waiting.splice(0)) start()
    },
  }
}

/** @param {Response} response @returns {Promise<string>} @throws {ApiError} if it is too large */
async function readBody(response) {
  if (response.body === null) return ''
  const chunks = []
  let length = 0
  // A throw within the loop closes the connection.
  for await (const chunk of response.body) {
    length += chunk.length
    if (length > MAX_ANSWER_BYTES) throw new ApiError(`the response is larger than ${MAX_ANSWER_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

/** @param {string} text @returns {any} a JSON object or array; null for anything else */
function parseObject(text) {
  try {
    const value = JSON.parse(text)
    return typeof value === 'object' ? value : null
  } catch {
    return null
  }
}

/** @param {Response} response @param {string} text @returns {Attempt} */
function readAnswer({ status, url, headers }, text) {
  const answer = parseObject(text)
  if (status === 200) {
    if (answer?.result || answer?.error || answer?.replies) return { answer }
    return { failure: { error: new ApiError(`not a server API response from ${url}`, { status }) } }
  }
  // An API error in the form of `http_api.error_mode: transport`.
  if (typeof answer?.code === 'number' && typeof answer?.message === 'string')
    return { answer: { error: { code: answer.code, message: answer.message, status } } }
  const [line] = text.trim().split('\n', 1)
  const detail = status < 400 || line === '' || line.length > 200 ? '' : `: ${line}`
  const error = new ApiError(`${url} responded with HTTP ${status}${detail}`, {
    code: CODE_OF_STATUS[status] ?? 0,
    status,
  })
  const seconds = Number(headers.get('retry-after'))
  const delay = seconds > 0 ? Math.min(seconds * 1000, MAX_RETRY_AFTER_MS) : 0
  return { failure: { error, temporary: TEMPORARY_STATUSES.includes(status), delay } }
}

export { ApiError, ServerApi }

/**
 * @typedef {import('./server-api.js').Command} Command
 * @typedef {import('./server-api.js').Outcome} Outcome
 * @typedef {import('./server-api.js').ConnectionInfo} ConnectionInfo
 * @typedef {import('./server-api.js').ConnectionsOptions} ConnectionsOptions
 * @typedef {import('./server-api.js').PublishOptions} PublishOptions
 * @typedef {import('./server-api.js').AckOptions} AckOptions
 * @typedef {import('./server-api.js').RequestTarget} RequestTarget
 * @typedef {import('./server-api.js').ClientAnswer} ClientAnswer
 * @typedef {import('./server-api.js').Acks} Acks
 * @typedef {import('./server-api.js').Position} Position
 * @typedef {import('./server-api.js').MapEntry} MapEntry
 * @typedef {import('./server-api.js').MapPublishOptions} MapPublishOptions
 * @typedef {import('./server-api.js').MapResult} MapResult
 * @typedef {import('./server-api.js').MapStateOptions} MapStateOptions
 * @typedef {import('./server-api.js').MapStreamOptions} MapStreamOptions
 * @typedef {import('./server-api.js').UserStatus} UserStatus
 *
 * @typedef {object} ApiClientOptions
 * @property {string | URL} url of the gateway, or of its server API behind a prefix; default path `/api`
 * @property {string} [key] `http_api.key` of the gateway
 * @property {number} [timeout] per attempt, ms; default 5000. Calls that wait for clients have their time in addition
 * @property {number} [retries] after the first attempt; default 2. Retries reads and publications; other calls only if
 *   they were not sent. 0: publications get no idempotency keys
 * @property {number} [connections] maximum concurrent requests; default 32. Others are queued, up to 64 MB
 */

const DEFAULTS = Object.freeze({ url: '', key: '', timeout: 5000, retries: 2, connections: 32 })
/** @type {Record<string, [number, number]>} */
const RANGES = { timeout: [1, 2 ** 31 - 1], retries: [0, 10], connections: [1, 1024] }

/**
 * A client of the server API. Connections are kept alive and shared. Publications get an idempotency key, so a retry
 * after a lost response publishes nothing twice. Methods reject with an ApiError.
 */
export class ApiClient extends ServerApi {
  #calls

  /** @param {ApiClientOptions} options @throws {TypeError} naming the wrong option */
  constructor(options) {
    const { url, ...read } = readOptions(options)
    const calls = httpCalls({ url, ...read })
    super(limitCalls(calls.send), { keys: read.retries > 0 })
    this.#calls = calls
  }

  /** Aborts pending calls with an error and rejects later ones. Idle connections time out. */
  close() {
    this.#calls.close()
  }
}

/** @param {any} options @returns {Required<Omit<ApiClientOptions, 'url'>> & {url: string}} @throws {TypeError} */
function readOptions(options) {
  if (options === null || typeof options !== 'object')
    throw new TypeError('ApiClient: the option url is required')
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

/** @param {unknown} url @returns {string} without trailing slash @throws {TypeError} */
function addressOf(url) {
  const text = String(url)
  const read = URL.canParse(text) ? new URL(text) : null
  if (read === null || !/^https?:$/.test(read.protocol) || read.username !== '' || read.search !== '')
    throw new TypeError('ApiClient: url must be an http: or https: URL without credentials and query')
  return read.origin + (read.pathname === '/' ? '/api' : read.pathname.replace(/\/+$/, ''))
}
