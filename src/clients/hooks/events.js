// The events that handlers get. A module in process sees their getters; proxies read the payloads as text. They read
// from the session on demand, so an event that a handler ignores costs one small object.

/** @import { Payload } from '../protocol/payload.js' */
/** @import { Codec } from '../protocol/contract.js' */

/**
 * @typedef {object} Caller the part of a session that events read
 * @property {string} id
 * @property {string} user
 * @property {{name: string}} transport
 * @property {Codec} codec
 * @property {{meta: string, headers: readonly string[], emulatedHeaders: Record<string, string> | null} | null} extra
 * @property {() => string} remoteAddress
 */

/** Of a session that nothing but a waiting notice keeps, with its connection, approximately. */
const ENDED_SESSION_BYTES = 2048

/** @param {string} text JSON, '' = none @returns {any} undefined = none */
const parsed = text => (text === '' ? undefined : JSON.parse(text))

/** @param {Payload} payload @returns {any} JSON value; bytes that are not JSON as Buffer; undefined = none */
function readPayload({ data, json }) {
  if (data.length === 0) return undefined
  return json ? JSON.parse(data.toString()) : data
}

/**
 * @param {readonly string[]} lines name, value, name, value ... @returns {Record<string, string>} as `node:http` does
 */
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

/** Whether somebody still waits for a call. An AbortSignal would cost as much as half of an HTTP request. */
export class CancelToken {
  /** Why nobody waits any more; null: somebody does. @type {Error | null} */
  reason = null
  /**
   * Called when nobody waits any more. The transport under way sets it, and resets it to null.
   * @type {(() => void) | null}
   */
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

/** Something a client does, or that happens to it. */
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

  /** Address of the peer, '' if unknown or gone. */
  get remoteAddress() {
    return this.#session.remoteAddress()
  }

  /** Metadata of the connection from its token or its connect handler; undefined = none. @returns {any} */
  get meta() {
    return parsed(this.metaText)
  }

  /** The same as JSON text; '' = none. */
  get metaText() {
    return this.#session.extra?.meta ?? ''
  }

  /** Request headers, names in lower case. After connect: those that the configuration names. */
  get headers() {
    return headersOf(this.headerLines)
  }

  /** The same as sent: name, value, name, value ... @returns {readonly string[]} */
  get headerLines() {
    return this.#session.extra?.headers ?? []
  }

  /** `headers` of the connect request, of clients that cannot set request headers. @returns {Record<string, string>} */
  get emulatedHeaders() {
    return this.#session.extra?.emulatedHeaders ?? {}
  }

  /** Aborted when the client has left, and when the time of the handler is over. @returns {AbortSignal} */
  get signal() {
    return HookEvent.token(this).signal
  }

  /** @returns {CancelToken} the only one of the event */
  static token(/** @type {HookEvent} */ event) {
    return (event.#token ??= new CancelToken())
  }

  /** Nobody waits for the answer any more. @param {Error} reason */
  static abort(/** @type {HookEvent} */ event, /** @type {Error} */ reason) {
    // A handler may ask for the signal later.
    HookEvent.token(event).cancel(reason)
  }

  /** Approximate bytes that a waiting event keeps. @returns {number} */
  static size(/** @type {HookEvent} */ event) {
    return event.payloadSize + 512
  }

  /** @protected @returns {number} bytes */
  get payloadSize() {
    return 0
  }
}

/** An event with data of the client. */
class DataEvent extends HookEvent {
  #payload

  /** @param {Caller} session @param {Payload} payload */
  constructor(session, payload) {
    super(session)
    this.#payload = payload
  }

  /** Data of the client: a JSON value, or a Buffer if the bytes are not JSON; undefined = none. Parsed at each read. */
  get data() {
    return readPayload(this.#payload)
  }

  /** The same unparsed. @returns {Payload} */
  get payload() {
    return this.#payload
  }

  get payloadSize() {
    return this.#payload.data.length
  }
}

/** A client connects. `user` is that of its token, '' without one. */
export class ConnectEvent extends DataEvent {
  /**
   * @param {Caller} session @param {Payload} payload
   * @param {{name?: string, version?: string, subs?: Map<string, any>}} request
   * @param {{user: string, expireAt: number, info?: string, subs: Map<string, any>} | null} identity of a good
   *   token
   */
  constructor(session, payload, { name = '', version = '', subs }, identity) {
    super(session, payload)
    /** Name and version of the client's library or program, '' if it sent none. */
    this.name = name
    this.version = version
    /** Channels whose positions the client knows from before. @type {string[]} */
    this.channels = subs ? [...subs.keys()] : []
    /** Claims of the client's token; null without one. */
    this.token = identity && {
      user: identity.user,
      expireAt: identity.expireAt,
      info: parsed(identity.info ?? ''),
      channels: [...identity.subs.keys()],
    }
  }
}

/** A connection has expired. */
export class RefreshEvent extends HookEvent {}

/** What a client wants to do with a channel. */
class ChannelEvent extends DataEvent {
  /** @param {Caller} session @param {string} channel @param {boolean} allowed @param {Payload} payload */
  constructor(session, channel, allowed, payload) {
    super(session, payload)
    this.channel = channel
    /** What the options of the channel would say. */
    this.allowed = allowed
  }
}

/** A client wants to subscribe. */
export class SubscribeEvent extends ChannelEvent {}

/** A client publishes. */
export class PublishEvent extends ChannelEvent {}

/** A subscription has expired. */
export class SubRefreshEvent extends HookEvent {
  /** @param {Caller} session @param {string} channel */
  constructor(session, channel) {
    super(session)
    this.channel = channel
  }
}

/** A client calls a method. */
export class RpcEvent extends DataEvent {
  /** @param {Caller} session @param {string} method '' = none @param {Payload} payload */
  constructor(session, method, payload) {
    super(session, payload)
    this.method = method
  }
}

/** A subscription has ended, and its client is still connected. */
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

/** A client has gone. */
export class DisconnectedEvent extends HookEvent {
  /**
   * @param {Caller} session @param {{code: number, reason: string}} end @param {string[]} channels
   * @param {number} duration s
   */
  constructor(session, { code, reason }, channels, duration) {
    super(session)
    this.code = code
    this.reason = reason
    /** Channels that it was subscribed to. */
    this.channels = channels
    /** Time since the connect, s. */
    this.duration = duration
  }

  get payloadSize() {
    let size = ENDED_SESSION_BYTES + this.metaText.length
    for (const channel of this.channels) size += channel.length + 16
    return size
  }
}
