// Redis streams. An entry has the body in one field and the headers in fields of their own, as consumers read them.

import { Redis } from 'ioredis'
import { observed, ServerConnector } from '../../../channels/broker/redis-targets.js'
import { tlsOptions } from '../../../config/pem.js'
import { redisShards } from '../../../config/redis-shards.js'
import { redisOfBlock } from '../../../config/republish.js'
import { reconnectDelay } from '../timing.js'

/** @import { Destination, DestinationContext, OutgoingMessage } from '../contract.js' */

const CONNECT_TIMEOUT_MS = 5000
/** Time without an answer after which the connection counts as lost. */
const IO_TIMEOUT_MS = 10_000
/** Errors that pass by themselves: what was not taken is sent again after a new connection. */
const PASSING =
  /^(?:LOADING|READONLY|OOM|MISCONF|CLUSTERDOWN|MASTERDOWN|NOREPLICAS|TRYAGAIN|BUSY|UNBLOCKED|NOAUTH)/

/** @implements {Destination} */
class StreamDestination {
  #options
  #context
  #redis
  #up = false
  /** Of the connection: replies of an earlier one count no more. */
  #generation = 0
  /** @type {import('node:net').Socket | null} */
  #socket = null
  /** Commands of a turn leave in one write: a pipeline of 64 commands takes 20 % more processor time. */
  #corked = false
  #failures = 0

  /** @param {DestinationContext} context */
  constructor(context) {
    this.#context = context
    this.#options = context.options
    const [shard] = redisShards(redisOfBlock(this.#options), (_key, text) => {
      throw new Error(text)
    })
    const { hosts, path, user, password, db, tls } = shard
    this.#redis = new Redis({
      ...(path === '' ? hosts[0] : { path }),
      username: user || undefined,
      password: password || undefined,
      db,
      tls: tls ? tlsOptions(this.#options.tls) : undefined,
      Connector: observed(ServerConnector, socket => {
        this.#socket = socket
      }),
      lazyConnect: true,
      connectTimeout: CONNECT_TIMEOUT_MS,
      socketTimeout: IO_TIMEOUT_MS,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      autoResubscribe: false,
      maxRetriesPerRequest: null,
      retryStrategy: () => reconnectDelay(++this.#failures),
    })
    /** @type {Error} */
    let reason = new Error('the server has closed the connection')
    this.#redis.on('error', error => {
      reason = error
    })
    this.#redis.on('ready', () => {
      this.#up = true
      context.up()
    })
    this.#redis.on('close', () => this.#down(reason))
  }

  /** @param {Error} reason */
  #down(reason) {
    this.#up = false
    this.#corked = false
    this.#generation++
    this.#context.down(reason)
  }

  start() {
    this.#redis.connect().catch(() => {})
  }

  /** @param {OutgoingMessage} message */
  send(message) {
    const { max_length: maxLength, payload_value: payload } = this.#options
    /** @type {(string | Buffer | number)[]} */
    const args = [message.target]
    if (maxLength > 0) args.push('MAXLEN', '~', maxLength)
    args.push('*', payload, message.body, 'id', message.id)
    for (const name in message.headers) args.push(name, message.headers[name])
    const generation = this.#generation
    if (!this.#corked) {
      this.#corked = true
      this.#socket?.cork()
    }
    this.#redis.call('XADD', args, error => this.#answered(generation, message, error ?? null))
  }

  flush() {
    if (this.#corked) this.#socket?.uncork()
    this.#corked = false
  }

  /** @param {number} generation @param {OutgoingMessage} message @param {Error | null} error */
  #answered(generation, message, error) {
    if (generation !== this.#generation) return
    if (error === null) {
      this.#failures = 0
      return this.#context.settled(message, 'confirmed')
    }
    if (error.name === 'ReplyError' && !PASSING.test(error.message))
      return this.#context.settled(message, 'refused', error.message)
    // A lost connection is reported by `close`, after these.
    if (!this.#up) return
    this.#down(error)
    this.#redis.disconnect(true)
  }

  async stop() {
    this.#redis.removeAllListeners('close')
    this.#redis.disconnect()
  }
}

/** @param {DestinationContext} context @returns {Destination} */
export const create = context => new StreamDestination(context)
