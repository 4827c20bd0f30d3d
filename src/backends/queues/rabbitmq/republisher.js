// A publish to a missing exchange closes the AMQP channel, and all unconfirmed messages must be resent. So each
// exchange is checked first, over a second channel.

import { once } from 'node:events'
import { connect } from 'amqplib'
import { tlsOptions } from '../../../config/pem.js'
import { Link } from '../timing.js'

/** @import { ChannelModel, Channel, ConfirmChannel } from 'amqplib' */
/** @import { Destination, DestinationContext, OutgoingMessage } from '../contract.js' */

const MAX_EXCHANGES = 10_000
const MISSING_MS = 5000
const CONNECT_TIMEOUT_MS = 5000
const CLOSE_MS = 1000
const HEARTBEAT_S = 10
/** AMQP's limit of exchange names and routing keys. */
const MAX_NAME_BYTES = 255
/** Maximum checks of an exchange while other checks close the channel; then it counts as missing. */
const MAX_CHECKS = 100

/**
 * `missing`: it does not exist or cannot be used. `recheckAt`: ms of performance.now(). `waiting`: messages waiting for
 * the check.
 * @typedef {{state: 'checking' | 'exists' | 'missing', recheckAt: number, reason: string,
 *   waiting: OutgoingMessage[]}} Exchange
 */

/** @typedef {{model: ChannelModel, channel: ConfirmChannel | Channel}} Client */

/** @param {DestinationContext<'rabbitmq'>} context @returns {Destination} */
export function create(context) {
  const { options } = context
  const tls = options.tls.enabled ? tlsOptions(options.tls) : {}
  let attempts = 0
  /** For checks of exchanges. @type {Promise<Channel> | null} */
  let checkChannel = null
  /** In check order. @type {Map<string, Exchange>} */
  const exchanges = new Map()
  /** Ids of returned messages awaiting their confirm. @type {Set<string>} */
  const returned = new Set()
  /** Without confirms: messages in the write buffer of the connection. @type {OutgoingMessage[]} */
  let undrained = []
  /** @type {Link<Client>} */
  const link = new Link(context, open, ({ model }) => close(model))
  const isCurrent = (/** @type {Channel} */ channel) => link.current?.channel === channel

  async function open() {
    const { urls, vhost, confirm } = options
    const url = new URL(urls[attempts++ % urls.length])
    if (vhost !== '') url.pathname = `/${encodeURIComponent(vhost)}`
    url.searchParams.set('heartbeat', String(HEARTBEAT_S))
    const model = await connect(url.href, {
      ...tls,
      timeout: CONNECT_TIMEOUT_MS,
      clientProperties: { connection_name: `halley republish ${context.name}` },
    })
    /** @type {Error} */
    let reason = new Error('the server has closed the connection')
    const failed = (/** @type {Error} */ error) => {
      reason = error
    }
    model.on('error', failed)
    try {
      const channel = confirm ? await model.createConfirmChannel() : await model.createChannel()
      const client = { model, channel }
      model.on('close', error => lost(client, error ?? reason))
      channel.on('error', failed)
      // Usually closed by the server because an exchange was deleted.
      channel.on('close', () => lost(client, reason))
      channel.on('return', message => returned.add(String(message.properties.messageId)))
      channel.on('drain', () => sent(channel, undrained.splice(0)))
      link.worked()
      return client
    } catch (error) {
      model.close().catch(() => {})
      throw error
    }
  }

  /** @param {Client} client @param {Error} reason */
  function lost(client, reason) {
    if (link.current !== client) return
    checkChannel = null
    exchanges.clear()
    returned.clear()
    undrained = []
    link.lost(client, reason)
  }

  /** Checks or declares an exchange, then sends waiting messages. @param {OutgoingMessage} message the first one */
  async function checkExchange(message) {
    const name = message.target
    /** @type {Exchange} */
    const exchange = { state: 'checking', recheckAt: 0, reason: 'exchange not checked', waiting: [message] }
    exchanges.delete(name)
    if (exchanges.size >= MAX_EXCHANGES) evictExchange()
    exchanges.set(name, exchange)
    const client = /** @type {Client} */ (link.current)
    let exists = false
    for (let checks = 0; checks < MAX_CHECKS; checks++) {
      const opening = openCheckChannel(client)
      try {
        const channel = await opening
        if (options.declare) await channel.assertExchange(name, options.exchange_type, { durable: true })
        else await channel.checkExchange(name)
        exists = true
        break
      } catch (error) {
        if (link.current !== client) return
        if (checkChannel === opening) checkChannel = null
        // Only the failed call has the server's error code. Without it, another check closed the channel.
        if (error.code === undefined) continue
        exchange.reason = error.message
        context.log.warn({ exchange: name, reason: error.message }, 'exchange cannot be used')
        break
      }
    }
    if (link.current !== client) return
    exchange.state = exists ? 'exists' : 'missing'
    exchange.recheckAt = performance.now() + MISSING_MS
    for (const waited of exchange.waiting.splice(0)) {
      if (exists) tryPublish(waited)
      else context.settled(waited, 'refused', exchange.reason)
    }
  }

  /** @param {Client} client @returns {Promise<Channel>} */
  function openCheckChannel({ model }) {
    checkChannel ??= model.createChannel().then(channel => {
      channel.on('error', () => {})
      return channel
    })
    return checkChannel
  }

  function evictExchange() {
    for (const [name, { state }] of exchanges) {
      if (state === 'checking') continue
      exchanges.delete(name)
      return
    }
  }

  /** @param {OutgoingMessage} message */
  function tryPublish(message) {
    try {
      publish(message)
    } catch (error) {
      context.settled(message, 'refused', error.message)
    }
  }

  /** @param {OutgoingMessage} message @throws {Error} if it cannot be encoded in AMQP */
  function publish(message) {
    const channel = link.current?.channel
    if (channel === undefined) return
    const { persistent, mandatory, confirm } = options
    const properties = {
      messageId: message.id,
      contentType: message.json ? 'application/json' : 'application/octet-stream',
      timestamp: Math.floor(message.time / 1000),
      appId: 'halley',
      headers: message.headers,
      persistent,
      // Without confirms a message is settled before a return.
      mandatory: mandatory && confirm,
    }
    if (!confirm) {
      const writable = channel.publish(message.target, message.key, message.body, properties)
      // A message must not be settled within `send`.
      if (!undrained.length && writable) queueMicrotask(() => sent(channel, [message]))
      else undrained.push(message)
      return
    }
    const confirming = /** @type {ConfirmChannel} */ (channel)
    confirming.publish(message.target, message.key, message.body, properties, error => {
      if (error) return queueMicrotask(() => refused(channel, message))
      if (!isCurrent(channel)) return
      context.settled(message, returned.delete(message.id) ? 'returned' : 'confirmed')
    })
  }

  /** @param {Channel} channel @param {OutgoingMessage[]} messages */
  function sent(channel, messages) {
    if (isCurrent(channel)) for (const message of messages) context.settled(message, 'confirmed')
  }

  /**
   * When a channel closes, amqplib reports all unconfirmed messages as rejected; they are resent.
   * @param {Channel} channel @param {OutgoingMessage} message
   */
  function refused(channel, message) {
    if (isCurrent(channel)) context.settled(message, 'refused', 'rejected by the server')
  }

  return {
    start: () => void link.start(),
    stop: () => link.stop(),
    send(message) {
      const { target, key } = message
      if (Buffer.byteLength(target) > MAX_NAME_BYTES || Buffer.byteLength(key) > MAX_NAME_BYTES)
        throw new Error('exchange or routing key is longer than 255 bytes')
      if (target === '') return publish(message)
      const exchange = exchanges.get(target)
      if (exchange?.state === 'exists') return publish(message)
      if (exchange?.state === 'checking') return void exchange.waiting.push(message)
      if (exchange !== undefined && exchange.recheckAt > performance.now())
        return void queueMicrotask(() => context.settled(message, 'refused', exchange.reason))
      checkExchange(message)
    },
  }
}

/** Closes the connection, even if the server hangs. @param {ChannelModel} model */
async function close(model) {
  const { stream } = /** @type {any} */ (model.connection)
  const late = setTimeout(() => stream.destroy(new Error('the server does not respond')), CLOSE_MS)
  await Promise.race([model.close().catch(() => {}), once(stream, 'close').catch(() => {})])
  clearTimeout(late)
}
