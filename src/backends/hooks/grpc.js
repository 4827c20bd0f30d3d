// Calls of gRPC proxies: one unary call for each event. Endpoints with the same settings share one HTTP/2 connection.

import { isUtf8 } from 'node:buffer'
import { createRequire } from 'node:module'
import { createSecureContext } from 'node:tls'
import { packageVersion } from '../../base/version.js'
import { CallFailed } from '../../clients/hooks/contract.js'
import { Wire, WireReader, WireWriter } from '../../clients/protocol/wire.js'
import { tlsOptions } from '../../config/pem.js'
import { isNeverForwarded } from '../../config/proxies.js'
import { answerOf } from './proxy-answers.js'
import { ANSWERS, REQUESTS } from './proxy-messages.js'

/** @import { CancelToken } from '../../clients/hooks/events.js' */
/** @import { ClientTls, ProxyOptions } from '../../config/options.js' */
/** @import { ProxyCall, ProxyTransport } from './proxies.js' */
/** @import { ProxyAnswer } from './proxy-answers.js' */
/** @import { Field, Kind } from './proxy-messages.js' */
/** @import { ChannelCredentials, Client, Metadata, ServiceError } from '@grpc/grpc-js' */

// Strict decoding of Protobuf messages (reasons: protocol/wire.js): a backend must not harm a worker.

/** @typedef {{name: string, kind: Kind, inner: Shape}} ShapeField */
/** @typedef {ReadonlyMap<number, ShapeField>} Shape fields of a message by number */

/** @param {Field[]} fields @returns {Shape} */
const shapeOf = fields =>
  new Map(
    fields.map(({ name, number, kind, inner }) => [
      number,
      { name, kind, inner: kind === 'map' ? entryOf(inner) : shapeOf(inner) },
    ]),
  )

/** @param {Field[]} inner values of a map; empty: texts @returns {Shape} an entry of the map */
const entryOf = inner =>
  new Map([
    [1, { name: 'key', kind: 'text', inner: new Map() }],
    [2, { name: 'value', kind: inner.length > 0 ? 'message' : 'text', inner: shapeOf(inner) }],
  ])

const SHAPES = Object.freeze(
  Object.fromEntries(Object.entries(ANSWERS).map(([event, fields]) => [event, shapeOf(fields)])),
)

/** Paths of the methods, by event. @type {Readonly<Record<string, string>>} */
const METHODS = Object.freeze({
  connect: '/centrifugal.centrifugo.proxy.CentrifugoProxy/Connect',
  refresh: '/centrifugal.centrifugo.proxy.CentrifugoProxy/Refresh',
  subscribe: '/centrifugal.centrifugo.proxy.CentrifugoProxy/Subscribe',
  publish: '/centrifugal.centrifugo.proxy.CentrifugoProxy/Publish',
  map_publish: '/centrifugal.centrifugo.proxy.CentrifugoProxy/MapPublish',
  map_remove: '/centrifugal.centrifugo.proxy.CentrifugoProxy/MapRemove',
  shared_poll_refresh: '/centrifugal.centrifugo.proxy.CentrifugoProxy/SharedPollRefresh',
  cache_empty: '/centrifugal.centrifugo.proxy.CentrifugoProxy/NotifyCacheEmpty',
  state: '/centrifugal.centrifugo.proxy.CentrifugoProxy/NotifyChannelState',
  rpc: '/centrifugal.centrifugo.proxy.CentrifugoProxy/RPC',
  sub_refresh: '/centrifugal.centrifugo.proxy.CentrifugoProxy/SubRefresh',
  disconnected: '/halley.proxy.HalleyNotices/Disconnected',
  unsubscribed: '/halley.proxy.HalleyNotices/Unsubscribed',
})

/** @param {WireWriter} out its content is replaced @param {string} event @param {Record<string, any>} fields */
function encodeRequest(out, event, fields) {
  out.clear()
  for (const name in fields) {
    const value = fields[name]
    if (value === undefined) continue
    const number = REQUESTS[event][name]
    if (name === 'data' || name === 'meta') out.bytes(number, Buffer.from(value))
    else if (name === 'duration') out.double(number, value)
    else if (name === 'code') out.uint(number, value)
    else if (name === 'labels')
      for (const label in value) {
        out.open(number).text(1, label).text(2, value[label])
        out.close()
      }
    else if (name === 'items')
      for (const { key, version } of value) {
        out.open(number).text(1, key).uint64(2, version)
        out.close()
      }
    else if (name === 'events')
      for (const { time_ms, channel, type, id } of value) {
        out.open(number).uint(1, time_ms).text(2, channel).text(3, type).text(100, id)
        out.close()
      }
    else for (const text of [value].flat()) out.text(number, text)
  }
  return out.finish()
}

/** Wire types of all other kinds are Wire.LENGTH. @type {Readonly<Partial<Record<Kind, number>>>} */
const WIRES = Object.freeze({
  bool: Wire.VARINT,
  uint32: Wire.VARINT,
  int64: Wire.VARINT,
  uint64: Wire.VARINT,
})

/** @param {string} reason @returns {CallFailed} */
const wrong = reason => new CallFailed(`the response ${reason}`, 'response')

/**
 * @param {WireReader} reader at the first byte of the message; reads to its end
 * @param {Shape} shape @param {Record<string, any>} into merges repeated fields, or keeps the last
 */
function readMessage(reader, shape, into) {
  while (!reader.done) {
    const tag = reader.tag()
    const field = shape.get(tag >>> 3)
    const wire = tag & 7
    if (field === undefined) reader.skip(wire)
    else if (wire !== (WIRES[field.kind] ?? Wire.LENGTH))
      throw wrong(`has a field of the wrong type in ${field.name}`)
    else READERS[field.kind](reader, field, into)
  }
  return into
}

/** @param {WireReader} reader at an inner message @param {Shape} shape @param {Record<string, any>} into */
function readInner(reader, shape, into) {
  const outer = reader.enter()
  readMessage(reader, shape, into)
  reader.leave(outer)
  return into
}

/** @param {WireReader} reader @param {string} name @returns {string} */
function textOf(reader, name) {
  const bytes = reader.bytes()
  if (!isUtf8(bytes)) throw wrong(`has invalid UTF-8 in ${name}`)
  return bytes.toString()
}

/** Deeper filters are invalid anyway. */
const MAX_FILTER_DEPTH = 64
const FILTER_TEXTS = ['', 'op', 'key', 'cmp', 'val']

/** @param {WireReader} reader at a FilterNode @param {Record<string, any>} node @param {number} depth */
function readFilterNode(reader, node, depth) {
  if (depth > MAX_FILTER_DEPTH) throw wrong('has a filter that is nested too deeply')
  const outer = reader.enter()
  while (!reader.done) {
    const tag = reader.tag()
    const number = tag >>> 3
    if (number > 6) throw wrong('has an unknown field in server_tags_filter')
    if ((tag & 7) !== Wire.LENGTH) throw wrong('has a field of the wrong type in server_tags_filter')
    if (number === 6) {
      node.nodes ??= []
      node.nodes.push(readFilterNode(reader, {}, depth + 1))
    } else if (number === 5) {
      node.vals ??= []
      node.vals.push(textOf(reader, 'vals'))
    } else node[FILTER_TEXTS[number]] = textOf(reader, FILTER_TEXTS[number])
  }
  reader.leave(outer)
  return node
}

/** @type {Record<Kind, (reader: WireReader, field: ShapeField, into: Record<string, any>) => void>} */
const READERS = {
  text(reader, { name }, into) {
    into[name] = textOf(reader, name)
  },
  texts(reader, { name }, into) {
    into[name] ??= []
    into[name].push(textOf(reader, name))
  },
  json(reader, { name }, into) {
    const bytes = reader.bytes()
    // Empty bytes equal absence; proto3 does not distinguish them.
    into[name] = bytes.length > 0 ? bytes : undefined
  },
  bool(reader, { name }, into) {
    into[name] = reader.bigUint64() !== 0n
  },
  uint32(reader, { name }, into) {
    into[name] = reader.uint32()
  },
  int64(reader, { name }, into) {
    into[name] = reader.int64()
  },
  uint64(reader, { name }, into) {
    into[name] = reader.bigUint64()
  },
  message(reader, { name, inner }, into) {
    into[name] ??= {}
    readInner(reader, inner, into[name])
  },
  messages(reader, { name, inner }, into) {
    into[name] ??= []
    into[name].push(readInner(reader, inner, {}))
  },
  map(reader, { name, inner }, into) {
    const { key = '', value } = readInner(reader, inner, {})
    // A null prototype: `__proto__` is a name like any other.
    into[name] ??= Object.create(null)
    into[name][key] = value ?? (inner.get(2)?.kind === 'text' ? '' : {})
  },
  // Present even if it is empty.
  filter(reader, { name }, into) {
    into[name] = readFilterNode(reader, {}, 0)
  },
}

/** @param {string} event @param {Buffer} bytes response; the result has views of it @throws {CallFailed} */
function decodeAnswer(event, bytes) {
  try {
    return answerOf(readMessage(new WireReader(bytes), SHAPES[event], {}))
  } catch (error) {
    throw error instanceof CallFailed ? error : wrong('is not a valid message')
  }
}

/** @typedef {typeof import('@grpc/grpc-js')} Grpc */

const require = createRequire(import.meta.url)

/** Reconnect backoff and minimum interval of name resolutions, ms. */
const RECONNECT_MS = Object.freeze({ first: 100, last: 1000, resolve: 1000 })
/** Consecutive timeouts after which a connection is replaced: the host may be down. */
const MAX_UNANSWERED = 5
const MAX_DETAILS = 200

/** gRPC over HTTP/2, "Requests": valid names and values. `grpc-` is reserved. */
const NAME = /^(?!grpc-)[0-9a-z_.-]+$/
const VALUE = /^[ -~]*$/
/** HTTP/1.1 headers: node:http2 throws. */
const FORBIDDEN = new Set(['http2-settings', 'proxy-connection'])
/** Bytes per call. Larger metadata would close the shared connection: servers reject it in mid-HPACK. */
const MAX_METADATA = 65536
/** Details of the library for RESOURCE_EXHAUSTED; backends may send this status for other reasons. */
const TOO_LARGE = /^Received message (?:larger than max|that decompresses to)/
const WRITER_SIZE = 4096

/** @returns {Grpc} @throws {Error} the optional peer dependency is missing */
function loadGrpc() {
  try {
    return require('@grpc/grpc-js')
  } catch (error) {
    if (error.code !== 'MODULE_NOT_FOUND') throw error
    throw new Error('endpoint is a gRPC target, which requires a package: npm install @grpc/grpc-js')
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

class Connection {
  #grpc
  #client
  #calls = 0
  #unanswered = 0
  /** Set by `close`. @type {((value: void) => void) | null} */
  #closed = null

  /** @param {Grpc} grpc @param {ConstructorParameters<typeof Client>} args */
  constructor(grpc, args) {
    this.#grpc = grpc
    this.#client = new grpc.Client(...args)
  }

  get isLost() {
    return this.#unanswered >= MAX_UNANSWERED
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
      /** @type {(error: ServiceError | null, answer?: Buffer) => void} */
      const done = (error, answer) => {
        if (!token.cancelled) {
          token.onCancel = null
          const failure = error && this.#failureOf(error)
          this.#count(failure)
          if (failure === null) resolve(/** @type {Buffer} */ (answer))
          else reject(failure)
        }
        this.#calls--
        this.#closeIfIdle()
      }
      const call = this.#client.makeUnaryRequest(path, same, same, request, metadata, options, done)
      token.onCancel = () => {
        this.#count(token.reason)
        reject(token.reason)
        call.cancel()
      }
    })
  }

  /** @param {Error | null} failure of a call; null: success */
  #count(failure) {
    if (failure === null) this.#unanswered = 0
    // A disconnected client does not indicate a backend failure.
    else if (failure instanceof CallFailed)
      this.#unanswered = failure.kind === 'timeout' ? this.#unanswered + 1 : 0
  }

  /** @param {ServiceError} error @returns {CallFailed} */
  #failureOf({ code, details }) {
    const { status, connectivityState } = this.#grpc
    const text = details.slice(0, MAX_DETAILS)
    if (code === status.DEADLINE_EXCEEDED) return new CallFailed('timed out', 'timeout')
    if (code === status.RESOURCE_EXHAUSTED && TOO_LARGE.test(details))
      return new CallFailed('the response is larger than max_response_size', 'size')
    const connected = this.#client.getChannel().getConnectivityState(false) === connectivityState.READY
    if (code === status.UNAVAILABLE && !connected) return new CallFailed(text, 'unreachable')
    const kind = code === status.UNAVAILABLE ? 'unavailable' : 'status'
    return new CallFailed(`status ${status[code]}: ${text}`, kind)
  }

  #closeIfIdle() {
    if (this.#closed === null || this.#calls > 0) return
    this.#client.close()
    this.#closed()
  }

  /** Closes after pending calls. @returns {Promise<void>} */
  close() {
    return new Promise(resolve => {
      this.#closed = resolve
      this.#closeIfIdle()
    })
  }
}

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
      // The proxy handles retries.
      'grpc.enable_retries': 0,
      'grpc.service_config_disable_resolution': 1,
      // As over HTTP: `https_proxy` etc. have no effect.
      'grpc.enable_http_proxy': 0,
      // With a local pool, connections close with the client, not seconds later.
      'grpc.use_local_subchannel_pool': 1,
      ...(compression ? { 'grpc.default_compression_algorithm': grpc.compressionAlgorithms.gzip } : {}),
      ...(tls.enabled && tls.server_name !== '' ? { 'grpc.ssl_target_name_override': tls.server_name } : {}),
    }
    this.#open = () => new Connection(grpc, [targetOf(endpoint), credentials, options])
    this.#connection = this.#open()
  }

  /** As Connection.call. @param {Parameters<Connection['call']>} args */
  call(...args) {
    if (this.#connection.isLost) {
      this.#connection.close()
      this.#connection = this.#open()
    }
    return this.#connection.call(...args)
  }

  close() {
    return this.#connection.close()
  }
}

export class GrpcChannels {
  /** @type {Map<string, Channel>} */
  #all = new Map()

  /** @param {ProxyOptions} options @returns {ProxyTransport} @throws {Error} naming a key, or the missing package */
  transport(options) {
    const { endpoint, grpc, max_response_size } = options
    const key = JSON.stringify([targetOf(endpoint), grpc.tls, grpc.compression, max_response_size])
    let channel = this.#all.get(key)
    if (channel === undefined || channel.users === 0)
      this.#all.set(key, (channel = new Channel(loadGrpc(), options)))
    channel.users++
    return grpcTransport(channel, options)
  }
}

/** @param {Channel} channel @param {ProxyOptions} options of the proxy @returns {ProxyTransport} */
function grpcTransport(channel, { timeout, grpc: { credentials_key: key, credentials_value } }) {
  const writer = new WireWriter(WRITER_SIZE)
  const credentials = key.toLowerCase()
  const hasCredentials =
    NAME.test(credentials) && !FORBIDDEN.has(credentials) && !isNeverForwarded(credentials)

  /** @param {ProxyCall['headers']} headers @returns {Metadata} @throws {CallFailed} kind `data` */
  function toMetadata(headers) {
    const metadata = new channel.grpc.Metadata()
    let size = 0
    for (const [name, values] of headers) {
      if (!NAME.test(name) || FORBIDDEN.has(name)) continue
      // One value per name: node:http2 throws for many names with several, which closes the connection.
      const value = values.join(name === 'cookie' ? '; ' : ', ')
      size += name.length + value.length
      if (size > MAX_METADATA)
        throw new CallFailed(`the client's headers have more than ${MAX_METADATA} bytes`, 'data')
      if (name.endsWith('-bin') || VALUE.test(value)) metadata.set(name, metadataOf(name, value))
    }
    // Last: clients must not override it.
    if (hasCredentials) metadata.set(credentials, metadataOf(credentials, credentials_value))
    return metadata
  }

  /** Cached metadata: proxies that forward no client headers always pass the same map. */
  let last = { headers: /** @type {ProxyCall['headers']} */ (new Map()), metadata: toMetadata(new Map()) }
  return {
    protocol: 'grpc',
    async call(event, fields, { headers, token }) {
      const request = encodeRequest(writer, event, fields)
      if (last.headers !== headers) last = { headers, metadata: toMetadata(headers) }
      const { metadata } = last
      const answer = await channel.call(METHODS[event], request, metadata, timeout || 1000, token)
      return decodeAnswer(event, answer)
    },
    async close() {
      if (--channel.users === 0) await channel.close()
    },
  }
}
