// Redis streams. An entry has the body in one field and each header in a field, as read by consumers.

import { Redis } from 'ioredis'
import { observed, ServerConnector } from '../../../channels/broker/redis-targets.js'
import { tlsOptions } from '../../../config/pem.js'
import { redisShards } from '../../../config/redis-shards.js'
import { redisOfBlock } from '../../../config/republish.js'
import { reconnectDelay } from '../timing.js'

/** @import { Destination, DestinationContext, OutgoingMessage } from '../contract.js' */

const CONNECT_TIMEOUT_MS = 5000
/** Response timeout after which the connection counts as lost. */
const IO_TIMEOUT_MS = 10_000
/** Temporary errors: unsettled messages are resent after a reconnect. */
const PASSING =
  /^(?:LOADING|READONLY|OOM|MISCONF|CLUSTERDOWN|MASTERDOWN|NOREPLICAS|TRYAGAIN|BUSY|UNBLOCKED|NOAUTH)/

/** @param {DestinationContext<'redis_stream'>} context @returns {Destination} */
export function create(context) {
  const { options } = context
  const { max_length: maxLength, payload_value: payload } = options
  let isUp = false
  /** Number of the connection: earlier replies are ignored. */
  let generation = 0
  /** @type {import('node:net').Socket | null} */
  let socket = null
  /** Commands of a turn share one write: a pipeline of 64 commands takes 20 % more CPU time. */
  let corked = false
  let failures = 0
  const [shard] = redisShards(redisOfBlock(options), (_key, text) => {
    throw new Error(text)
  })
  const { hosts, path, user, password, db, tls } = shard
  const redis = new Redis({
    ...(path === '' ? hosts[0] : { path }),
    username: user || undefined,
    password: password || undefined,
    db,
    tls: tls ? tlsOptions(options.tls) : undefined,
    Connector: observed(ServerConnector, opened => {
      socket = opened
    }),
    lazyConnect: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: IO_TIMEOUT_MS,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: null,
    retryStrategy: () => reconnectDelay(++failures),
  })
  /** @type {Error} */
  let lastError = new Error('the server has closed the connection')
  redis.on('error', error => {
    lastError = error
  })
  redis.on('ready', () => {
    isUp = true
    context.up()
  })
  redis.on('close', () => down(lastError))

  /** @param {Error} reason */
  function down(reason) {
    isUp = false
    corked = false
    generation++
    context.down(reason)
  }

  /** @param {number} sentIn generation @param {OutgoingMessage} message @param {Error | null} error */
  function answered(sentIn, message, error) {
    if (sentIn !== generation) return
    if (error === null) {
      failures = 0
      return context.settled(message, 'confirmed')
    }
    if (error.name === 'ReplyError' && !PASSING.test(error.message))
      return context.settled(message, 'refused', error.message)
    // A lost connection is reported by `close`, after these.
    if (!isUp) return
    down(error)
    redis.disconnect(true)
  }

  return {
    start: () => void redis.connect().catch(() => {}),
    send(message) {
      /** @type {(string | Buffer | number)[]} */
      const args = [message.target]
      if (maxLength > 0) args.push('MAXLEN', '~', maxLength)
      args.push('*', payload, message.body, 'id', message.id)
      for (const name in message.headers) args.push(name, message.headers[name])
      const sentIn = generation
      if (!corked) {
        corked = true
        socket?.cork()
      }
      redis.call('XADD', args, error => answered(sentIn, message, error ?? null))
    },
    flush() {
      if (corked) socket?.uncork()
      corked = false
    },
    async stop() {
      redis.removeAllListeners('close')
      redis.disconnect()
    },
  }
}
