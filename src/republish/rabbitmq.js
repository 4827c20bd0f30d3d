// RabbitMQ. Messages leave over an AMQP channel of its own, since a publish to a missing exchange closes the channel.
// Exchanges are looked for over a second one, which a missing exchange closes instead.

import { once } from 'node:events'
import { connect } from 'amqplib'
import { tlsOptions } from '../config/pem.js'
import { reconnectDelay } from './contract.js'

/** @import { ChannelModel, Channel, ConfirmChannel } from 'amqplib' */
/** @import { Destination, DestinationContext, Message } from './contract.js' */

/** Exchanges that are remembered. */
const MAX_EXCHANGES = 10_000
/** A missing exchange is looked for again after this time. */
const MISSING_MS = 5000
const CONNECT_TIMEOUT_MS = 5000
const CLOSE_MS = 1000
const HEARTBEAT_S = 10
const NOT_FOUND = 404
/** Of AMQP. */
const MAX_NAME_BYTES = 255
/** Channels that other questions may close before an exchange counts as missing. */
const MAX_QUESTIONS = 100
const NO_EXCHANGE = 'there is no such exchange'

/**
 * @typedef {object} Exchange
 * @property {'asked' | 'there' | 'missing'} state
 * @property {number} until ms; missing: when it is looked for again
 * @property {Message[]} waiting for the answer
 */

/** @implements {Destination} */
class RabbitDestination {
  #options
  #context
  #tls
  #url = 0
  #failures = 0
  #stopped = false
  /** @type {NodeJS.Timeout | undefined} */
  #timer
  /** @type {ChannelModel | null} */
  #connection = null
  /** @type {ConfirmChannel | Channel | null} */
  #channel = null
  /** For passive declares. @type {Promise<Channel> | null} */
  #asking = null
  /** Least recently used first. @type {Map<string, Exchange>} */
  #exchanges = new Map()
  /** Returned ones come before their confirms. @type {Set<string>} ids */
  #returned = new Set()
  /** Without confirms: written, and not yet accepted by the kernel. @type {Message[]} */
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
    const url = new URL(urls[this.#url++ % urls.length])
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
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#connect(), reconnectDelay(++this.#failures))
  }

  /**
   * The server has closed it: mostly an exchange has gone.
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
    this.#asking = null
    this.#exchanges.clear()
    this.#returned.clear()
    this.#undrained = []
    if (this.#stopped) return
    this.#context.down(reason)
    this.#retry()
  }

  /** @param {Message} message */
  send(message) {
    if (Buffer.byteLength(message.target) > MAX_NAME_BYTES || Buffer.byteLength(message.key) > MAX_NAME_BYTES)
      throw new Error('exchange or routing key is longer than 255 bytes')
    if (message.target === '') return this.#publish(message)
    const exchange = this.#exchanges.get(message.target)
    if (exchange?.state === 'there') return this.#publish(message)
    if (exchange?.state === 'asked') return void exchange.waiting.push(message)
    if (exchange !== undefined && exchange.until > performance.now())
      return void queueMicrotask(() => this.#context.settled(message, 'refused', NO_EXCHANGE))
    this.#ask(message)
  }

  /** @param {Message} message the first one to an exchange */
  async #ask(message) {
    const name = message.target
    /** @type {Exchange} */
    const exchange = { state: 'asked', until: 0, waiting: [message] }
    this.#exchanges.delete(name)
    if (this.#exchanges.size >= MAX_EXCHANGES) this.#forgetOne()
    this.#exchanges.set(name, exchange)
    const connection = /** @type {ChannelModel} */ (this.#connection)
    let there = false
    for (let asked = 0; asked < MAX_QUESTIONS; asked++) {
      const asking = this.#open(connection)
      try {
        const channel = await asking
        const { declare, exchange_type: type } = this.#options
        if (declare) await channel.assertExchange(name, type, { durable: true })
        else await channel.checkExchange(name)
        there = true
        break
      } catch (error) {
        if (this.#connection !== connection) return
        const own = error.code === NOT_FOUND && error.message.includes(`exchange '${name}'`)
        if (this.#asking === asking) this.#asking = null
        // The channel was closed by the question about another exchange: ask again.
        if (error.code === undefined || (error.code === NOT_FOUND && !own)) continue
        this.#context.log.warn({ exchange: name, reason: error.message }, 'exchange cannot be used')
        break
      }
    }
    if (this.#connection !== connection) return
    exchange.state = there ? 'there' : 'missing'
    exchange.until = performance.now() + MISSING_MS
    const { waiting } = exchange
    exchange.waiting = []
    for (const one of waiting) {
      if (there) this.#tryPublish(one)
      else this.#context.settled(one, 'refused', NO_EXCHANGE)
    }
  }

  /** @param {ChannelModel} connection @returns {Promise<Channel>} */
  #open(connection) {
    this.#asking ??= connection.createChannel().then(channel => {
      channel.on('error', () => {})
      return channel
    })
    return this.#asking
  }

  #forgetOne() {
    for (const [name, { state }] of this.#exchanges) {
      if (state === 'asked') continue
      this.#exchanges.delete(name)
      return
    }
  }

  /** @param {Message} message */
  #tryPublish(message) {
    try {
      this.#publish(message)
    } catch (error) {
      this.#context.settled(message, 'refused', error.message)
    }
  }

  /** @param {Message} message @throws {Error} if AMQP has no form for it */
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
      mandatory,
    }
    if (!confirm) {
      const room = channel.publish(message.target, message.key, message.body, properties)
      // Not at once: the caller is sending.
      if (!this.#undrained.length && room) queueMicrotask(() => this.#sent(channel, [message]))
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

  /** @param {Channel} channel @param {Message[]} messages */
  #sent(channel, messages) {
    if (this.#channel === channel) for (const message of messages) this.#context.settled(message, 'confirmed')
  }

  /**
   * The library reports the messages without a confirm so, too, when the channel closes: then they are sent again.
   * @param {Channel} channel @param {Message} message
   */
  #refused(channel, message) {
    if (this.#channel === channel) this.#context.settled(message, 'refused', 'the server refuses it')
  }

  async stop() {
    this.#stopped = true
    clearTimeout(this.#timer)
    const connection = this.#connection
    this.#connection = null
    this.#channel = null
    if (connection === null) return
    const { stream } = /** @type {any} */ (connection.connection)
    // A server that stands still never answers.
    const late = setTimeout(() => stream.destroy(new Error('the server does not answer')), CLOSE_MS)
    await Promise.race([connection.close().catch(() => {}), once(stream, 'close').catch(() => {})])
    clearTimeout(late)
  }
}

/** @param {DestinationContext} context @returns {Destination} */
export const create = context => new RabbitDestination(context)
