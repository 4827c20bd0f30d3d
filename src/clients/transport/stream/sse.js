import { createHash } from 'node:crypto'
import { retryAfter } from '../../server/contract.js'
import { Session } from '../../session/session.js'
import { Kind } from '../../session/subscription.js'
import { queryValue } from '../http-request.js'
import { events, eventsOf } from './framing.js'
import { StreamTransport, streamHead } from './stream-transport.js'
import { UniStreamTransport } from './uni-stream.js'

/** @import { Channel } from '../../../channels/hub/channel.js' */
/** @import { Codec, Encoded } from '../../protocol/contract.js' */
/** @import { Exchange, SocketServer, Stream } from '../../server/contract.js' */
/** @import { Subscription } from '../../session/subscription.js' */
/** @import { Carrier } from '../index.js' */
/** @import { StreamClient } from './stream-transport.js' */

const HEAD = streamHead('text/event-stream; charset=utf-8')
const PREAMBLE = '\r\n'

/**
 * Writes the first bytes of a body, so that a proxy that waits for them forwards the head. They are a chunk of their
 * own: npm `eventsource` 2 drops an event that comes in the same chunk.
 * @param {SocketServer} server @param {Stream} stream
 */
function writePreamble(server, stream) {
  server.write(stream, PREAMBLE)
  server.flush(stream)
}

/**
 * Two-way server-sent events (client protocol): the first commands come with the request, later ones
 * through the emulation endpoint.
 */
export class SseTransport extends StreamTransport {
  name = 'sse'
  emulated = true

  mount() {
    const path = this.context.config.sse.handler_prefix
    this.cors.route(this.server, 'GET', path, exchange => this.#get(exchange))
    this.cors.route(this.server, 'POST', path, exchange => this.#post(exchange))
    this.cors.refuse(this.server, path, 'GET, POST')
  }

  /** @param {Exchange} exchange */
  #get(exchange) {
    const client = this.clientOf(exchange, HEAD)
    const commands = queryValue(exchange.query, 'cf_connect')
    if (!commands) return exchange.reply(400, client.head, 'cf_connect is missing')
    this.#open(exchange, client, Buffer.from(commands))
  }

  /** @param {Exchange} exchange */
  #post(exchange) {
    const client = this.clientOf(exchange, HEAD)
    exchange.body(this.context.config.sse.max_request_body_size, body => {
      if (body === null) exchange.reply(413, client.head, '')
      else this.#open(exchange, client, body)
    })
  }

  /** @param {Exchange} exchange @param {StreamClient} client @param {Buffer} commands */
  #open(exchange, client, commands) {
    const { head } = client
    if (!this.admission.admits(exchange)) return exchange.reply(503, { ...head, ...retryAfter() }, '')
    const stream = exchange.stream(200, head, this.route)
    if (stream === null) return
    const session = new Session(this, stream, this.context.codecs.json, 0)
    this.opened(session, stream, client)
    writePreamble(this.server, stream)
    session.receive(commands)
  }

  /** @param {Encoded} message @param {Codec} _codec @param {number} [pushes] */
  frame(message, _codec, pushes = 1) {
    return pushes > 1 ? eventsOf(/** @type {Uint8Array} */ (message)) : events(message)
  }
}

/**
 * Event ids of one-way SSE: the positions of all recoverable channels of a connection. A browser that reconnects sends
 * the last id (`Last-Event-ID`) and recovers from there.
 *
 *   id   = entry *("," entry)
 *   entry = channel ":" offset ":" epoch        channel: 8 base64url characters of a hash of its name
 */

const HASH_BYTES = 6
/** Browsers return the id in a header; servers and proxies limit headers to some thousands of bytes. */
const MAX_LENGTH = 2000

/** @type {WeakMap<object, string>} the hub's channel -> hash of its name */
const hashes = new WeakMap()

/** @param {string} name */
const hashName = name =>
  createHash('sha256').update(name).digest().subarray(0, HASH_BYTES).toString('base64url')

/** @param {Channel} channel */
function hashOf(channel) {
  let hash = hashes.get(channel)
  if (hash === undefined) hashes.set(channel, (hash = hashName(channel.name)))
  return hash
}

/**
 * @param {Subscription[]} subscriptions positioned, at least one
 * @returns {string} with an empty id if there are too many for one: the client must forget its last id, which is stale
 */
function idLine(subscriptions) {
  const id = subscriptions
    .map(({ channel, cohort }) => `${hashOf(channel)}:${channel.sentTo(cohort)}:${channel.epoch}`)
    .join(',')
  return `id: ${id.length > MAX_LENGTH ? '' : id}\n`
}

/**
 * @param {string} id untrusted
 * @returns {(channel: string) => {offset: number, epoch: string, recoverable: boolean} | undefined} position by channel
 */
function readEventId(id) {
  /** @type {Map<string, {offset: number, epoch: string, recoverable: boolean}>} */
  const positions = new Map()
  if (id.length <= MAX_LENGTH) {
    for (const entry of id.split(',')) {
      const match = /^([\w-]{8}):(\d{1,15}):(\w{1,32})$/.exec(entry)
      if (match) positions.set(match[1], { offset: Number(match[2]), epoch: match[3], recoverable: true })
    }
  }
  return channel => (positions.size === 0 ? undefined : positions.get(hashName(channel)))
}

/** One-way server-sent events, for a plain EventSource. Events of recoverable channels carry an id. */
export class UniSseTransport extends UniStreamTransport {
  name = 'uni_sse'
  joins = false
  head = HEAD
  /** Id line of the event that is framed next. */
  #id = ''

  get responses() {
    return this.context.config.uni_sse.connect_code_to_http_response
  }

  mount() {
    const { handler_prefix, max_request_body_size } = this.context.config.uni_sse
    this.cors.route(this.server, 'GET', handler_prefix, exchange =>
      this.begin(exchange, queryValue(exchange.query, 'cf_connect') || '{}', this.client(exchange)),
    )
    this.cors.route(this.server, 'POST', handler_prefix, exchange =>
      this.post(exchange, max_request_body_size),
    )
    this.cors.refuse(this.server, handler_prefix, 'GET, POST')
  }

  /** @param {any} request @param {{lastEventId: string}} client */
  extendRequest(request, { lastEventId }) {
    if (lastEventId !== '') request.positions = readEventId(lastEventId)
  }

  /** @param {Stream} stream */
  preamble(stream) {
    writePreamble(this.server, stream)
  }

  /** @param {Encoded} message */
  frame(message) {
    const event = events(message)
    if (this.#id === '') return event
    // The id line belongs to the last event: insert it before the line feed that ends the event.
    const end = `${this.#id}\n`
    this.#id = ''
    return typeof event === 'string'
      ? event.slice(0, -1) + end
      : Buffer.concat([event.subarray(0, -1), Buffer.from(end)])
  }

  /**
   * The positions are known only when the session has joined its channels. The id covers the recovered publications in
   * the connect push, so push and id are one event: a client whose connection ends has both or neither.
   * @param {Session} session
   */
  connected(session) {
    const subscriptions = recoverable(session)
    if (subscriptions.length === 0) return
    this.#id = idLine(subscriptions)
    this.context.replies.flush()
    if (this.#id === '') return
    // The connect push has left already.
    const id = this.#id
    this.#id = ''
    if (!session.closed) this.server.write(session.connection, `${id}\n`)
  }

  /** @type {StreamDelivery} @typedef {Carrier['deliver']} StreamDelivery */
  deliver(members, message, publication) {
    const clients = this.traffic.fannedOut(members.size, message.length)
    const event = events(message)
    if (publication === null || publication.offset === 0) {
      for (const { connection } of members) this.server.write(connection, event)
      return clients
    }
    // Most connections have this channel only: they share one event.
    let shared = null
    let sharedBy = null
    for (const session of members) {
      const subscriptions = recoverable(session)
      if (subscriptions.length === 0) this.server.write(session.connection, event)
      else if (subscriptions.length === 1) {
        if (shared === null || sharedBy !== subscriptions[0].cohort) {
          shared = Buffer.concat([Buffer.from(idLine(subscriptions)), /** @type {Buffer} */ (event)])
          sharedBy = subscriptions[0].cohort
        }
        this.server.write(session.connection, shared)
      } else {
        this.server.write(session.connection, idLine(subscriptions))
        this.server.write(session.connection, event)
      }
    }
    return clients
  }
}

/** @type {Subscription[]} */
const one = []
/** @type {Subscription[]} */
const NONE = []

/** @param {Session} session @returns {Subscription[]} those with recovery; valid until the next call */
function recoverable({ subscriptions }) {
  if (subscriptions === null) return NONE
  if (!(subscriptions instanceof Map)) {
    if (!subscriptions.is(Kind.RECOVERABLE)) return NONE
    one[0] = subscriptions
    return one
  }
  const found = []
  for (const subscription of subscriptions.values()) {
    if (subscription.is(Kind.RECOVERABLE)) found.push(subscription)
  }
  return found
}
