import { setTimeout as wait } from 'node:timers/promises'
import { ApiError } from './api-error.js'
import { MAX_BODY } from './wire.js'

/** Largest answer: a history of 16 MB as base64, and its fields. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024
/** Memory of unfinished calls. Calls beyond it get error 111. */
const MAX_PENDING_BYTES = 64 * 1024 * 1024
/** Memory of a call beside its body, approximately. */
const CALL_OVERHEAD_BYTES = 512
/** Delay before the first retry. It doubles with each retry; 50 to 100 % of it are used, at random. */
const FIRST_RETRY_MS = 100
/** Longer delays in `Retry-After` are cut to this one. */
const MAX_RETRY_AFTER_MS = 5000
/** Error codes of connections that were not made, so the server has not got the call. */
const NOT_SENT = [
  'EAI_AGAIN',
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'UND_ERR_CONNECT_TIMEOUT',
]
/** HTTP statuses of temporary failures, of the gateway or of a proxy before it. */
const TEMPORARY_STATUSES = [429, 500, 502, 503, 504]
/** API error codes of temporary failures. */
const TEMPORARY_CODES = [100, 111]

/** HTTP status -> API error code, for answers that do not come from the API. @type {Record<number, number>} */
const CODE_OF_STATUS = { 400: 107, 401: 101, 403: 103, 404: 104, 405: 104, 413: 106, 429: 111 }

/** An attempt without an answer of the API. */
class Failure {
  /**
   * @param {ApiError} error for the caller @param {object} [more]
   * @param {boolean} [more.sent] whether the server may have run the call
   * @param {boolean} [more.temporary] whether a retry may succeed
   * @param {number} [more.delay] ms, from `Retry-After`
   */
  constructor(error, { sent = true, temporary = true, delay = 0 } = {}) {
    this.error = error
    this.sent = sent
    this.temporary = temporary
    this.delay = delay
  }
}

/** Calls of the server API over HTTP, with a timeout, retries where they are safe, and a limit of memory. */
export class HttpCalls {
  #options
  #pendingBytes = 0
  /** Connections in use. */
  #running = 0
  /** Calls that wait for a connection. @type {(() => void)[]} */
  #waiting = []
  #closed = new AbortController()
  /** One for each request in progress. @type {Set<AbortController>} */
  #requests = new Set()

  /**
   * @param {object} options
   * @param {string} options.url of the API, without a slash at the end @param {string} options.key '' if none
   * @param {number} options.timeout ms for each attempt
   * @param {number} options.retries after the first attempt @param {number} options.connections maximum in use
   */
  constructor(options) {
    this.#options = options
  }

  /** Ends all calls with an error. */
  close() {
    this.#closed.abort()
    for (const request of this.#requests) request.abort()
    for (const start of this.#waiting.splice(0)) start()
  }

  /** @type {import('./server-api.js').Send} */
  async send(method, text, repeatable) {
    this.#throwIfClosed()
    const body = Buffer.from(text)
    if (body.length > MAX_BODY)
      throw new ApiError(`limit exceeded: a call of ${body.length} bytes, at most ${MAX_BODY}`, { code: 106 })
    const bytes = CALL_OVERHEAD_BYTES + body.length
    if (this.#pendingBytes + bytes > MAX_PENDING_BYTES)
      throw new ApiError(`too many requests: calls of ${this.#pendingBytes} bytes are under way`, {
        code: 111,
      })
    this.#pendingBytes += bytes
    try {
      return await this.#sendWithRetries(method, body, repeatable)
    } finally {
      this.#pendingBytes -= bytes
    }
  }

  #throwIfClosed() {
    if (this.#closed.signal.aborted) throw new ApiError('the client is closed')
  }

  /**
   * @param {string} method @param {Buffer} body
   * @param {boolean} repeatable whether a second run by the server does no harm
   * @returns {Promise<any>} the answer @throws {ApiError}
   */
  async #sendWithRetries(method, body, repeatable) {
    const { retries } = this.#options
    for (let attempt = 0; ; attempt++) {
      const outcome = await this.#withConnection(() => this.#attempt(method, body))
      const mayRetry = attempt < retries && (repeatable || (outcome instanceof Failure && !outcome.sent))
      if (outcome instanceof Failure) {
        this.#throwIfClosed()
        if (!mayRetry || !outcome.temporary) throw outcome.error
      } else if (!mayRetry || !TEMPORARY_CODES.includes(outcome.error?.code)) return outcome
      const backoff = FIRST_RETRY_MS * 2 ** attempt * (0.5 + Math.random() / 2)
      const retryAfter = outcome instanceof Failure ? outcome.delay : 0
      await wait(Math.max(backoff, retryAfter), undefined, { signal: this.#closed.signal }).catch(() => {})
      this.#throwIfClosed()
    }
  }

  /** Runs a task when a connection is free. @template T @param {() => Promise<T>} task @returns {Promise<T>} */
  async #withConnection(task) {
    if (this.#running >= this.#options.connections) {
      await new Promise(resolve => this.#waiting.push(() => resolve(undefined)))
      this.#throwIfClosed()
    } else this.#running++
    try {
      return await task()
    } finally {
      // The next call takes the connection over.
      const next = this.#waiting.shift()
      if (next) next()
      else this.#running--
    }
  }

  /** @param {string} method @param {Buffer} body @returns {Promise<any>} the answer, or a Failure */
  async #attempt(method, body) {
    const { url, key, timeout } = this.#options
    const request = new AbortController()
    let timedOut = false
    const timer = setTimeout(() => {
      timedOut = true
      request.abort()
    }, timeout)
    this.#requests.add(request)
    try {
      const response = await fetch(`${url}/${method}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...(key === '' ? null : { 'x-api-key': key }) },
        // Undici takes a Buffer; the type of the DOM does not.
        body: /** @type {any} */ (body),
        redirect: 'manual',
        signal: request.signal,
      })
      return readAnswer(response, await readBody(response))
    } catch (error) {
      if (error instanceof ApiError) return new Failure(error, { temporary: false })
      if (timedOut) return new Failure(new ApiError(`no answer from ${url} within ${timeout} ms`))
      const { code, message } = error.cause ?? error
      const reason = new ApiError(`no answer from ${url}: ${code ?? message}`, { cause: error })
      return new Failure(reason, { sent: !NOT_SENT.includes(code) })
    } finally {
      clearTimeout(timer)
      this.#requests.delete(request)
    }
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
    if (length > MAX_ANSWER_BYTES) throw new ApiError(`the answer is larger than ${MAX_ANSWER_BYTES} bytes`)
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

/** @param {Response} response @param {string} text @returns {any} the answer, or a Failure */
function readAnswer({ status, url, headers }, text) {
  const answer = parseObject(text)
  if (status === 200) {
    if (answer?.result || answer?.error || answer?.replies) return answer
    return new Failure(new ApiError(`${url} does not answer like a server API`, { status }), {
      temporary: false,
    })
  }
  // An API error in the form of `http_api.error_mode: transport`.
  if (typeof answer?.code === 'number' && typeof answer?.message === 'string')
    return { error: { code: answer.code, message: answer.message, status } }
  const [line] = text.trim().split('\n', 1)
  const detail = status < 400 || line === '' || line.length > 200 ? '' : `: ${line}`
  const error = new ApiError(`${url} answers with HTTP ${status}${detail}`, {
    code: CODE_OF_STATUS[status] ?? 0,
    status,
  })
  const seconds = Number(headers.get('retry-after'))
  const delay = seconds > 0 ? Math.min(seconds * 1000, MAX_RETRY_AFTER_MS) : 0
  return new Failure(error, { temporary: TEMPORARY_STATUSES.includes(status), delay })
}
