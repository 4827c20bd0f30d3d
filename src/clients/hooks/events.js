// Events read the session on demand: an ignored event costs one small object.

/** @import { Payload } from '../protocol/payload.js' */
/** @import { Codec } from '../protocol/contract.js' */
/** @import { Labels } from './labels.js' */

/**
 * @typedef {{id: string, user: string, transport: {name: string}, codec: Codec, details: {meta: string, labels:
 *   Labels | null} | null, extra: {headers: readonly string[], emulatedHeaders: Record<string, string> | null} | null,
 *   remoteAddress: () => string, context: {rules: {variables: (channel: string) => Record<string, string>}}}} Caller
 */

/** @type {Labels} */
const NO_LABELS = Object.freeze({})

const ENDED_SESSION_BYTES = 2048

/** @param {string} text JSON, '' = none */
const parsed = text => (text === '' ? undefined : JSON.parse(text))

/** @param {Payload} payload @returns {any} */
function readPayload({ data, json }) {
  if (data.length === 0) return undefined
  return json ? JSON.parse(data.toString()) : data
}

/** Joins repeated headers like node:http. @param {readonly string[]} lines name, value, name, value ... */
function headersOf(lines) {
  /** @type {Record<string, string>} */
  const headers = Object.create(null)
  for (let at = 0; at < lines.length; at += 2) {
    const name = lines[at]
    const former = headers[name]
    if (former === undefined) headers[name] = lines[at + 1]
    else headers[name] = former + (name === 'cookie' ? '; ' : ', ') + lines[at + 1]
  }
  return headers
}

/** Creates the AbortSignal on demand: it costs half as much as an HTTP request. */
export class CancelToken {
  /** @type {Error | null} */
  reason = null
  /** Set by the transport. @type {(() => void) | null} */
  onCancel = null
  /** @type {AbortController | null} */
  #controller = null

  get cancelled() {
    return this.reason !== null
  }

  /** @returns {AbortSignal} */
  get signal() {
    this.#controller ??= new AbortController()
    if (this.cancelled) this.#controller.abort(this.reason)
    return this.#controller.signal
  }

  /** @param {Error} reason */
  cancel(reason) {
    if (this.cancelled) return
    this.reason = reason
    this.onCancel?.()
    this.#controller?.abort(reason)
  }
}

export class HookEvent {
  #session
  /** @type {CancelToken | null} */
  #token = null

  /** @param {Caller} session */
  constructor(session) {
    this.#session = session
  }

  /** Id of the connection: the same as in the connect reply. */
  get client() {
    return this.#session.id
  }

  /** '' = anonymous. */
  get user() {
    return this.#session.user
  }

  /** `websocket`, `http_stream`, `sse`, `poll`, `uni_websocket`, `uni_sse`, `uni_http_stream` */
  get transport() {
    return this.#session.transport.name
  }

  /** Of the client's messages. @returns {'json' | 'protobuf'} */
  get protocol() {
    return this.#session.codec.binary ? 'protobuf' : 'json'
  }

  /** Peer address, '' if unknown or disconnected. */
  get remoteAddress() {
    return this.#session.remoteAddress()
  }

  /** Metadata of the connection from its token or its connect handler; undefined = none. @returns {any} */
  get meta() {
    return parsed(this.metaText)
  }

  /** `meta` as JSON text; '' = none. */
  get metaText() {
    return this.#session.details?.meta ?? ''
  }

  /** Labels of the connection from its token or its connect handler; empty: none. @returns {Labels} */
  get labels() {
    return this.#session.details?.labels ?? NO_LABELS
  }

  /** Request headers, names in lower case. After connect: only the configured ones. */
  get headers() {
    return headersOf(this.headerLines)
  }

  /** Request headers as sent: name, value, name, value ... @returns {readonly string[]} */
  get headerLines() {
    return this.#session.extra?.headers ?? []
  }

  /** `headers` of the connect request, for clients without request headers. @returns {Record<string, string>} */
  get emulatedHeaders() {
    return this.#session.extra?.emulatedHeaders ?? {}
  }

  /**
   * Variables of the pattern that fits `channel`, by name; empty without a pattern.
   * @returns {Record<string, string>}
   */
  get vars() {
    const { channel } = /** @type {{channel?: string}} */ (this)
    return channel === undefined ? {} : this.#session.context.rules.variables(channel)
  }

  /** Aborts when the client disconnects or the handler times out. @returns {AbortSignal} */
  get signal() {
    return HookEvent.token(this).signal
  }

  static token(/** @type {HookEvent} */ event) {
    return (event.#token ??= new CancelToken())
  }

  /** Also aborts a signal read later by the handler. */
  static abort(/** @type {HookEvent} */ event, /** @type {Error} */ reason) {
    HookEvent.token(event).cancel(reason)
  }

  static size(/** @type {HookEvent} */ event) {
    return event.payloadSize + 512
  }

  /** @protected bytes @returns {number} */
  get payloadSize() {
    return 0
  }
}

class DataEvent extends HookEvent {
  #payload

  /** @param {Caller} session @param {Payload} payload */
  constructor(session, payload) {
    super(session)
    this.#payload = payload
  }

  /** JSON value, or a Buffer if not JSON; undefined = none. Parsed on each read. */
  get data() {
    return readPayload(this.#payload)
  }

  /** `data`, unparsed. @returns {Payload} */
  get payload() {
    return this.#payload
  }

  get payloadSize() {
    return this.#payload.data.length
  }
}

/** A client connects. `user` is the token's user, '' without a token. */
export class ConnectEvent extends DataEvent {
  /**
   * @param {Caller} session @param {Payload} payload
   * @param {{name?: string, version?: string, subs?: Map<string, any>}} request
   * @param {{user: string, expireAt: number, info?: string, subs: Map<string, any>} | null} identity of the token
   */
  constructor(session, payload, { name = '', version = '', subs }, identity) {
    super(session, payload)
    /** Name and version of the client's library or program, '' if absent. */
    this.name = name
    this.version = version
    /** Channels with positions known to the client. @type {string[]} */
    this.channels = subs ? [...subs.keys()] : []
    /** Claims of the client's token; null without a token. */
    this.token = identity && {
      user: identity.user,
      expireAt: identity.expireAt,
      info: parsed(identity.info ?? ''),
      channels: [...identity.subs.keys()],
    }
  }
}

export class RefreshEvent extends HookEvent {}

class ChannelEvent extends DataEvent {
  /** @param {Caller} session @param {string} channel @param {boolean} allowed @param {Payload} payload */
  constructor(session, channel, allowed, payload) {
    super(session, payload)
    this.channel = channel
    /** Whether the channel options allow it. */
    this.allowed = allowed
  }
}

export class SubscribeEvent extends ChannelEvent {}

export class PublishEvent extends ChannelEvent {}

/** A client publishes a key of a map. */
export class MapPublishEvent extends ChannelEvent {
  /**
   * @param {Caller} session @param {string} channel @param {string} key '' = none @param {boolean} allowed
   * @param {Payload} payload
   */
  constructor(session, channel, key, allowed, payload) {
    super(session, channel, allowed, payload)
    this.key = key
  }
}

/** A client removes a key of a map. */
export class MapRemoveEvent extends HookEvent {
  /** @param {Caller} session @param {string} channel @param {string} key '' = none @param {boolean} allowed */
  constructor(session, channel, key, allowed) {
    super(session)
    this.channel = channel
    this.key = key
    /** Whether the channel options allow it. */
    this.allowed = allowed
  }
}

/** A subscription has expired. */
export class SubRefreshEvent extends HookEvent {
  /** @param {Caller} session @param {string} channel */
  constructor(session, channel) {
    super(session)
    this.channel = channel
  }
}

/** @type {Caller} */
const NO_CALLER = Object.freeze({
  id: '',
  user: '',
  transport: { name: '' },
  codec: /** @type {any} */ ({ binary: false }),
  details: null,
  extra: null,
  remoteAddress: () => '',
  context: { rules: { variables: () => ({}) } },
})

/** The gateway asks for the data of keys that clients track in a shared poll. It belongs to no client. */
export class SharedPollRefreshEvent extends HookEvent {
  /**
   * @param {string} channel @param {{key: string, version: bigint}[]} items
   * @param {Caller['context']} [context] of the worker
   */
  constructor(channel, items, context = NO_CALLER.context) {
    super({ ...NO_CALLER, context })
    this.channel = channel
    /** Versions known to the gateway, 0n = none. With `mode: 'versioned'`, unchanged keys may be left out. */
    this.items = items
  }
}

/** A subscriber recovers from an empty cache. The event belongs to no client. */
export class CacheEmptyEvent extends HookEvent {
  /** @param {string} channel @param {Caller['context']} [context] of the worker */
  constructor(channel, context = NO_CALLER.context) {
    super({ ...NO_CALLER, context })
    this.channel = channel
  }
}

/** Channels got their first subscriber, or have lost their last one. It belongs to no client. */
export class ChannelStateEvent extends HookEvent {
  /**
   * @param {{id: string, channel: string, type: 'occupied' | 'vacated', time_ms: number}[]} events of up to 100 channels
   * @param {Caller['context']} [context] of the worker
   */
  constructor(events, context = NO_CALLER.context) {
    super({ ...NO_CALLER, context })
    /** In the order of their channels. An event that is repeated has the same `id`. */
    this.events = events
  }
}

export class RpcEvent extends DataEvent {
  /** @param {Caller} session @param {string} method '' = none @param {Payload} payload */
  constructor(session, method, payload) {
    super(session, payload)
    this.method = method
  }
}

/** The client is still connected. */
export class UnsubscribedEvent extends HookEvent {
  /** @param {Caller} session @param {string} channel @param {number} code @param {string} reason */
  constructor(session, channel, code, reason) {
    super(session)
    this.channel = channel
    /** 0: the client unsubscribed. */
    this.code = code
    this.reason = reason
  }
}

export class DisconnectedEvent extends HookEvent {
  /**
   * @param {Caller} session @param {{code: number, reason: string}} end @param {string[]} channels
   * @param {number} duration s
   */
  constructor(session, { code, reason }, channels, duration) {
    super(session)
    this.code = code
    this.reason = reason
    this.channels = channels
    /** Connection duration, s. */
    this.duration = duration
  }

  get payloadSize() {
    let size = ENDED_SESSION_BYTES + this.metaText.length
    for (const channel of this.channels) size += channel.length + 16
    return size
  }
}
