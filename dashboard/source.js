// Sources of the figures: a local gateway over its Unix socket, or a remote one over HTTP.

import http from 'node:http'
import https from 'node:https'
import { createConnection } from 'node:net'
import { SCHEMA_VERSION } from '../src/metrics/schema.js'

/** @import { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http' */
/** @import { Hello, StatsCommand, StatsMessage } from '../src/metrics/schema.js' */

/** @typedef {{type: 'message', message: StatsMessage} | {type: 'link', state: LinkState, text: string}} SourceEvent */
/** @typedef {'connecting' | 'open' | 'lost' | 'refused'} LinkState refused: retried, but needs the user */

/** Delay before a reconnect, ms: doubles from `first` to `max`. */
const RETRY = Object.freeze({ first: 250, max: 5000, refused: 30_000 })

/**
 * Parses bytes into messages, and reconnects forever. Replies to each command with `done`. Never throws, even for
 * invalid data.
 *
 *   connecting --hello--> open --ended--> lost --(250 ms ... 5 s)--> (next attempt) --hello--> open
 *        |                                  ^
 *        +-- newer schema, wrong key --> refused --(30 s)--> (next attempt)
 */
export class Source {
  /** @type {(event: SourceEvent) => void} */
  #listener = () => {}
  /** @type {NodeJS.Timeout | null} */
  #timer = null
  #lines = new Lines()
  /** ms @type {number} */
  #wait = RETRY.first
  #greeted = false
  closed = true

  /** @param {string} name path or URL, as shown */
  constructor(name) {
    this.name = name
  }

  /** Starts an attempt; `ended` ends it. @abstract */
  connect() {}

  /** @abstract @param {StatsCommand} _command */
  send(_command) {}

  /** @param {(event: SourceEvent) => void} listener */
  start(listener) {
    this.#listener = listener
    this.closed = false
    listener({ type: 'link', state: 'connecting', text: '' })
    this.#try()
  }

  close() {
    this.closed = true
    if (this.#timer) clearTimeout(this.#timer)
  }

  #try() {
    this.#timer = null
    this.#lines = new Lines()
    this.#greeted = false
    this.connect()
  }

  /** Reads the stream. Invalid data ends the attempt. @param {Buffer} chunk @param {() => void} abort the connection */
  data(chunk, abort) {
    try {
      this.#lines.push(chunk, line => {
        if (this.closed) return
        const message = readMessage(line)
        if (message?.type === 'hello') this.#greet(message)
        if (message !== null && (this.#greeted || message.type === 'done'))
          this.#listener({ type: 'message', message })
      })
    } catch (error) {
      abort()
      this.ended(error)
    }
  }

  /** @param {Hello} hello */
  #greet({ schema }) {
    if (schema > SCHEMA_VERSION) {
      throw new RefusedError(
        `stats version ${schema} is not supported (expected ${SCHEMA_VERSION}): use the halley version of the gateway`,
      )
    }
    this.#greeted = true
    this.#wait = RETRY.first
    this.#listener({ type: 'link', state: 'open', text: '' })
  }

  /** Ends the attempt, at any stage. @param {Error} reason */
  ended(reason) {
    if (this.closed || this.#timer) return
    const refused = reason instanceof RefusedError
    const wait = refused ? reason.wait : this.#wait
    if (!refused) this.#wait = Math.min(RETRY.max, this.#wait * 2)
    this.#timer = setTimeout(() => this.#try(), wait)
    this.#listener({ type: 'link', state: refused ? 'refused' : 'lost', text: reason.message })
  }

  /** Replies to a command for the gateway. @param {string} command @param {string | null} error */
  answer(command, error) {
    if (!this.closed) this.#listener({ type: 'message', message: { type: 'done', command, error } })
  }
}

/** Thrown if an early retry is useless. */
class RefusedError extends Error {
  /** @param {string} message @param {number} [wait] ms until the next attempt */
  constructor(message, wait = RETRY.refused) {
    super(message)
    this.wait = wait
  }
}

const CLOSED = 'the gateway closed the connection'
const NOT_CONNECTED = 'not connected to a gateway'

/** A local gateway; the name is the path of its Unix socket. */
export class SocketSource extends Source {
  /** @type {import('node:net').Socket | null} */
  #socket = null

  close() {
    super.close()
    this.#socket?.destroy()
  }

  /** @param {StatsCommand} command */
  send(command) {
    if (this.#socket?.writable) this.#socket.write(`${JSON.stringify(command)}\n`)
    else this.answer(command.type, NOT_CONNECTED)
  }

  connect() {
    const socket = createConnection(this.name)
    this.#socket = socket
    let reason = new Error(CLOSED)
    socket.on('data', chunk => this.data(chunk, () => socket.destroy()))
    socket.on('error', (/** @type {NodeJS.ErrnoException} */ error) => {
      reason = new Error(SOCKET_REASONS[error.code ?? ''] ?? error.message)
    })
    socket.on('close', () => this.ended(reason))
  }
}

/** @type {Readonly<Record<string, string>>} */
const SOCKET_REASONS = Object.freeze({
  ENOENT: 'no gateway is listening',
  ECONNREFUSED: 'no gateway is listening',
  EACCES: 'permission denied: the socket belongs to another user',
})

const DEFAULT_PREFIX = '/admin'
/** Timeout of a connection without data, ms; the stream sends a message every second. */
const DATA_TIMEOUT = 15_000
/** Maximum characters of a response, except the stream. */
const MAX_RESPONSE = 64 * 1024

/** A remote gateway, over its admin endpoints: logs in with the admin key, then reads one endless response. */
export class HttpSource extends Source {
  /** @type {ClientRequest | null} */
  #request = null
  #token = ''
  #key
  #ca

  /**
   * @param {string} url of the gateway; its path, if any, is the prefix of the admin endpoints
   * @param {string} key admin.password @param {string} [ca] trusted certificates, PEM; default: Node.js's
   */
  constructor(url, key, ca) {
    const { protocol, host, pathname } = new URL(url)
    super(`${protocol}//${host}${pathname.replace(/\/+$/, '') || DEFAULT_PREFIX}`)
    this.#key = key
    this.#ca = ca
  }

  close() {
    super.close()
    this.#request?.destroy()
  }

  /** @param {StatsCommand} command */
  send(command) {
    if (this.#token === '') return this.answer(command.type, NOT_CONNECTED)
    this.#call('POST', '/api/command', command).then(
      ({ status, body }) => this.answer(command.type, body?.error ?? errorOf(status)),
      error => this.answer(command.type, error.message),
    )
  }

  async connect() {
    try {
      if (this.#token === '') await this.#logIn()
      if (!this.closed) await this.#stream()
    } catch (error) {
      this.ended(error)
    }
  }

  async #logIn() {
    const { status, headers, body } = await this.#call('POST', '/api/login', { password: this.#key })
    if (status === 401) throw new RefusedError('the gateway rejected the admin key')
    if (status === 429) {
      const seconds = Number(headers['retry-after']) || 30
      throw new RefusedError(
        `too many failed logins: the gateway accepts no login for ${seconds} s`,
        seconds * 1000,
      )
    }
    if (status === 404)
      throw new RefusedError('no admin endpoints at this URL: check admin.password and admin.handler_prefix')
    if (status !== 200 || typeof body?.token !== 'string')
      throw new Error(errorOf(status) ?? 'invalid login response')
    this.#token = body.token
  }

  /** @returns {Promise<void>} rejects when the stream ends */
  #stream() {
    return new Promise((_, reject) => {
      const request = this.#newRequest('GET', '/api/stream', response => {
        if (response.statusCode !== 200) {
          response.resume()
          request.destroy()
          // The token may have expired: the next attempt logs in.
          this.#token = ''
          return reject(new Error(errorOf(response.statusCode ?? 0) ?? 'the gateway closed the session'))
        }
        response.on('data', chunk => this.data(chunk, () => request.destroy()))
        response.on('error', reject)
        response.on('close', () => reject(new Error(CLOSED)))
      })
      request.on('error', error => reject(new Error(reasonOf(error))))
      this.#request = request
      request.end()
    })
  }

  /**
   * @param {string} method @param {string} path @param {object} body
   * @returns {Promise<{status: number, headers: IncomingHttpHeaders, body: any}>} `body`: null if it is not JSON
   */
  #call(method, path, body) {
    return new Promise((resolve, reject) => {
      const request = this.#newRequest(method, path, response => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', part => {
          text += part
          if (text.length > MAX_RESPONSE) request.destroy(new Error('response too long'))
        })
        response.on('error', reject)
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: parsed(text) }),
        )
      })
      request.on('error', error => reject(new Error(reasonOf(error))))
      request.end(JSON.stringify(body))
    })
  }

  /** @param {string} method @param {string} path @param {(response: IncomingMessage) => void} onResponse */
  #newRequest(method, path, onResponse) {
    const url = new URL(`${this.name}${path}`)
    const headers = {
      'content-type': 'application/json',
      ...(this.#token === '' ? {} : { authorization: `Bearer ${this.#token}` }),
    }
    const request =
      url.protocol === 'https:'
        ? https.request(url, { method, headers, ca: this.#ca }, onResponse)
        : http.request(url, { method, headers }, onResponse)
    request.setTimeout(DATA_TIMEOUT, () => request.destroy(new Error(`no data for ${DATA_TIMEOUT / 1000} s`)))
    return request
  }
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** @param {number} status @returns {string | null} null: no error */
const errorOf = status =>
  status === 200 ? null : status === 401 ? 'the session has expired' : `unexpected HTTP status ${status}`

const UNREACHABLE = 'host unreachable'
const NO_TLS = 'no TLS on this port: use http://'
const UNTRUSTED = 'the certificate is not trusted: pass it or its CA with --ca FILE'

/** Codes of Node.js and OpenSSL -> reason. @type {Readonly<Record<string, string>>} */
const REASONS = Object.freeze({
  ECONNREFUSED: 'no gateway is listening',
  ECONNRESET: CLOSED,
  ENOTFOUND: 'unknown host',
  EAI_AGAIN: 'unknown host, or no DNS server is reachable',
  ETIMEDOUT: UNREACHABLE,
  EHOSTUNREACH: UNREACHABLE,
  ENETUNREACH: UNREACHABLE,
  DEPTH_ZERO_SELF_SIGNED_CERT: UNTRUSTED,
  SELF_SIGNED_CERT_IN_CHAIN: UNTRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
})

/** @param {NodeJS.ErrnoException} error */
function reasonOf({ code = '', message }) {
  if (code.startsWith('HPE_')) return 'not an HTTP server'
  // OpenSSL parses a plaintext response as a TLS record.
  if (/wrong version number|packet length too long|record layer/.test(message)) return NO_TLS
  return REASONS[code] ?? message.split('\n')[0]
}

/** Bytes. A hello with the history of many workers takes megabytes. */
const MAX_LINE = 64 * 1024 * 1024

const NEWLINE = 10

export class Lines {
  /** @type {Buffer[]} of the unfinished line */
  #parts = []
  #length = 0
  #max

  /** @param {number} [max] bytes of a line */
  constructor(max = MAX_LINE) {
    this.#max = max
  }

  /** @param {Buffer} chunk @param {(line: string) => void} onLine */
  push(chunk, onLine) {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      this.#keep(chunk.subarray(start, end))
      const line = this.#parts.length === 1 ? this.#parts[0] : Buffer.concat(this.#parts)
      this.#parts = []
      this.#length = 0
      start = end + 1
      if (line.length > 0) onLine(line.toString())
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start))
  }

  /** @param {Buffer} part */
  #keep(part) {
    this.#length += part.length
    if (this.#length > this.#max) throw new Error('not a Halley stats stream: a line is too long')
    this.#parts.push(part)
  }
}

/** @param {any} value */
const isObject = value => Boolean(typeof value === 'object' && value !== null)

/** @param {any} snapshot */
const isSnapshot = snapshot =>
  isObject(snapshot) &&
  typeof snapshot.time === 'number' &&
  Array.isArray(snapshot.workers) &&
  Array.isArray(snapshot.events) &&
  ['node', 'primary', 'totals', 'machine', 'capacity'].every(name => isObject(snapshot[name]))

/** @type {Record<string, (message: any) => boolean>} */
const SHAPES = {
  hello: ({ schema, node, history, events }) =>
    typeof schema === 'number' && isObject(node) && Array.isArray(history) && Array.isArray(events),
  snapshot: ({ snapshot }) => isSnapshot(snapshot),
  log: ({ line }) => typeof line === 'string',
  done: ({ command, error }) => typeof command === 'string' && (error === null || typeof error === 'string'),
}

/** @param {string} line @returns {StatsMessage | null} null: an unknown type @throws {Error} not a message */
export function readMessage(line) {
  let message
  try {
    message = JSON.parse(line)
  } catch {
    throw new Error('not a Halley stats stream: a line is not JSON')
  }
  if (!isObject(message) || typeof message.type !== 'string')
    throw new Error('not a Halley stats stream: a line is not a message')
  const fits = Object.hasOwn(SHAPES, message.type) ? SHAPES[message.type] : null
  if (fits === null) return null
  if (!fits(message)) throw new Error(`not a Halley stats stream: invalid ${message.type}`)
  return message
}
