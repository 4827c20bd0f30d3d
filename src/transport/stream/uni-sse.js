import { Kind } from '../../session/subscription.js'
import { queryValue } from '../query.js'
import { eventId, readEventId } from './event-id.js'
import { events } from './framing.js'
import { EVENT_STREAM, PREAMBLE } from './sse.js'
import { UniStreamTransport } from './uni-stream.js'

/**
 * @typedef {import('../../session/session.js').Session} Session
 * @typedef {import('../../hub/channel.js').Channel} Channel
 */

/** @param {Channel[]} channels */
function idLine(channels) {
  const id = eventId(channels)
  return id === '' ? '' : `id: ${id}\n`
}

/**
 * One-way server-sent events, for a plain EventSource. Events of channels that recover carry an id.
 */
export class UniSseTransport extends UniStreamTransport {
  name = 'uni_sse'
  contentType = EVENT_STREAM

  get responses() {
    return this.gateway.config.uni_sse.connect_code_to_http_response
  }

  /** Takes the path that the configuration names. */
  mount() {
    const { handler_prefix, max_request_body_size } = this.gateway.config.uni_sse
    this.server.route('GET', handler_prefix, exchange => {
      const caller = this.caller(exchange)
      if (!this.admission.admits()) return exchange.reply(503, caller.head, '')
      this.begin(exchange, queryValue(exchange.query, 'cf_connect') || '{}', caller)
    })
    this.server.route('POST', handler_prefix, exchange => {
      const caller = this.caller(exchange)
      if (!this.admission.admits()) return exchange.reply(503, caller.head, '')
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
    this.server.write(stream, PREAMBLE)
  }

  /** @param {import('../../protocol/contract.js').Encoded} message */
  frame(message) {
    return events(message)
  }

  /**
   * Where the connection stands is known only when it has joined its channels: an event of its own, without data.
   * @param {Session} session
   */
  connected(session) {
    const line = idLine(recoverable(session))
    if (line !== '') this.server.write(session.connection, `${line}\n`)
  }

  /** @type {StreamDelivery} @typedef {import('../contract.js').Carrier['deliver']} StreamDelivery */
  deliver(members, message, publication) {
    const event = events(message)
    if (publication === null || publication.offset === 0) {
      for (const { connection } of members) this.server.write(connection, event)
      return
    }
    // Most connections have one channel: their event is the same for all.
    let shared = null
    for (const session of members) {
      const channels = recoverable(session)
      if (channels.length === 0) this.server.write(session.connection, event)
      else if (channels.length === 1) {
        shared ??= Buffer.concat([Buffer.from(idLine(channels)), /** @type {Buffer} */ (event)])
        this.server.write(session.connection, shared)
      } else {
        this.server.write(session.connection, idLine(channels))
        this.server.write(session.connection, event)
      }
    }
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
