import http from 'node:http'
import https from 'node:https'
import { Link, RefusedError } from './link.js'

/** @import { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http' */
/** @import { Source, SourceEvent } from './link.js' */

const DEFAULT_PREFIX = '/admin'
/** Timeout of a connection without data, ms; the stream sends a message every second. */
const DATA_TIMEOUT = 15_000
/** Maximum characters of a response, except the stream. */
const MAX_RESPONSE = 64 * 1024

/**
 * A remote gateway, over its admin endpoints: logs in with the admin key, then reads one endless response.
 * @implements {Source}
 */
export class HttpSource {
  /** @type {ClientRequest | null} */
  #request = null
  #token = ''
  #base
  #key
  #ca
  #link = new Link(() => this.#connect())

  /**
   * @param {string} url of the gateway; its path, if any, is the prefix of the admin endpoints
   * @param {string} key the gateway's admin.password
   * @param {string} [ca] trusted certificates, PEM; default: those of Node.js
   */
  constructor(url, key, ca) {
    const { protocol, host, pathname } = new URL(url)
    const prefix = pathname.replace(/\/+$/, '')
    this.#base = `${protocol}//${host}${prefix === '' ? DEFAULT_PREFIX : prefix}`
    this.#key = key
    this.#ca = ca
    this.name = this.#base
  }

  /** @param {(event: SourceEvent) => void} listener */
  start(listener) {
    this.#link.start(listener)
  }

  close() {
    this.#link.close()
    this.#request?.destroy()
  }

  /** @param {import('../../src/metrics/schema.js').StatsCommand} command */
  send(command) {
    if (this.#token === '') return this.#link.answer(command.type, 'not connected to a gateway')
    this.#call('POST', '/api/command', command).then(
      ({ status, body }) => this.#link.answer(command.type, body?.error ?? errorOf(status)),
      error => this.#link.answer(command.type, error.message),
    )
  }

  async #connect() {
    try {
      if (this.#token === '') await this.#logIn()
      if (!this.#link.closed) await this.#stream()
    } catch (error) {
      this.#link.ended(error)
    }
  }

  async #logIn() {
    const { status, headers, body } = await this.#call('POST', '/api/login', { password: this.#key })
    if (status === 401) throw new RefusedError('the gateway refused this admin key')
    if (status === 429) {
      const seconds = Number(headers['retry-after']) || 30
      throw new RefusedError(
        `too many logins with a wrong admin key; the gateway refuses logins for ${seconds} s`,
        seconds * 1000,
      )
    }
    if (status === 404)
      throw new RefusedError('the gateway has no admin endpoints here (admin.password, admin.handler_prefix)')
    if (status !== 200 || typeof body?.token !== 'string')
      throw new Error(errorOf(status) ?? 'invalid response to the login')
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
          return reject(new Error(errorOf(response.statusCode ?? 0) ?? 'the gateway has ended the session'))
        }
        response.on('data', chunk => {
          try {
            this.#link.data(chunk)
          } catch (error) {
            request.destroy()
            reject(error)
          }
        })
        response.on('error', reject)
        response.on('close', () => reject(new Error('the gateway has closed the connection')))
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
          if (text.length > MAX_RESPONSE) request.destroy(new Error('the response is too long'))
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

  /**
   * Creates a request; the caller ends it.
   * @param {string} method @param {string} path @param {(response: IncomingMessage) => void} onResponse
   */
  #newRequest(method, path, onResponse) {
    const url = new URL(`${this.#base}${path}`)
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
  status === 200 ? null : status === 401 ? 'the session has expired' : `the gateway answered HTTP ${status}`

const UNREACHABLE = 'the host cannot be reached'
const NO_TLS = 'there is no TLS on this port: use http://'
const UNTRUSTED = 'the certificate is not trusted: trust it with --ca FILE'

/** Codes of Node.js and OpenSSL -> reason. @type {Readonly<Record<string, string>>} */
const REASONS = Object.freeze({
  ECONNREFUSED: 'there is no gateway',
  ECONNRESET: 'the gateway has closed the connection',
  ENOTFOUND: 'unknown host',
  EAI_AGAIN: 'unknown host, or no name server answers',
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
  if (code.startsWith('HPE_')) return 'this is not an HTTP server'
  // OpenSSL takes the answer of a server without TLS for a TLS record.
  if (/wrong version number|packet length too long|record layer/.test(message)) return NO_TLS
  return REASONS[code] ?? message.split('\n')[0]
}
