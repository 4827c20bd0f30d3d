import { setTimeout as wait } from 'node:timers/promises'
import { ApiError } from './api-error.js'
import { MAX_BODY } from './body-limit.js'

/** Largest answer, bytes: a history of 16 MB as base64, and its fields. */
const MAX_ANSWER = 64 * 1024 * 1024
/** Bytes of calls under way and waiting; more are refused with error 111. */
const MAX_BYTES = 64 * 1024 * 1024
/** Bytes that a call takes beside its text, approximately. */
const CALL_BYTES = 512
/** Delay before the first retry, ms; it doubles, and a random half of it is left out. */
const RETRY_MS = 100
/** Longest delay that a `Retry-After` of the server may ask for, ms. */
const MAX_RETRY_AFTER_MS = 5000
/** Codes of errors before anything was sent. */
const NOT_SENT = [
  'EAI_AGAIN',
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'UND_ERR_CONNECT_TIMEOUT',
]
/** Statuses of a server, or of a proxy before it, that may pass. */
const TEMPORARY = [429, 500, 502, 503, 504]
/** Codes of the API's answers that may pass. */
const TEMPORARY_CODES = [100, 111]

/** HTTP statuses without an answer of the API, with the code that says the same. @type {Record<number, number>} */
const CODES = { 400: 107, 401: 101, 403: 103, 404: 104, 405: 104, 413: 106, 429: 111 }

/**
 * An attempt without a result. `sent`: the server may have run the call; `delay`: ms that the server asks to wait.
 */
class Failure {
  /** @param {ApiError} error @param {{sent?: boolean, temporary?: boolean, delay?: number}} [more] */
  constructor(error, { sent = true, temporary = true, delay = 0 } = {}) {
    this.error = error
    this.sent = sent
    this.temporary = temporary
    this.delay = delay
  }
}

/** Calls of the server API over HTTP: bounded, with a time limit, repeated where that is safe. */
export class HttpCalls {
  #options
  #bytes = 0
  #running = 0
  /** @type {(() => void)[]} calls that wait for a connection */
  #waiting = []
  #closed = new AbortController()
  /** @type {Set<AbortController>} of the requests under way */
  #requests = new Set()

  /**
   * @param {{url: string, key: string, timeout: number, retries: number, connections: number}} options timeout: ms
   */
  constructor(options) {
    this.#options = options
  }

  close() {
    this.#closed.abort()
    for (const request of this.#requests) request.abort()
    for (const start of this.#waiting.splice(0)) start()
  }

  /** @type {import('./server-api.js').Send} */
  async send(method, text, repeatable) {
    this.#check()
    const body = Buffer.from(text)
    if (body.length > MAX_BODY)
      throw new ApiError(`limit exceeded: a call of ${body.length} bytes, at most ${MAX_BODY}`, { code: 106 })
    const bytes = CALL_BYTES + body.length
    if (this.#bytes + bytes > MAX_BYTES)
      throw new ApiError(`too many requests: calls of ${this.#bytes} bytes are under way`, { code: 111 })
    this.#bytes += bytes
    try {
      return await this.#repeat(method, body, repeatable)
    } finally {
      this.#bytes -= bytes
    }
  }

  #check() {
    if (this.#closed.signal.aborted) throw new ApiError('the client is closed')
  }

  /** @param {string} method @param {Buffer} body @param {boolean} repeatable @returns {Promise<any>} */
  async #repeat(method, body, repeatable) {
    const { retries } = this.#options
    for (let attempt = 0; ; attempt++) {
      const outcome = await this.#turn(() => this.#attempt(method, body))
      const again = attempt < retries && (repeatable || (outcome instanceof Failure && !outcome.sent))
      if (outcome instanceof Failure) {
        this.#check()
        if (!again || !outcome.temporary) throw outcome.error
      } else if (!again || !TEMPORARY_CODES.includes(outcome.error?.code)) return outcome
      const own = RETRY_MS * 2 ** attempt * (0.5 + Math.random() / 2)
      const asked = outcome instanceof Failure ? outcome.delay : 0
      await wait(Math.max(own, asked), undefined, { signal: this.#closed.signal }).catch(() => {})
      this.#check()
    }
  }

  /** Runs a task when a connection is free. @template T @param {() => Promise<T>} task @returns {Promise<T>} */
  async #turn(task) {
    if (this.#running >= this.#options.connections) {
      await new Promise(resolve => this.#waiting.push(() => resolve(undefined)))
      this.#check()
    } else this.#running++
    try {
      return await task()
    } finally {
      // The next one has its connection.
      const next = this.#waiting.shift()
      if (next) next()
      else this.#running--
    }
  }

  /** @param {string} method @param {Buffer} body @returns {Promise<any>} the answer, or a Failure */
  async #attempt(method, body) {
    const { url, key, timeout } = this.#options
    const request = new AbortController()
    let late = false
    const timer = setTimeout(() => {
      late = true
      request.abort()
    }, timeout)
    this.#requests.add(request)
    try {
      const response = await fetch(`${url}/${method}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...(key === '' ? null : { 'x-api-key': key }) },
        body,
        redirect: 'manual',
        signal: request.signal,
      })
      return readAnswer(response, await readBody(response))
    } catch (error) {
      if (error instanceof ApiError) return new Failure(error, { temporary: false })
      if (late) return new Failure(new ApiError(`no answer of ${url} within ${timeout} ms`))
      const { code, message } = error.cause ?? error
      const reason = new ApiError(`no answer of ${url}: ${code ?? message}`, { cause: error })
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
  // Leaving the loop ends the connection.
  for await (const chunk of response.body) {
    length += chunk.length
    if (length > MAX_ANSWER) throw new ApiError(`the answer is larger than ${MAX_ANSWER} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

/** @param {string} text @returns {any} null if it is no JSON object */
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
  // `http_api.error_mode: transport`
  if (typeof answer?.code === 'number' && typeof answer?.message === 'string')
    return { error: { code: answer.code, message: answer.message, status } }
  const [line] = text.trim().split('\n', 1)
  const what = status < 400 || line === '' || line.length > 200 ? '' : `: ${line}`
  const error = new ApiError(`${url} answers with HTTP ${status}${what}`, {
    code: CODES[status] ?? 0,
    status,
  })
  const seconds = Number(headers.get('retry-after'))
  const delay = seconds > 0 ? Math.min(seconds * 1000, MAX_RETRY_AFTER_MS) : 0
  return new Failure(error, { temporary: TEMPORARY.includes(status), delay })
}
