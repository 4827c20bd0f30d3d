import { connect } from 'node:net'
import { connect as connectSecurely } from 'node:tls'
import { formatDuration } from '../../../config/values.js'

/**
 * @typedef {object} Where
 * @property {string} [host]
 * @property {number} [port]
 * @property {string} [path] of a Unix socket, instead of host and port
 * @property {import('node:tls').ConnectionOptions} [tls]
 */

/** An error reply of Redis. */
export class Refusal extends Error {}

/** A missing answer; the message completes `cannot reach redis at ...: `. */
export class Unreachable extends Error {}

const UNTRUSTED = 'its certificate is not signed by a trusted authority (server_ca_pem)'
const WANTS_CERTIFICATE = 'it requires a client certificate (cert_pem, key_pem)'

/** @type {Readonly<Record<string, string>>} */
const REASONS = Object.freeze({
  ECONNREFUSED: 'connection refused',
  ENOTFOUND: 'host not found',
  EAI_AGAIN: 'host name cannot be resolved',
  ETIMEDOUT: 'no answer',
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'no route to the host',
  ENOENT: 'no such socket',
  EACCES: 'permission denied',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet',
  DEPTH_ZERO_SELF_SIGNED_CERT: UNTRUSTED,
  SELF_SIGNED_CERT_IN_CHAIN: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
  CERT_SIGNATURE_FAILURE: UNTRUSTED,
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another host (server_name)',
  ERR_SSL_WRONG_VERSION_NUMBER: 'it does not speak TLS',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'it does not speak TLS',
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: WANTS_CERTIFICATE,
  ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE: WANTS_CERTIFICATE,
  // As of OpenSSL 3.5.
  'ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE': WANTS_CERTIFICATE,
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA: 'it does not trust cert_pem',
  ERR_SSL_TLSV13_ALERT_UNKNOWN_CA: 'it does not trust cert_pem',
})

/** @param {string} message of an OpenSSL error during a write @returns {string} */
function reasonOfAlert(message) {
  if (/certificate required|handshake failure/.test(message)) return WANTS_CERTIFICATE
  return /unknown ca/.test(message) ? 'it does not trust cert_pem' : 'it does not speak TLS'
}

const INCOMPLETE = Symbol('incomplete')
const CRLF = '\r\n'

/**
 * Reads one reply (RESP2 or RESP3). Maps become flat lists; errors are returned, not thrown.
 * @param {Buffer} bytes @param {{at: number}} position moved to the end of the reply
 * @returns {any} INCOMPLETE if bytes are missing
 * @throws {Error} for bytes that Redis never sends
 */
function parse(bytes, position) {
  const end = bytes.indexOf(CRLF, position.at)
  if (end === -1) return INCOMPLETE
  const type = String.fromCharCode(bytes[position.at])
  const line = bytes.toString('utf8', position.at + 1, end)
  position.at = end + CRLF.length
  switch (type) {
    case '+':
      return line
    case '-':
      return new Refusal(line)
    case ':':
      return Number(line)
    case ',':
    case '(':
    case '#':
      return line
    case '_':
      return null
    case '$':
    case '=':
      return parseText(bytes, position, Number(line), type === '=')
    case '*':
    case '~':
    case '>':
      return parseList(bytes, position, Number(line))
    case '%':
      return parseList(bytes, position, 2 * Number(line))
    default:
      throw new Error('it is not a Redis server')
  }
}

/**
 * @param {Buffer} bytes @param {{at: number}} position @param {number} length -1: null
 * @param {boolean} verbatim skip three letters and a colon
 */
function parseText(bytes, position, length, verbatim) {
  if (length < 0) return null
  const start = position.at
  if (bytes.length < start + length + CRLF.length) return INCOMPLETE
  position.at += length + CRLF.length
  return bytes.toString('utf8', verbatim ? start + 4 : start, start + length)
}

/** @param {Buffer} bytes @param {{at: number}} position @param {number} length -1: null */
function parseList(bytes, position, length) {
  if (length < 0) return null
  const list = []
  while (list.length < length) {
    const item = parse(bytes, position)
    if (item === INCOMPLETE) return INCOMPLETE
    list.push(item)
  }
  return list
}

/** A short-lived client. Unlike ioredis it never retries, and it reports why a connection failed. */
export class ProbeClient {
  #socket
  #bytes = Buffer.alloc(0)
  #connectTimeout
  #ioTimeout
  #secure
  /** Whether the server has accepted the connection; TLS comes after that. */
  #accepted = false
  /** @type {Unreachable | null} reason of the end */
  #ended = null
  /** @type {((error: Error | null, reply?: any) => void)[]} callbacks in the order of their commands */
  #waiting = []

  /** @param {Where} where @param {number} connectTimeout ms, TLS included @param {number} ioTimeout ms */
  constructor({ tls, ...where }, connectTimeout, ioTimeout) {
    this.#connectTimeout = connectTimeout
    this.#ioTimeout = ioTimeout
    this.#secure = tls !== undefined
    const address = /** @type {any} */ (where)
    this.#socket = tls === undefined ? connect(address) : connectSecurely({ ...address, ...tls })
    this.#socket.on('connect', () => {
      this.#accepted = true
      if (!this.#secure) this.#answer(undefined)
    })
    this.#socket.on('secureConnect', () => this.#answer(undefined))
    this.#socket.on('error', error => this.#end(this.#reasonOf(error)))
    this.#socket.on('close', () => this.#end(this.#reasonOf({ code: 'ECONNRESET' })))
    this.#socket.on('data', chunk => this.#receive(chunk))
  }

  /** Called first. @returns {Promise<void>} resolves when commands can be sent @throws {Unreachable} */
  open() {
    return this.#wait(this.#connectTimeout, () => {
      const unanswered = `no answer within ${formatDuration(this.#connectTimeout)} (connect_timeout)`
      return this.#accepted ? `it does not speak TLS: ${unanswered}` : unanswered
    })
  }

  /** @param {...(string | number)} args a command @returns {Promise<any>} the reply @throws {Refusal | Unreachable} */
  command(...args) {
    const texts = args.map(arg => `$${Buffer.byteLength(`${arg}`)}${CRLF}${arg}${CRLF}`)
    this.#socket.write(`*${args.length}${CRLF}${texts.join('')}`)
    return this.#wait(
      this.#ioTimeout,
      () =>
        `it accepts connections, but did not answer within ${formatDuration(this.#ioTimeout)} (io_timeout)`,
    )
  }

  close() {
    this.#end('closed')
  }

  /** @param {number} timeout ms @param {() => string} late reason of a timeout @returns {Promise<any>} */
  #wait(timeout, late) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#end(late()), timeout)
      this.#waiting.push((error, reply) => {
        clearTimeout(timer)
        if (error) reject(error)
        else resolve(reply)
      })
      if (this.#ended) this.#end('')
    })
  }

  /** @param {any} reply */
  #answer(reply) {
    const waiting = this.#waiting.shift()
    if (reply instanceof Refusal) waiting?.(reply)
    else waiting?.(null, reply)
  }

  /** @param {Buffer} chunk */
  #receive(chunk) {
    this.#bytes = Buffer.concat([this.#bytes, chunk])
    try {
      for (;;) {
        const position = { at: 0 }
        const reply = parse(this.#bytes, position)
        if (reply === INCOMPLETE) return
        this.#bytes = this.#bytes.subarray(position.at)
        this.#answer(reply)
      }
    } catch (error) {
      this.#end(error.message)
    }
  }

  /** @param {string} reason */
  #end(reason) {
    this.#ended ??= new Unreachable(reason)
    this.#socket.destroy()
    for (const waiting of this.#waiting.splice(0)) waiting(this.#ended)
  }

  /** @param {any} error */
  #reasonOf(error) {
    if (error.code === 'EPROTO') return reasonOfAlert(error.message)
    if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') return REASONS[error.code] ?? error.message
    if (!this.#secure) return 'it closed the connection without an answer (does it require TLS: rediss://?)'
    return 'it closed the connection without an answer (does it speak TLS, does it require a certificate?)'
  }
}
