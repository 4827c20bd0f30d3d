// Destination type `rabbitmq`. A publish to a missing exchange closes its AMQP channel, and all messages without a
// confirm must be sent again. So each exchange is checked first, over a second channel, which a missing one may close.

import { once } from 'node:events'
import { connect } from 'amqplib'
import { tlsOptions } from '../../../config/pem.js'
import { reconnectDelay } from '../timing.js'

/** @import { ChannelModel, Channel, ConfirmChannel } from 'amqplib' */
/** @import { Destination, DestinationContext, OutgoingMessage } from '../contract.js' */

/** Maximum exchanges whose state is kept. */
const MAX_EXCHANGES = 10_000
/** Time until a missing exchange is checked again. */
const MISSING_MS = 5000
const CONNECT_TIMEOUT_MS = 5000
const CLOSE_MS = 1000
const HEARTBEAT_S = 10
/** AMQP's limit of exchange names and routing keys. */
const MAX_NAME_BYTES = 255
/** Maximum checks of an exchange, if checks of others close their channel. Then it counts as missing. */
const MAX_CHECKS = 100

/**
 * @typedef {object} Exchange
 * @property {'checking' | 'exists' | 'missing'} state missing: it does not exist, or cannot be used
 * @property {number} recheckAt ms on the clock of `performance`; for a missing one
 * @property {string} reason why it is missing
 * @property {OutgoingMessage[]} waiting until it is checked
 */

/** @implements {Destination} */
class RabbitDestination {
  #options
  #context
  #tls
  /** Attempts to connect; each takes the next URL. */
  #attempts = 0
  /** Consecutive failed attempts. */
  #failures = 0
  #stopped = false
  /** @type {NodeJS.Timeout | undefined} */
  #reconnectTimer
  /** @type {ChannelModel | null} */
  #connection = null
  /** For publishes. @type {ConfirmChannel | Channel | null} */
  #channel = null
  /** For checks of exchanges. @type {Promise<Channel> | null} */
  #checkChannel = null
  /** In the order of their checks. @type {Map<string, Exchange>} */
  #exchanges = new Map()
  /** Ids of returned messages. The confirm of each follows. @type {Set<string>} */
  #returned = new Set()
  /** Without confirms: messages in the write buffer of the connection. @type {OutgoingMessage[]} */
  #undrained = []

  /** @param {DestinationContext} context */
  constructor(context) {
    this.#context = context
    this.#options = context.options
    this.#tls = context.options.tls.enabled ? tlsOptions(context.options.tls) : {}
  }

  start() {
    this.#connect()
  }

  async #connect() {
    const { urls, vhost, confirm } = this.#options
    const url = new URL(urls[this.#attempts++ % urls.length])
    if (vhost !== '') url.pathname = `/${encodeURIComponent(vhost)}`
    url.searchParams.set('heartbeat', String(HEARTBEAT_S))
    /** @type {ChannelModel | null} */
    let connection = null
    try {
      connection = await connect(url.href, {
        ...this.#tls,
        timeout: CONNECT_TIMEOUT_MS,
        clientProperties: { connection_name: `halley republish ${this.#context.name}` },
      })
      const opened = connection
      /** @type {Error} */
      let reason = new Error('the server has closed the connection')
      opened.on('error', error => {
        reason = error
      })
      opened.on('close', error => this.#lost(opened, error ?? reason))
      const channel = confirm ? await opened.createConfirmChannel() : await opened.createChannel()
      if (this.#stopped) return void opened.close().catch(() => {})
      channel.on('error', error => {
        reason = error
      })
      channel.on('close', () => this.#channelClosed(opened, channel, reason))
      channel.on('return', message => this.#returned.add(String(message.properties.messageId)))
      channel.on('drain', () => this.#sent(channel, this.#undrained.splice(0)))
      this.#connection = opened
      this.#channel = channel
      this.#failures = 0
      this.#context.up()
    } catch (error) {
      connection?.close().catch(() => {})
      this.#context.down(error)
      this.#retry()
    }
  }

  #retry() {
    if (this.#stopped) return
    clearTimeout(this.#reconnectTimer)
    this.#reconnectTimer = setTimeout(() => this.#connect(), reconnectDelay(++this.#failures))
  }

  /**
   * The server has closed the channel, usually because an exchange was deleted: reconnect.
   * @param {ChannelModel} connection @param {any} channel @param {Error} reason
   */
  #channelClosed(connection, channel, reason) {
    if (this.#channel !== channel) return
    this.#lost(connection, reason)
    connection.close().catch(() => {})
  }

  /** @param {ChannelModel} connection @param {Error} reason */
  #lost(connection, reason) {
    if (this.#connection !== connection) return
    this.#connection = null
    this.#channel = null
    this.#checkChannel = null
    this.#exchanges.clear()
    this.#returned.clear()
    this.#undrained = []
    if (this.#stopped) return
    this.#context.down(reason)
    this.#retry()
  }

  /** @param {OutgoingMessage} message */
  send(message) {
    if (Buffer.byteLength(message.target) > MAX_NAME_BYTES || Buffer.byteLength(message.key) > MAX_NAME_BYTES)
      throw new Error('exchange or routing key is longer than 255 bytes')
    if (message.target === '') return this.#publish(message)
    const exchange = this.#exchanges.get(message.target)
    if (exchange?.state === 'exists') return this.#publish(message)
    if (exchange?.state === 'checking') return void exchange.waiting.push(message)
    if (exchange !== undefined && exchange.recheckAt > performance.now())
      return void queueMicrotask(() => this.#context.settled(message, 'refused', exchange.reason))
    this.#checkExchange(message)
  }

  /** Checks or declares an exchange, then sends what waits for it. @param {OutgoingMessage} message its first one */
  async #checkExchange(message) {
    const name = message.target
    /** @type {Exchange} */
    const exchange = { state: 'checking', recheckAt: 0, reason: 'exchange not checked', waiting: [message] }
    this.#exchanges.delete(name)
    if (this.#exchanges.size >= MAX_EXCHANGES) this.#evictExchange()
    this.#exchanges.set(name, exchange)
    const connection = /** @type {ChannelModel} */ (this.#connection)
    let exists = false
    for (let checks = 0; checks < MAX_CHECKS; checks++) {
      const opening = this.#openCheckChannel(connection)
      try {
        const channel = await opening
        const { declare, exchange_type: type } = this.#options
        if (declare) await channel.assertExchange(name, type, { durable: true })
        else await channel.checkExchange(name)
        exists = true
        break
      } catch (error) {
        if (this.#connection !== connection) return
        if (this.#checkChannel === opening) this.#checkChannel = null
        // amqplib gives the server's code to the failed call only. Without one, another check closed the channel.
        if (error.code === undefined) continue
        exchange.reason = error.message
        this.#context.log.warn({ exchange: name, reason: error.message }, 'exchange cannot be used')
        break
      }
    }
    if (this.#connection !== connection) return
    exchange.state = exists ? 'exists' : 'missing'
    exchange.recheckAt = performance.now() + MISSING_MS
    const { waiting } = exchange
    exchange.waiting = []
    for (const waited of waiting) {
      if (exists) this.#tryPublish(waited)
      else this.#context.settled(waited, 'refused', exchange.reason)
    }
  }

  /** @param {ChannelModel} connection @returns {Promise<Channel>} */
  #openCheckChannel(connection) {
    this.#checkChannel ??= connection.createChannel().then(channel => {
      // The error of the call reports it.
      channel.on('error', () => {})
      return channel
    })
    return this.#checkChannel
  }

  /** Removes the exchange that was checked first; it is checked again when it is used. */
  #evictExchange() {
    for (const [name, { state }] of this.#exchanges) {
      if (state === 'checking') continue
      this.#exchanges.delete(name)
      return
    }
  }

  /** @param {OutgoingMessage} message */
  #tryPublish(message) {
    try {
      this.#publish(message)
    } catch (error) {
      this.#context.settled(message, 'refused', error.message)
    }
  }

  /** @param {OutgoingMessage} message @throws {Error} if it cannot be encoded in AMQP */
  #publish(message) {
    const channel = this.#channel
    if (channel === null) return
    const { persistent, mandatory, confirm } = this.#options
    const properties = {
      messageId: message.id,
      contentType: message.json ? 'application/json' : 'application/octet-stream',
      timestamp: Math.floor(message.time / 1000),
      appId: 'halley',
      headers: message.headers,
      persistent,
      // Without confirms a message is settled before it could be returned.
      mandatory: mandatory && confirm,
    }
    if (!confirm) {
      const writable = channel.publish(message.target, message.key, message.body, properties)
      // A message must not be settled within `send`.
      if (!this.#undrained.length && writable) queueMicrotask(() => this.#sent(channel, [message]))
      else this.#undrained.push(message)
      return
    }
    const confirming = /** @type {ConfirmChannel} */ (channel)
    confirming.publish(message.target, message.key, message.body, properties, error => {
      if (error) return queueMicrotask(() => this.#refused(channel, message))
      if (this.#channel !== channel) return
      this.#context.settled(message, this.#returned.delete(message.id) ? 'returned' : 'confirmed')
    })
  }

  /** @param {Channel} channel @param {OutgoingMessage[]} messages */
  #sent(channel, messages) {
    if (this.#channel === channel) for (const message of messages) this.#context.settled(message, 'confirmed')
  }

  /**
   * The server has rejected a message. When a channel closes, amqplib reports all its messages without a confirm as
   * rejected too; those are not settled, so they are sent again.
   * @param {Channel} channel @param {OutgoingMessage} message
   */
  #refused(channel, message) {
    if (this.#channel === channel) this.#context.settled(message, 'refused', 'the server rejected it')
  }

  async stop() {
    this.#stopped = true
    clearTimeout(this.#reconnectTimer)
    const connection = this.#connection
    this.#connection = null
    this.#channel = null
    if (connection === null) return
    const { stream } = /** @type {any} */ (connection.connection)
    // A server that hangs never answers.
    const late = setTimeout(() => stream.destroy(new Error('the server does not answer')), CLOSE_MS)
    await Promise.race([connection.close().catch(() => {}), once(stream, 'close').catch(() => {})])
    clearTimeout(late)
  }
}

/** @param {DestinationContext} context @returns {Destination} */
export const create = context => new RabbitDestination(context)
