import { createHash } from 'node:crypto'
import { Session } from '../../session/session.js'
import { Kind } from '../../session/subscription.js'
import { queryValue } from '../http-request.js'
import { events } from './framing.js'
import { StreamTransport } from './stream-transport.js'
import { UniStreamTransport } from './uni-stream.js'

export const EVENT_STREAM = 'text/event-stream; charset=utf-8'
const PREAMBLE = '\r\n'

/**
 * What the body begins with, so that a proxy that waits for the first byte lets the head through. In a chunk of its
 * own: npm `eventsource` 2 swallows an event that comes in the same one.
 * @param {import('../../server/contract.js').SocketServer} server
 * @param {import('../../server/contract.js').Stream} stream
 */
export function writePreamble(server, stream) {
  server.write(stream, PREAMBLE)
  server.flush(stream)
}

/**
 * Two-way server-sent events (client protocol, section 16.2): the first commands come with the request, later ones
 * through the emulation endpoint.
 */
export class SseTransport extends StreamTransport {
  name = 'sse'
  emulated = true

  /** Takes the path that the configuration names. */
  mount() {
    const path = this.context.config.sse.handler_prefix
    this.server.route('GET', path, exchange => this.#get(exchange))
    this.server.route('POST', path, exchange => this.#post(exchange))
    this.server.route('*', path, exchange =>
      exchange.reply(405, this.cors.headers(exchange, { Allow: 'GET, POST' }), 'Method Not Allowed'),
    )
  }

  /** @param {import('../../server/contract.js').Exchange} exchange */
  #get(exchange) {
    const { user, head } = this.clientOf(exchange, EVENT_STREAM)
    const commands = queryValue(exchange.query, 'cf_connect')
    if (!commands) return exchange.reply(400, head, 'cf_connect is missing')
    this.#open(exchange, head, user, Buffer.from(commands))
  }

  /** @param {import('../../server/contract.js').Exchange} exchange */
  #post(exchange) {
    const { user, head } = this.clientOf(exchange, EVENT_STREAM)
    exchange.body(this.context.config.sse.max_request_body_size, body => {
      if (body === null) exchange.reply(413, head, '')
      else this.#open(exchange, head, user, body)
    })
  }

  /**
   * @param {import('../../server/contract.js').Exchange} exchange
   * @param {Record<string, string>} head
   * @param {string} user
   * @param {Buffer} commands
   */
  #open(exchange, head, user, commands) {
    if (!this.admission.admits()) return exchange.reply(503, head, '')
    const stream = exchange.stream(200, head, this.route)
    if (stream === null) return
    const session = new Session(this, stream, this.context.codecs.json, 0)
    session.user = user
    this.opened(session, stream)
    writePreamble(this.server, stream)
    session.receive(commands)
  }

  /** @param {import('../../protocol/contract.js').Encoded} message */
  frame(message) {
    return events(message)
  }
}

/**
 * Event ids of one-way SSE: the positions of all channels of a connection that can recover, so that a browser that
 * reconnects by itself and tells the last one (`Last-Event-ID`) goes on where it was.
 *
 *   id   = entry *("," entry)
 *   entry = channel ":" offset ":" epoch        channel: 8 letters of a hash of its name
 */

const HASH_BYTES = 6
/** Browsers send the id back in a header; servers and proxies take some thousands of bytes of them. */
const MAX_LENGTH = 2000

/** @type {WeakMap<object, string>} the hub's channel -> hash of its name */
const hashes = new WeakMap()

/** @param {string} name */
const hashName = name =>
  createHash('sha256').update(name).digest().subarray(0, HASH_BYTES).toString('base64url')

/** @param {import('../../hub/channel.js').Channel} channel */
function hashOf(channel) {
  let hash = hashes.get(channel)
  if (hash === undefined) hashes.set(channel, (hash = hashName(channel.name)))
  return hash
}

/**
 * @param {import('../../hub/channel.js').Channel[]} channels positioned ones
 * @returns {string} '' when they are too many for one id
 */
export function eventId(channels) {
  const id = channels.map(channel => `${hashOf(channel)}:${channel.offset}:${channel.epoch}`).join(',')
  return id.length > MAX_LENGTH ? '' : id
}

/**
 * @param {string} id of whatever form
 * @returns {(channel: string) => {offset: number, epoch: string, recoverable: boolean} | undefined} position of a
 *   channel
 */
export function readEventId(id) {
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

/**
 * @typedef {import('../../hub/channel.js').Channel} Channel
 */

/**
 * @param {Channel[]} channels at least one
 * @returns {string} without an id when they are too many for one: the client forgets the last one, which is no longer
 *   true
 */
const idLine = channels => `id: ${eventId(channels)}\n`

/**
 * One-way server-sent events, for a plain EventSource. Events of channels that recover carry an id.
 */
export class UniSseTransport extends UniStreamTransport {
  name = 'uni_sse'
  contentType = EVENT_STREAM
  /** Line for the event that is framed next. */
  #id = ''

  get responses() {
    return this.context.config.uni_sse.connect_code_to_http_response
  }

  /** Takes the path that the configuration names. */
  mount() {
    const { handler_prefix, max_request_body_size } = this.context.config.uni_sse
    this.server.route('GET', handler_prefix, exchange => {
      const caller = this.caller(exchange)
      this.begin(exchange, queryValue(exchange.query, 'cf_connect') || '{}', caller)
    })
    this.server.route('POST', handler_prefix, exchange => {
      const caller = this.caller(exchange)
      exchange.body(max_request_body_size, body => {
        if (body === null) exchange.reply(413, caller.head, '')
        else this.begin(exchange, body.toString(), caller)
      })
    })
    this.server.route('*', handler_prefix, exchange =>
      exchange.reply(405, this.cors.headers(exchange, { Allow: 'GET, POST' }), 'Method Not Allowed'),
    )
  }

  /**
   * @param {any} request
   * @param {{lastEventId: string}} caller
   */
  complete(request, { lastEventId }) {
    if (lastEventId !== '') request.positions = readEventId(lastEventId)
  }

  /** @param {import('../../server/contract.js').Stream} stream */
  preface(stream) {
    writePreamble(this.server, stream)
  }

  /** @param {import('../../protocol/contract.js').Encoded} message */
  frame(message) {
    const event = events(message)
    if (this.#id === '') return event
    // Inside of the last event, before the line feed that ends it.
    const end = `${this.#id}\n`
    this.#id = ''
    return typeof event === 'string'
      ? event.slice(0, -1) + end
      : Buffer.concat([event.subarray(0, -1), Buffer.from(end)])
  }

  /**
   * Where the connection stands is known only when it has joined its channels. The id counts the recovered publications
   * of the connect push as received, so both are one event: a client has both or neither when its connection ends.
   * @param {Session} session
   */
  connected(session) {
    const channels = recoverable(session)
    if (channels.length === 0) return
    this.#id = idLine(channels)
    this.context.replies.flush()
    if (this.#id === '') return
    // Everything has left already.
    const id = this.#id
    this.#id = ''
    if (!session.closed) this.server.write(session.connection, `${id}\n`)
  }

  /** @type {StreamDelivery} @typedef {import('../index.js').Carrier['deliver']} StreamDelivery */
  deliver(members, message, publication) {
    const clients = this.traffic.fannedOut(members.size, message.length)
    const event = events(message)
    if (publication === null || publication.offset === 0) {
      for (const { connection } of members) this.server.write(connection, event)
      return clients
    }
    // Most connections have one channel, this one: their event is the same for all.
    let shared = null
    let sharedBy = null
    for (const session of members) {
      const channels = recoverable(session)
      if (channels.length === 0) this.server.write(session.connection, event)
      else if (channels.length === 1) {
        if (shared === null || sharedBy !== channels[0]) {
          shared = Buffer.concat([Buffer.from(idLine(channels)), /** @type {Buffer} */ (event)])
          sharedBy = channels[0]
        }
        this.server.write(session.connection, shared)
      } else {
        this.server.write(session.connection, idLine(channels))
        this.server.write(session.connection, event)
      }
    }
    return clients
  }
}

/** @type {Channel[]} */
const one = []
/** @type {Channel[]} */
const NONE = []

/**
 * @param {Session} session
 * @returns {Channel[]} those whose position a reconnect can give back; valid until the next call
 */
function recoverable({ subscriptions }) {
  if (subscriptions === null) return NONE
  if (!(subscriptions instanceof Map)) {
    if (!subscriptions.is(Kind.RECOVERABLE)) return NONE
    one[0] = subscriptions.channel
    return one
  }
  const channels = []
  for (const subscription of subscriptions.values()) {
    if (subscription.is(Kind.RECOVERABLE)) channels.push(subscription.channel)
  }
  return channels
}
