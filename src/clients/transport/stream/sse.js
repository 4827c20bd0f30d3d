import { createHash } from 'node:crypto'
import { retryAfter } from '../../server/contract.js'
import { Session } from '../../session/session.js'
import { Kind } from '../../session/subscription.js'
import { queryValue } from '../http-request.js'
import { events, eventsOf, StreamTransport, streamHead } from './stream-transport.js'
import { UniStreamTransport } from './uni-stream.js'

/** @import { Channel } from '../../../channels/hub/channel.js' */
/** @import { Codec, Encoded } from '../../protocol/contract.js' */
/** @import { Exchange, SocketServer, Stream } from '../../server/contract.js' */
/** @import { Subscription } from '../../session/subscription.js' */
/** @import { Carrier } from '../index.js' */
/** @import { StreamClient } from './stream-transport.js' */

const HEAD = streamHead('text/event-stream; charset=utf-8')

/**
 * For proxies that wait for first bytes. A separate chunk: npm `eventsource` 2 drops an event in the same chunk.
 * @param {SocketServer} server @param {Stream} stream
 */
function writePreamble(server, stream) {
  server.write(stream, '\r\n')
  server.flush(stream)
}

/** Two-way server-sent events (client protocol). The request contains the first commands; later ones use emulation. */
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
 * Event ids of one-way SSE: positions of all recoverable channels of a connection. A reconnecting browser sends the
 * last id (`Last-Event-ID`) and recovers from there.
 *
 *   id   = entry *("," entry)
 *   entry = channel ":" offset ":" epoch        channel: 8 base64url characters of a hash of its name
 */

const HASH_BYTES = 6
/** Servers and proxies limit headers to a few thousand bytes. */
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

/** Writes an empty id, which clears the last one, if too long. @param {Subscription[]} subscriptions at least one */
function idLine(subscriptions) {
  const id = subscriptions
    .map(({ channel, cohort }) => `${hashOf(channel)}:${channel.sentTo(cohort)}:${channel.epoch}`)
    .join(',')
  return `id: ${id.length > MAX_LENGTH ? '' : id}\n`
}

/** @param {string} id untrusted */
function readEventId(id) {
  /** @type {Map<string, {offset: number, epoch: string, recoverable: boolean}>} */
  const positions = new Map()
  if (id.length <= MAX_LENGTH) {
    for (const entry of id.split(',')) {
      const match = /^([\w-]{8}):(\d{1,15}):(\w{1,32})$/.exec(entry)
      if (match) positions.set(match[1], { offset: Number(match[2]), epoch: match[3], recoverable: true })
    }
  }
  return (/** @type {string} */ channel) =>
    positions.size === 0 ? undefined : positions.get(hashName(channel))
}

/** One-way server-sent events, for a plain EventSource. Events of recoverable channels have an id. */
export class UniSseTransport extends UniStreamTransport {
  name = 'uni_sse'
  joins = false
  head = HEAD
  /** Id line of the next event. */
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
    // In the last event, before its final line feed.
    const end = `${this.#id}\n`
    this.#id = ''
    return typeof event === 'string'
      ? event.slice(0, -1) + end
      : Buffer.concat([event.subarray(0, -1), Buffer.from(end)])
  }

  /** Positions are known after the joins; the connect push and id are one event. @param {Session} session */
  connected(session) {
    const subscriptions = recoverable(session)
    if (subscriptions.length === 0) return
    this.#id = idLine(subscriptions)
    this.context.replies.flush()
    if (this.#id === '') return
    // The connect push is already sent.
    const id = this.#id
    this.#id = ''
    if (!session.closed) this.server.write(session.connection, `${id}\n`)
  }

  /** @type {Carrier['deliver']} */
  deliver(members, message, publication) {
    const clients = this.traffic.fannedOut(members.size, message.length)
    const event = events(message)
    if (publication === null || publication.offset === 0) {
      for (const { connection } of members) this.server.write(connection, event)
      return clients
    }
    // Connections with only this channel share one event.
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

/** @param {Session} session @returns {Subscription[]} with recovery; valid until the next call */
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
