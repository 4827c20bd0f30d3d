// Event proxies: handlers that ask a backend over HTTP or gRPC. One backend is one proxy block, or one entry of
// `proxies`; it may serve several events. What all transports share is in proxy-requests.js (the fields),
// proxy-headers.js and proxy-answers.js (the meaning of answers); a transport encodes, calls and decodes.

import { setTimeout as wait } from 'node:timers/promises'
import { errors } from '../../base/errors.js'
import { CallFailed, NO_CHANNEL_HANDLERS, NO_HANDLERS } from '../../clients/hooks/contract.js'
import { HookEvent } from '../../clients/hooks/events.js'
import { isHttpEndpoint } from '../../config/proxies.js'
import { Breaker } from './breaker.js'
import { GrpcChannels } from './grpc.js'
import { HttpTransport } from './http.js'
import { faultOf, ignoredFields, isRefresh, readAnswer, UNREADABLE } from './proxy-answers.js'
import { HeaderLists } from './proxy-headers.js'
import { requests } from './proxy-requests.js'

/** @import { ChannelOptions, Config, ProxyOptions } from '../../config/options.js' */
/** @import { LimitedLog } from '../../base/log.js' */
/** @import { HookSeries, HookStats } from '../../metrics/hook-stats.js' */
/** @import { ChannelHandlers, Handler, Handlers } from '../../clients/hooks/contract.js' */
/** @import { CancelToken } from '../../clients/hooks/events.js' */
/** @import { ProxyAnswer } from './proxy-answers.js' */

/**
 * @typedef {object} ProxyCall
 * @property {ReadonlyMap<string, readonly string[]>} headers to send: name in lower case -> values
 * @property {CancelToken} token cancelled when nobody waits any more
 *
 * A way to call one backend. MUST reject with the reason of the token soon after it is cancelled, with a CallFailed for
 * what the backend or the network does wrong (kinds: `unreachable`, `unavailable`, `status`, `size`, `answer`), and
 * hold no more than `max_response_size` of an answer. MUST NOT repeat calls.
 * @typedef {object} ProxyTransport
 * @property {string} protocol label of metrics: http, grpc
 * @property {(event: string, fields: Record<string, any>, call: ProxyCall) => Promise<ProxyAnswer>} call
 * @property {() => Promise<void>} close ends its connections when no call is under way
 */

/** Kinds of failures that say that a backend is down. */
const DOWN = new Set(['unreachable', 'unavailable', 'timeout'])
/**
 * Kinds of failures that a proxy counts itself: a module before it, which gets the other ones, has figures of its own.
 */
const COUNTED = new Set('unreachable unavailable status size answer base64 data breaker'.split(' '))
/** Events that a backend may see twice without harm. */
const REPEATABLE = new Set(['connect', 'refresh', 'subscribe', 'sub_refresh', 'disconnected', 'unsubscribed'])
/** Wait before the first retry, ms; each further one doubles it. */
const RETRY_MS = 50

/** One proxy block, or one entry of `proxies`. */
class Backend {
  /** @type {() => ProxyTransport} */
  #open
  #transport
  #closed = false
  /** Requests under way. */
  #requests = 0
  #idle = () => {}
  #breaker
  #log
  /** @type {Map<string, ProxyHandler>} */
  #handlers = new Map()

  /**
   * @param {string} name `default` for a block @param {ProxyOptions} options @param {Parts} parts
   * @param {GrpcChannels} channels of all backends
   * @throws {Error} naming a key
   */
  constructor(name, options, { log, clock }, channels) {
    this.name = name
    this.options = options
    this.timeout = options.timeout || 1000
    this.lists = new HeaderLists(
      isHttpEndpoint(options.endpoint) ? options.http.static_headers : options.grpc.static_metadata,
      options.emulated_headers,
      options.http_headers,
    )
    this.#open = () =>
      isHttpEndpoint(options.endpoint) ? new HttpTransport(options) : channels.transport(options)
    this.#transport = this.#open()
    this.#breaker = new Breaker(options.breaker, clock)
    this.#log = log
  }

  get protocol() {
    return this.#transport.protocol
  }

  /** Whether its calls fail at once. */
  isDown = () => this.#breaker.open

  /** @param {string} event @param {Parts} parts @returns {ProxyHandler} the only one for the event */
  handler(event, { stats, log }) {
    let handler = this.#handlers.get(event)
    if (handler === undefined) {
      const series = stats.open(this.protocol, event, this.name, this.isDown)
      this.#handlers.set(event, (handler = new ProxyHandler(this, event, series, log)))
    }
    return handler
  }

  /**
   * @param {string} event @param {Record<string, any>} fields @param {ProxyCall} call
   * @returns {Promise<ProxyAnswer>}
   */
  async call(event, fields, call) {
    const tries = REPEATABLE.has(event) ? this.options.retries : 0
    for (let retry = 0; ; retry++) {
      try {
        return await this.#try(event, fields, call)
      } catch (error) {
        // After a timeout there is no time left.
        const again = DOWN.has(error.kind) && error.kind !== 'timeout' && !call.token.cancelled
        if (retry >= tries || !again) throw error
      }
      await wait(RETRY_MS * 2 ** retry, undefined, { signal: call.token.signal }).catch(() => {
        throw call.token.reason
      })
    }
  }

  /**
   * @param {string} event @param {Record<string, any>} fields @param {ProxyCall} call
   * @returns {Promise<ProxyAnswer>}
   */
  async #try(event, fields, call) {
    const breaker = this.#breaker
    const ticket = breaker.admit()
    if (ticket === 0) throw new CallFailed('the backend is down', 'breaker')
    const place = { protocol: this.protocol, proxy: this.name, event }
    this.#requests++
    try {
      const answer = await this.#send(event, fields, call)
      this.#answered(place)
      return answer
    } catch (error) {
      const reason = call.token.reason ?? error
      // It was not asked if the data of the client cannot be sent.
      if (!(reason instanceof CallFailed) || reason.kind === 'data') breaker.unknown(ticket)
      else if (!DOWN.has(reason.kind)) this.#answered(place)
      else if (breaker.failure(ticket)) {
        const fields = { ...place, reason: reason.message }
        this.#log.error(fields, 'the backend of a proxy is down: its calls fail at once for breaker.interval')
      }
      throw reason
    } finally {
      if (--this.#requests === 0) this.#idle()
    }
  }

  /**
   * @param {string} event @param {Record<string, any>} fields @param {ProxyCall} call
   * @returns {Promise<ProxyAnswer>}
   */
  #send(event, fields, call) {
    if (!this.#closed) return this.#transport.call(event, fields, call)
    // It has waited since before the reload: for a hook, for its turn among notices, or for a retry.
    const transport = this.#open()
    return transport.call(event, fields, call).finally(() => void transport.close())
  }

  /** @param {object} place for the log */
  #answered(place) {
    if (this.#breaker.success()) this.#log.info(place, 'the backend of a proxy answers again')
  }

  async close() {
    if (this.#closed) return
    this.#closed = true
    for (const handler of this.#handlers.values()) handler.close()
    // A closed transport follows no redirect.
    if (this.#requests > 0) await new Promise(resolve => (this.#idle = () => resolve(null)))
    await this.#transport.close()
  }
}

/** Asks a backend about one kind of event. @implements {Handler<any, any>} */
class ProxyHandler {
  #backend
  #event
  #series
  #log
  #request
  /** Fields that were logged. @type {Set<string>} */
  #ignored = new Set()

  /**
   * @param {Backend} backend @param {string} event @param {HookSeries} series
   * @param {Pick<LimitedLog, 'info' | 'warn' | 'error'>} log
   */
  constructor(backend, event, series, log) {
    const { binary_encoding: binary, include_connection_meta: meta } = backend.options
    this.#backend = backend
    this.#event = event
    this.#series = series
    this.#log = log
    this.#request = { binary, meta }
    this.timeout = backend.timeout
    this.name = `${backend.protocol} ${event} proxy ${JSON.stringify(backend.name)}`
  }

  /** @param {HookEvent} event @returns {Promise<any>} */
  async call(event) {
    try {
      return await this.#ask(event)
    } catch (error) {
      if (COUNTED.has(error.kind)) this.#series.fail(error.kind)
      throw error
    }
  }

  /** @param {HookEvent} event @returns {Promise<any>} */
  async #ask(event) {
    const fields = requests[this.#event](event, this.#request)
    const call = { headers: this.#backend.lists.of(event), token: HookEvent.token(event) }
    const startedAt = this.#series.begin()
    let answer
    try {
      answer = await this.#backend.call(this.#event, fields, call)
    } finally {
      this.#series.end(startedAt)
    }
    return this.#read(answer)
  }

  /** @param {ProxyAnswer} answer @returns {any} */
  #read(answer) {
    for (const field of ignoredFields(answer.result)) {
      if (this.#ignored.has(field)) continue
      this.#ignored.add(field)
      this.#log.warn({ field }, `the ${this.name} answers a field that is not supported: it is ignored`)
    }
    const fault = faultOf(this.#event, answer)
    if (fault !== null) this.#log.warn(fault.fields, `the ${this.name} answered ${fault.what}`)
    if (isRefresh(this.#event) && fault !== null) return null
    try {
      return readAnswer(this.#event, answer)
    } catch (error) {
      // The backend has answered: it is not asked again.
      if (isRefresh(this.#event) && error.kind === 'base64') {
        this.#series.fail(error.kind)
        this.#log.error({ reason: error.message }, `the ${this.name} failed`)
        return UNREADABLE
      }
      throw error
    }
  }

  /** A call took too long, or was not made. @param {string} kind */
  failed(kind) {
    if (!COUNTED.has(kind)) this.#series.fail(kind)
  }

  close() {
    this.#series.close(this.#backend.isDown)
  }
}

/**
 * @typedef {object} Parts
 * @property {HookStats} stats of the worker
 * @property {Pick<LimitedLog, 'info' | 'warn' | 'error'>} log
 * @property {() => number} clock ms
 */

/** Those of one configuration. */
class Backends {
  /** @type {Map<string, Backend>} */
  #all = new Map()
  #channels = new GrpcChannels()
  #config
  #parts

  /** @param {Config} config @param {Parts} parts */
  constructor(config, parts) {
    this.#config = config
    this.#parts = parts
  }

  /**
   * @param {string} event @param {string} block path of its block @param {ProxyOptions} options of the block
   * @param {string} name of an entry of `proxies`; '' and `default`: the block
   * @returns {ProxyHandler}
   */
  handler(event, block, options, name) {
    const own = name === '' || name === 'default'
    const key = own ? block : `proxies ${name}`
    let backend = this.#all.get(key)
    if (backend === undefined) {
      const named = this.#config.proxies.find(proxy => proxy.name === name)
      const given = own ? options : /** @type {ProxyOptions} */ (named)
      try {
        backend = new Backend(own ? 'default' : name, given, this.#parts, this.#channels)
      } catch (error) {
        throw new Error(`${key}: ${error.message}`)
      }
      this.#all.set(key, backend)
    }
    return backend.handler(event, this.#parts)
  }

  get size() {
    return this.#all.size
  }

  /** @param {'real' | 'emulated'} kind @returns {string[]} names of the headers that events need */
  headers(kind) {
    return [...new Set([...this.#all.values()].flatMap(({ lists }) => lists[kind]))]
  }

  async close() {
    await Promise.all([...this.#all.values()].map(backend => backend.close()))
  }
}

/**
 * @param {Config['rpc']} rpc section of the configuration @param {Backends} backends
 * @returns {Handlers['rpc']}
 */
function rpcHandlers({ proxy, without_namespace, namespaces, namespace_boundary: boundary }, backends) {
  /** @type {(options: Config['rpc']['without_namespace']) => ProxyHandler | null} */
  const of = ({ proxy_enabled, proxy_name }) =>
    proxy_enabled ? backends.handler('rpc', 'rpc.proxy', proxy, proxy_name) : null
  const bare = of(without_namespace)
  /** @type {Map<string, ProxyHandler | null>} */
  const named = new Map(namespaces.map(namespace => [namespace.name, of(namespace)]))
  if (bare === null && [...named.values()].every(handler => handler === null)) return null
  return method => {
    const end = boundary === '' ? -1 : method.indexOf(boundary)
    const handler = end < 1 ? bare : named.get(method.slice(0, end))
    if (handler === undefined) throw errors.methodNotFound
    if (handler === null) throw errors.notAvailable
    return handler
  }
}

/**
 * The handlers of all proxies that a configuration uses.
 * @param {Config} config @param {Parts} parts
 * @returns {Handlers} NO_HANDLERS if it uses none
 * @throws {Error} naming a key
 */
export function createProxies(config, parts) {
  const backends = new Backends(config, parts)
  try {
    return handlersOf(config, backends)
  } catch (error) {
    backends.close()
    throw error
  }
}

/** @param {Config} config @param {Backends} backends @returns {Handlers} @throws {Error} naming a key */
function handlersOf(config, backends) {
  const { proxy: blocks } = config.client
  /** @type {(event: 'connect' | 'refresh' | 'disconnected' | 'unsubscribed') => any} */
  const client = event =>
    blocks[event].enabled ? backends.handler(event, `client.proxy.${event}`, blocks[event], '') : null
  /** @type {(event: 'subscribe' | 'publish' | 'sub_refresh', options: ChannelOptions) => any} */
  const channel = (event, options) =>
    options[`${event}_proxy_enabled`]
      ? backends.handler(
          event,
          `channel.proxy.${event}`,
          config.channel.proxy[event],
          options[`${event}_proxy_name`],
        )
      : null
  /** @type {Map<string, ChannelHandlers>} */
  const channels = new Map()
  const namespaces = [{ ...config.channel.without_namespace, name: '' }, ...config.channel.namespaces]
  for (const options of namespaces) {
    const handlers = {
      subscribe: channel('subscribe', options),
      publish: channel('publish', options),
      subRefresh: channel('sub_refresh', options),
    }
    if (Object.values(handlers).some(handler => handler !== null)) channels.set(options.name, handlers)
  }
  /** @type {(handler: any) => readonly any[]} */
  const list = handler => Object.freeze(handler === null ? [] : [handler])
  const handlers = {
    connect: client('connect'),
    connectWithToken: false,
    refresh: client('refresh'),
    channel: (/** @type {string} */ namespace) => channels.get(namespace) ?? NO_CHANNEL_HANDLERS,
    rpc: rpcHandlers(config.rpc, backends),
    disconnected: list(client('disconnected')),
    unsubscribed: list(client('unsubscribed')),
    headers: backends.headers('real'),
    emulatedHeaders: backends.headers('emulated'),
    allHeaders: false,
    close: () => backends.close(),
  }
  return backends.size === 0 ? NO_HANDLERS : Object.freeze(handlers)
}
