// Event proxies: handlers that call a backend over HTTP or gRPC. A backend is a proxy block or an entry of `proxies`
// and may serve several events. The transports share proxy-messages.js (fields) and proxy-answers.js (responses).

import { setTimeout as wait } from 'node:timers/promises'
import { errors } from '../../base/errors.js'
import { CallFailed, NO_CHANNEL_HANDLERS, NO_HANDLERS } from '../../clients/hooks/contract.js'
import { HookEvent } from '../../clients/hooks/events.js'
import { isHttpEndpoint, isNeverForwarded } from '../../config/proxies.js'
import { Breaker } from './breaker.js'
import { GrpcChannels } from './grpc.js'
import { httpTransport } from './http.js'
import { faultOf, isRefresh, readAnswer, UNREADABLE } from './proxy-answers.js'
import { requestOf } from './proxy-messages.js'

/** @import { LimitedLog } from '../../base/log.js' */
/** @import { CapabilitySets } from '../../clients/hooks/capabilities.js' */
/** @import { ChannelHandlers, Handler, Handlers } from '../../clients/hooks/contract.js' */
/** @import { CancelToken } from '../../clients/hooks/events.js' */
/** @import { ChannelOptions, Config, ProxyOptions } from '../../config/options.js' */
/** @import { HookStats } from '../../metrics/hook-stats.js' */
/** @import { ProxyAnswer } from './proxy-answers.js' */

/** RFC 9110, section 5.5: no control characters except tabs. */
const VALUE = /^[\t -~\x80-\xff]*$/

/** @param {string} text @returns {string} one character per UTF-8 byte, as in request headers */
const inBytes = text => Buffer.from(text).toString('latin1')

/** @param {readonly string[]} names @returns {Set<string>} in lower case, without names never forwarded */
const allowed = names =>
  new Set(names.map(name => name.toLowerCase()).filter(name => !isNeverForwarded(name)))

/**
 * @param {Readonly<Record<string, string>>} given
 * @param {readonly string[]} emulatedNames @param {readonly string[]} realNames
 */
function headerLists(given, emulatedNames, realNames) {
  const emulated = allowed(emulatedNames)
  const real = allowed(realNames)
  /** Name in lower case -> values. @type {ReadonlyMap<string, readonly string[]>} */
  const fixed = new Map(
    Object.entries(given)
      .filter(([name]) => !isNeverForwarded(name.toLowerCase()))
      .map(([name, value]) => [name.toLowerCase(), [value]]),
  )
  return {
    real: [...real],
    emulated: [...emulated],

    /** @param {HookEvent} event @returns {ReadonlyMap<string, readonly string[]>} name in lower case -> values */
    of(event) {
      if (emulated.size === 0 && real.size === 0) return fixed
      const headers = new Map(fixed)
      const emulatedHeaders = emulated.size > 0 ? event.emulatedHeaders : {}
      const lines = real.size > 0 ? event.headerLines : []
      for (const name of Object.keys(emulatedHeaders)) {
        const lower = name.toLowerCase()
        if (!emulated.has(lower) || typeof emulatedHeaders[name] !== 'string') continue
        const value = inBytes(emulatedHeaders[name])
        if (VALUE.test(value)) headers.set(lower, [value])
      }
      /** @type {Map<string, string[]>} */
      const found = new Map()
      for (let at = 0; at < lines.length; at += 2) {
        const name = lines[at].toLowerCase()
        if (!real.has(name) || !VALUE.test(lines[at + 1])) continue
        found.set(name, [...(found.get(name) ?? []), lines[at + 1]])
      }
      for (const [name, values] of found) headers.set(name, values)
      return headers
    },
  }
}

/**
 * @typedef {object} ProxyCall
 * @property {ReadonlyMap<string, readonly string[]>} headers to send: name in lower case -> values
 * @property {CancelToken} token cancelled when the response is not needed
 *
 * Transport to one backend. MUST reject with the token's reason soon after it is cancelled, reject with a CallFailed on
 * backend or network errors (kinds: `unreachable`, `unavailable`, `status`, `size`, `response`), and buffer no more than
 * `max_response_size` of a response. MUST NOT retry.
 * @typedef {object} ProxyTransport
 * @property {string} protocol label of metrics: http, grpc
 * @property {(event: string, fields: Record<string, any>, call: ProxyCall) => Promise<ProxyAnswer>} call
 * @property {() => Promise<void>} close closes its connections when no call is pending
 */

const DOWN = new Set(['unreachable', 'unavailable', 'timeout'])
/** Failures counted by the proxy. The hooks module called before it counts the others. */
const COUNTED = new Set('unreachable unavailable status size response base64 data breaker'.split(' '))
const REPEATABLE = new Set(
  'connect refresh subscribe sub_refresh shared_poll_refresh cache_empty state disconnected unsubscribed'.split(
    ' ',
  ),
)
/** Delay before the first retry, ms; doubles with each retry. */
const RETRY_MS = 50

class Backend {
  #open
  #transport
  #closed = false
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
    this.lists = headerLists(
      isHttpEndpoint(options.endpoint) ? options.http.static_headers : options.grpc.static_metadata,
      options.emulated_headers,
      options.http_headers,
    )
    /** @returns {ProxyTransport} */
    this.#open = () =>
      isHttpEndpoint(options.endpoint) ? httpTransport(options) : channels.transport(options)
    this.#transport = this.#open()
    this.#breaker = new Breaker(options.breaker, clock)
    this.#log = log
  }

  get protocol() {
    return this.#transport.protocol
  }

  isDown = () => this.#breaker.open

  /** @param {string} event @param {Parts} parts @returns {ProxyHandler} one per event */
  handler(event, parts) {
    let handler = this.#handlers.get(event)
    if (handler === undefined) this.#handlers.set(event, (handler = createHandler(this, event, parts)))
    return handler
  }

  /** @type {ProxyTransport['call']} */
  async call(event, fields, call) {
    const tries = REPEATABLE.has(event) ? this.options.retries : 0
    for (let retry = 0; ; retry++) {
      try {
        return await this.#try(event, fields, call)
      } catch (error) {
        // A timeout leaves no time for a retry.
        const again = DOWN.has(error.kind) && error.kind !== 'timeout' && !call.token.cancelled
        if (retry >= tries || !again) throw error
      }
      await wait(RETRY_MS * 2 ** retry, undefined, { signal: call.token.signal }).catch(() => {
        throw call.token.reason
      })
    }
  }

  /** @type {ProxyTransport['call']} */
  async #try(event, fields, call) {
    const breaker = this.#breaker
    const ticket = breaker.admit()
    if (ticket === 0) throw new CallFailed('the backend is down', 'breaker')
    const place = { protocol: this.protocol, proxy: this.name, event }
    const answered = () => {
      if (breaker.success()) this.#log.info(place, 'proxy backend is up again')
    }
    this.#requests++
    try {
      const answer = await this.#send(event, fields, call)
      answered()
      return answer
    } catch (error) {
      const reason = call.token.reason ?? error
      // Invalid client data does not indicate a backend failure.
      if (!(reason instanceof CallFailed) || reason.kind === 'data') breaker.unknown(ticket)
      else if (!DOWN.has(reason.kind)) answered()
      else if (breaker.failure(ticket)) {
        const fields = { ...place, reason: reason.message }
        this.#log.error(fields, 'proxy backend is down: calls fail immediately for breaker.interval')
      }
      throw reason
    } finally {
      if (--this.#requests === 0) this.#idle()
    }
  }

  /** @type {ProxyTransport['call']} */
  #send(event, fields, call) {
    if (!this.#closed) return this.#transport.call(event, fields, call)
    // The call started before a reload.
    const transport = this.#open()
    return transport.call(event, fields, call).finally(() => void transport.close())
  }

  async close() {
    if (this.#closed) return
    this.#closed = true
    for (const handler of this.#handlers.values()) handler.close()
    // A closed transport cannot follow redirects.
    if (this.#requests > 0) await new Promise(resolve => (this.#idle = () => resolve(null)))
    await this.#transport.close()
  }
}

/** @typedef {Handler<any, any> & {close: () => void}} ProxyHandler */

/** @param {Backend} backend @param {string} event @param {Parts} parts @returns {ProxyHandler} */
function createHandler(backend, event, { stats, log, capabilities }) {
  const { binary_encoding: binary, include_connection_meta: meta } = backend.options
  const series = stats.open(backend.protocol, event, backend.name, backend.isDown)
  const name = `${backend.protocol} ${event} proxy ${JSON.stringify(backend.name)}`

  /** @param {object} fields @param {string} message */
  const warn = (fields, message) => log.warn({ hook: name, ...fields }, message, `${message}: ${name}`)

  /** @param {ProxyAnswer} answer @returns {any} */
  const read = answer => {
    const fault = faultOf(event, answer)
    if (fault !== null) warn(fault.fields, fault.message)
    if (isRefresh(event) && fault !== null) return null
    try {
      return readAnswer(event, answer, capabilities)
    } catch (error) {
      if (!isRefresh(event) || error.kind !== 'base64') throw error
      series.fail(error.kind)
      log.error({ hook: name, reason: error.message }, 'hook call failed', `hook call failed: ${name}`)
      return UNREADABLE
    }
  }

  return {
    name,
    timeout: backend.timeout,
    async call(/** @type {HookEvent} */ hookEvent) {
      try {
        const fields = requestOf(event, hookEvent, { binary, meta })
        const call = { headers: backend.lists.of(hookEvent), token: HookEvent.token(hookEvent) }
        const startedAt = series.begin()
        return read(await backend.call(event, fields, call).finally(() => series.end(startedAt)))
      } catch (error) {
        if (COUNTED.has(error.kind)) series.fail(error.kind)
        throw error
      }
    },
    failed(kind) {
      if (!COUNTED.has(kind)) series.fail(kind)
    },
    close: () => series.close(backend.isDown),
  }
}

/**
 * @typedef {{stats: HookStats, log: Pick<LimitedLog, 'info' | 'warn' | 'error'>, clock: () => number,
 *   capabilities: CapabilitySets}} Parts clock: ms
 */

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

  get empty() {
    return this.#all.size === 0
  }

  /** @param {'real' | 'emulated'} kind @returns {string[]} header names used by events */
  headers(kind) {
    return [...new Set([...this.#all.values()].flatMap(({ lists }) => lists[kind]))]
  }

  async close() {
    await Promise.all([...this.#all.values()].map(backend => backend.close()))
  }
}

/** @param {Config['rpc']} rpc @param {Backends} backends @returns {Handlers['rpc']} */
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

/** @param {Config} config @param {Parts} parts @returns {Handlers} @throws {Error} naming a key */
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
  const { proxy: proxies, namespaces, without_namespace } = config.channel
  /** @type {(event: 'connect' | 'refresh' | 'disconnected' | 'unsubscribed') => any} */
  const client = event =>
    blocks[event].enabled ? backends.handler(event, `client.proxy.${event}`, blocks[event], '') : null
  /** @type {(event: 'subscribe' | 'publish' | 'sub_refresh' | 'cache_empty' | 'state', options: ChannelOptions) => any} */
  const channel = (event, options) =>
    options[`${event}_proxy_enabled`]
      ? backends.handler(event, `channel.proxy.${event}`, proxies[event], options[`${event}_proxy_name`])
      : null
  /** @type {(event: 'publish' | 'remove', options: ChannelOptions) => any} */
  const map = (event, { map: options }) =>
    options[`${event}_proxy_enabled`]
      ? backends.handler(
          `map_${event}`,
          `channel.proxy.map_${event}`,
          proxies[`map_${event}`],
          options[`${event}_proxy_name`],
        )
      : null
  /** @type {(options: ChannelOptions) => any} */
  const poll = ({ subscription_type: type, shared_poll: { proxy_name: name } }) => {
    const block = proxies.shared_poll_refresh
    const own = name === '' || name === 'default'
    // A hook may answer in its place.
    if (type !== 'shared_poll' || (own && block.endpoint === '')) return null
    return backends.handler('shared_poll_refresh', 'channel.proxy.shared_poll_refresh', block, name)
  }
  /** @type {(handler: any) => readonly any[]} */
  const list = handler => Object.freeze(handler === null ? [] : [handler])
  /** @type {Map<string, ChannelHandlers>} */
  const channels = new Map()
  for (const options of [{ ...without_namespace, name: '' }, ...namespaces]) {
    const handlers = {
      subscribe: channel('subscribe', options),
      publish: channel('publish', options),
      subRefresh: channel('sub_refresh', options),
      mapPublish: map('publish', options),
      mapRemove: map('remove', options),
      pollRefresh: poll(options),
      cacheEmpty: channel('cache_empty', options),
      channelState: list(channel('state', options)),
    }
    if (Object.values(handlers).some(handler => handler !== null && handler.length !== 0))
      channels.set(options.name, handlers)
  }
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
  return backends.empty ? NO_HANDLERS : Object.freeze(handlers)
}
