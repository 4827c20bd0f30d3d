import { Kind } from '../../session/subscription.js'
import { queryValue } from '../query.js'
import { eventId, readEventId } from './event-id.js'
import { events } from './framing.js'
import { EVENT_STREAM, writePreamble } from './sse.js'
import { UniStreamTransport } from './uni-stream.js'

/**
 * @typedef {import('../../session/session.js').Session} Session
 * @typedef {import('../../hub/channel.js').Channel} Channel
 */

/**
 * @param {Channel[]} channels at least one
 * @returns {string} without an id when they are too many for one: the client forgets the last one, which is no longer true
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
   * Where the connection stands is known only when it has joined its channels. The id counts the recovered publications of the connect push
   * as received, so both are one event: a client has both or neither when its connection ends.
   * @param {Session} session
   */
  connected(session) {
    const channels = recoverable(session)
    if (channels.length === 0) return
    this.#id = idLine(channels)
    this.context.outbox.flush()
    if (this.#id === '') return
    // Everything has left already.
    const id = this.#id
    this.#id = ''
    if (!session.closed) this.server.write(session.connection, `${id}\n`)
  }

  /** @type {StreamDelivery} @typedef {import('../contract.js').Carrier['deliver']} StreamDelivery */
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
