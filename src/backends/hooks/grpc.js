// Calls of gRPC proxies: one unary call for each event. Endpoints with the same target and settings share a channel,
// which is one HTTP/2 connection of the worker.

import { createRequire } from 'node:module'
import { createSecureContext } from 'node:tls'
import { packageVersion } from '../../base/version.js'
import { CallFailed } from '../../clients/hooks/contract.js'
import { WireWriter } from '../../clients/protocol/wire.js'
import { tlsOptions } from '../../config/pem.js'
import { isNeverForwarded } from '../../config/proxies.js'
import { decodeAnswer, encodeRequest, METHODS } from './grpc-messages.js'

/** @import { ClientTls, ProxyOptions } from '../../config/options.js' */
/** @import { ChannelCredentials, Client, Metadata, ServiceError } from '@grpc/grpc-js' */
/** @import { CancelToken } from '../../clients/hooks/events.js' */
/** @import { ProxyAnswer } from './proxy-answers.js' */
/** @import { ProxyCall, ProxyTransport } from './proxies.js' */

/** @typedef {typeof import('@grpc/grpc-js')} Grpc */

const require = createRequire(import.meta.url)

/** Time between two attempts to connect to a target that is down, and to resolve its name, ms. */
const RECONNECT_MS = Object.freeze({ first: 100, last: 1000, resolve: 1000 })
/** Calls in a row without an answer in time after which a connection is given up: its host may be gone. */
const MAX_SILENT_CALLS = 5
const MAX_DETAILS = 200

/** gRPC over HTTP/2, "Requests": other names and values cannot be sent. `grpc-` is reserved. */
const NAME = /^(?!grpc-)[0-9a-z_.-]+$/
const VALUE = /^[ -~]*$/
/** Of HTTP/1.1: node:http2 throws. */
const FORBIDDEN = new Set(['http2-settings', 'proxy-connection'])
/**
 * Bytes of one call. Larger metadata would end the connection of all calls: servers refuse it in the middle of HPACK.
 */
const MAX_METADATA = 65536
/** Details of the library for the status RESOURCE_EXHAUSTED, which a backend may send for other reasons. */
const TOO_LARGE = /^Received message (?:larger than max|that decompresses to)/
/** Initial bytes; it grows for larger requests. */
const WRITER_SIZE = 4096

/** @returns {Grpc} @throws {Error} the optional peer dependency is missing */
function loadGrpc() {
  try {
    // Loaded on first use: gateways without gRPC proxies do not need it.
    return require('@grpc/grpc-js')
  } catch (error) {
    if (error.code !== 'MODULE_NOT_FOUND') throw error
    throw new Error('endpoint is a gRPC target, which needs a package: npm install @grpc/grpc-js')
  }
}

/** @param {string} endpoint @returns {string} target in the syntax of gRPC */
function targetOf(endpoint) {
  if (/^(?:dns|ipv4|ipv6|unix):/.test(endpoint)) return endpoint
  return `dns:${endpoint.replace(/^grpc:\/\//i, '')}`
}

/** @param {Grpc} grpc @param {ClientTls} tls @returns {ChannelCredentials} @throws {Error} */
function credentialsOf({ credentials }, tls) {
  if (!tls.enabled) return credentials.createInsecure()
  const { ca, cert, key, rejectUnauthorized } = tlsOptions(tls)
  const context = createSecureContext({ ca, cert, key, minVersion: 'TLSv1.2' })
  return credentials.createFromSecureContext(context, { rejectUnauthorized })
}

/** @param {Buffer} bytes */
const same = bytes => bytes

/** @param {string} name @param {string} value @returns {string | Buffer} */
const metadataOf = (name, value) => (name.endsWith('-bin') ? Buffer.from(value, 'latin1') : value)

/** A client of the library, which has one connection to its target. */
class Connection {
  #grpc
  #client
  /** Calls under way. */
  #calls = 0
  /** Calls in a row without an answer in time. */
  #silent = 0
  #closing = false
  /** @type {(value: void) => void} */
  #closed = () => {}

  /** @param {Grpc} grpc @param {ConstructorParameters<typeof Client>} args */
  constructor(grpc, args) {
    this.#grpc = grpc
    this.#client = new grpc.Client(...args)
  }

  /** Whether its host may be gone without a word. */
  get silent() {
    return this.#silent >= MAX_SILENT_CALLS
  }

  /**
   * @param {string} path @param {Buffer} request @param {Metadata} metadata @param {number} timeout ms
   * @param {CancelToken} token @returns {Promise<Buffer>}
   */
  call(path, request, metadata, timeout, token) {
    if (token.cancelled) return Promise.reject(token.reason)
    this.#calls++
    return new Promise((resolve, reject) => {
      const options = { deadline: Date.now() + timeout }
      const call = this.#client.makeUnaryRequest(
        path,
        same,
        same,
        request,
        metadata,
        options,
        (error, answer) => {
          if (!token.cancelled) {
            token.onCancel = null
            const failure = error && this.#failureOf(error)
            this.#heard(failure)
            if (failure === null) resolve(/** @type {Buffer} */ (answer))
            else reject(failure)
          }
          this.#calls--
          this.#closeIfIdle()
        },
      )
      token.onCancel = () => {
        this.#heard(token.reason)
        reject(token.reason)
        call.cancel()
      }
    })
  }

  /** @param {Error | null} failure of a call; null: it was answered */
  #heard(failure) {
    if (failure === null) this.#silent = 0
    // If the client has left, nobody knows.
    else if (failure instanceof CallFailed) this.#silent = failure.kind === 'timeout' ? this.#silent + 1 : 0
  }

  /** @param {ServiceError} error @returns {CallFailed} */
  #failureOf({ code, details }) {
    const { status, connectivityState } = this.#grpc
    const text = details.slice(0, MAX_DETAILS)
    if (code === status.DEADLINE_EXCEEDED) return new CallFailed('no answer in time', 'timeout')
    if (code === status.RESOURCE_EXHAUSTED && TOO_LARGE.test(details))
      return new CallFailed('the answer is larger than max_response_size', 'size')
    const connected = this.#client.getChannel().getConnectivityState(false) === connectivityState.READY
    if (code === status.UNAVAILABLE && !connected) return new CallFailed(text, 'unreachable')
    const kind = code === status.UNAVAILABLE ? 'unavailable' : 'status'
    return new CallFailed(`status ${status[code]}: ${text}`, kind)
  }

  #closeIfIdle() {
    if (!this.#closing || this.#calls > 0) return
    this.#client.close()
    this.#closed()
  }

  /** Calls under way end first. @returns {Promise<void>} */
  close() {
    return new Promise(resolve => {
      this.#closing = true
      this.#closed = resolve
      this.#closeIfIdle()
    })
  }
}

/** The connection of all proxies with one target and the same settings. */
class Channel {
  #open
  /** @type {Connection} */
  #connection
  users = 0

  /** @param {Grpc} grpc @param {ProxyOptions} options of a proxy @throws {Error} */
  constructor(grpc, { endpoint, grpc: { tls, compression }, max_response_size }) {
    this.grpc = grpc
    const credentials = credentialsOf(grpc, tls)
    const options = {
      'grpc.primary_user_agent': `Halley/${packageVersion()}`,
      'grpc.max_receive_message_length': max_response_size,
      'grpc.max_send_message_length': -1,
      'grpc.initial_reconnect_backoff_ms': RECONNECT_MS.first,
      'grpc.max_reconnect_backoff_ms': RECONNECT_MS.last,
      'grpc.dns_min_time_between_resolutions_ms': RECONNECT_MS.resolve,
      // What to do with failures is for the proxy to decide.
      'grpc.enable_retries': 0,
      'grpc.service_config_disable_resolution': 1,
      // As over HTTP: `https_proxy` and the like have no effect.
      'grpc.enable_http_proxy': 0,
      // Of its own, so that it ends with the client and not some seconds later.
      'grpc.use_local_subchannel_pool': 1,
      ...(compression ? { 'grpc.default_compression_algorithm': grpc.compressionAlgorithms.gzip } : {}),
      ...(tls.enabled && tls.server_name !== '' ? { 'grpc.ssl_target_name_override': tls.server_name } : {}),
    }
    this.#open = () => new Connection(grpc, [targetOf(endpoint), credentials, options])
    this.#connection = this.#open()
  }

  /** As Connection.call. @param {Parameters<Connection['call']>} args */
  call(...args) {
    if (this.#connection.silent) {
      this.#connection.close()
      this.#connection = this.#open()
    }
    return this.#connection.call(...args)
  }

  close() {
    return this.#connection.close()
  }
}

/** The channels of one configuration. */
export class GrpcChannels {
  /** @type {Map<string, Channel>} */
  #all = new Map()

  /**
   * @param {ProxyOptions} options of a proxy @returns {GrpcTransport}
   * @throws {Error} naming a key, or the package that is missing
   */
  transport(options) {
    const { endpoint, grpc, max_response_size } = options
    const key = JSON.stringify([targetOf(endpoint), grpc.tls, grpc.compression, max_response_size])
    let channel = this.#all.get(key)
    // One without users is closed.
    if (channel === undefined || channel.users === 0)
      this.#all.set(key, (channel = new Channel(loadGrpc(), options)))
    channel.users++
    return new GrpcTransport(channel, options)
  }
}

/** @implements {ProxyTransport} */
class GrpcTransport {
  protocol = 'grpc'
  #channel
  #timeout
  #credentials
  #writer = new WireWriter(WRITER_SIZE)
  /** Metadata of most calls: proxies that forward no headers of clients always pass the same map. */
  #last

  /** @param {Channel} channel @param {ProxyOptions} options of the proxy */
  constructor(channel, { timeout, grpc: { credentials_key: key, credentials_value: value } }) {
    this.#channel = channel
    this.#timeout = timeout || 1000
    const name = key.toLowerCase()
    const sent = NAME.test(name) && !FORBIDDEN.has(name) && !isNeverForwarded(name)
    this.#credentials = sent ? { name, value: metadataOf(name, value) } : null
    /** @type {ProxyCall['headers']} */
    const headers = new Map()
    this.#last = { headers, metadata: this.#metadataOf(headers) }
  }

  /** @param {ProxyCall['headers']} headers @returns {Metadata} @throws {CallFailed} kind `data` */
  #metadataOf(headers) {
    const metadata = new this.#channel.grpc.Metadata()
    let size = 0
    for (const [name, values] of headers) {
      if (!NAME.test(name) || FORBIDDEN.has(name)) continue
      // One value for each name: node:http2 throws for many names with several, which would end the connection.
      const value = values.join(name === 'cookie' ? '; ' : ', ')
      size += name.length + value.length
      if (size > MAX_METADATA)
        throw new CallFailed(`the client's headers have more than ${MAX_METADATA} bytes`, 'data')
      if (name.endsWith('-bin') || VALUE.test(value)) metadata.set(name, metadataOf(name, value))
    }
    // Last: a client must not replace it.
    if (this.#credentials !== null) metadata.set(this.#credentials.name, this.#credentials.value)
    return metadata
  }

  /**
   * @param {string} event @param {Record<string, any>} fields @param {ProxyCall} call
   * @returns {Promise<ProxyAnswer>}
   */
  async call(event, fields, { headers, token }) {
    const request = encodeRequest(this.#writer, event, fields)
    if (this.#last.headers !== headers) this.#last = { headers, metadata: this.#metadataOf(headers) }
    const { metadata } = this.#last
    return decodeAnswer(
      event,
      await this.#channel.call(METHODS[event], request, metadata, this.#timeout, token),
    )
  }

  /** Calls under way end first. The last user of a channel closes it. */
  async close() {
    if (--this.#channel.users === 0) await this.#channel.close()
  }
}
