// The server API as methods: one shape for the gateway object of a program (createGateway), for the gateway of a hooks
// module and for the HTTP client (halley-gateway/api). They differ in `send` only.
// Names are camelCase here and snake_case on the wire; wire.js writes and reads it.

import { ApiError } from './api-error.js'
import { results, writeBatch, writeCall } from './wire.js'

/**
 * @typedef {{offset: number, epoch: string}} Position of a publication in the history of its channel; offset 0: it is
 *   in none
 *
 * @typedef {object} PublishOptions
 * @property {boolean} [skipHistory] deliver it, but do not keep it
 * @property {Record<string, string>} [tags] passed to subscribers and to their filters
 * @property {string} [idempotencyKey] a second publication with the key of an earlier one has no effect
 * @property {boolean} [delta] send it as a delta to subscribers that negotiated deltas
 * @property {number | bigint} [version] a publication whose version is not above the last one has no effect
 * @property {string} [versionEpoch] of the versions; another one starts again
 *
 * @typedef {{client?: string, session?: string}} Target one connection of the user; without: all of them
 *
 * @typedef {object} Switches channel options that a subscription overrides
 * @property {boolean} [presence]
 * @property {boolean} [joinLeave]
 * @property {boolean} [forcePushJoinLeave]
 * @property {boolean} [forcePositioning]
 * @property {boolean} [forceRecovery]
 *
 * @typedef {object} SubscribeOptions
 * @property {string} [client] @property {string} [session]
 * @property {number} [expireAt] unix seconds
 * @property {unknown} [info] a JSON value for presence, joins and publications
 * @property {unknown} [data] a JSON value for the client
 * @property {Position} [recoverSince] send what was published since
 * @property {Switches} [override]
 *
 * @typedef {object} DisconnectOptions
 * @property {string} [client] @property {string} [session]
 * @property {number} [code] 3000 to 4999; SDKs reconnect unless it is 3500-3999 or 4500-4999. Default 3503
 * @property {string} [reason] at most 123 bytes
 * @property {string[]} [whitelist] ids of clients that stay
 *
 * @typedef {object} RefreshOptions
 * @property {string} [client] @property {string} [session]
 * @property {boolean} [expired] disconnect with 3005
 * @property {number} [expireAt] unix seconds; absent: never
 * @property {unknown} [info] a JSON value
 *
 * @typedef {object} HistoryOptions
 * @property {number} [limit] publications; 0: position only (the default), -1: all
 * @property {Position} [since] exclusive; absent: from the oldest (or, with `reverse`, the newest)
 * @property {boolean} [reverse] newest first
 *
 * @typedef {{user: string, client: string, connInfo?: any, chanInfo?: any}} ClientInfo
 *
 * @typedef {object} HistoryPublication
 * @property {any} [data] JSON value, or a Buffer of a payload that is none
 * @property {number} [offset]
 * @property {ClientInfo} [info] of the client that has published it
 * @property {Record<string, string>} [tags]
 *
 * @typedef {object} NodeFigures
 * @property {string} uid @property {string} name @property {string} version
 * @property {number} uptime s
 * @property {number} numClients @property {number} numUsers
 * @property {number} numChannels @property {number} numSubs
 * @property {{interval: number, items: Record<string, number>}} [metrics] counters of the last `interval` seconds
 *
 * @typedef {'publish' | 'broadcast' | 'subscribe' | 'unsubscribe' | 'disconnect' | 'refresh' | 'presence' |
 *   'presenceStats' | 'history' | 'historyRemove' | 'info' | 'channels'} ApiMethod
 * @typedef {{[M in ApiMethod]: [method: M, ...args: Parameters<ServerApi[M]>]}[ApiMethod]} Command a call of a batch:
 *   `['publish', 'news', { text: 'hello' }]`
 * @typedef {{result: any, error?: undefined} | {result?: undefined, error: ApiError}} Outcome of one call of several
 *
 * @typedef {(method: string, text: string, repeatable: boolean) => Promise<any>} Send makes a call and returns its
 *   parsed answer: an object with `result`, `error` or `replies`. `method`: name on the wire; `text`: JSON object of
 *   its fields; `repeatable`: a second call of the same has no further effect. It rejects with an ApiError.
 */

/** @template T @param {() => T} read @returns {T} @throws {ApiError} if the answer has another shape */
function understood(read) {
  try {
    return read()
  } catch (cause) {
    throw new ApiError('not the answer of a server API: it has another shape', { cause })
  }
}

/** The methods of the server API. All of them reject with an ApiError. */
export class ServerApi {
  #send
  #keys

  /**
   * @param {Send} send
   * @param {{keys?: boolean}} [options] `keys`: publications without an idempotency key get one, so that a call can be
   *   repeated
   */
  constructor(send, { keys = false } = {}) {
    this.#send = send
    this.#keys = keys
  }

  /** @param {ApiMethod} method @param {any[]} args @returns {Promise<any>} */
  async #call(method, args) {
    const { name, text, repeatable } = writeCall(method, args, this.#keys)
    const { result, error } = await this.#send(name, text, repeatable)
    if (error) throw new ApiError(String(error.message), error)
    return understood(() => results[method](result ?? {}))
  }

  /**
   * Publishes to a channel.
   * @param {string} channel
   * @param {unknown} data any JSON value; a Buffer, Uint8Array or ArrayBuffer is sent as its bytes
   * @param {PublishOptions} [options] @returns {Promise<Position>} when the broker has accepted it
   */
  publish(channel, data, options) {
    return this.#call('publish', [channel, data, options])
  }

  /**
   * Publishes the same data to several channels.
   * @param {string[]} channels @param {unknown} data as for `publish` @param {PublishOptions} [options]
   * @returns {Promise<{responses: ({result: Position, error?: undefined} | {result?: undefined, error: ApiError})[]}>}
   *   one response for each channel, in their order
   */
  broadcast(channels, data, options) {
    return this.#call('broadcast', [channels, data, options])
  }

  /**
   * Subscribes the connections of a user to a channel, on the server's side. No connection is no error.
   * @param {string} user '' = anonymous ones @param {string} channel @param {SubscribeOptions} [options]
   * @returns {Promise<void>}
   */
  subscribe(user, channel, options) {
    return this.#call('subscribe', [user, channel, options])
  }

  /**
   * Ends subscriptions of a user.
   * @param {string} user @param {string} channel @param {Target} [options] @returns {Promise<void>}
   */
  unsubscribe(user, channel, options) {
    return this.#call('unsubscribe', [user, channel, options])
  }

  /**
   * Disconnects a user.
   * @param {string} user '' = anonymous ones @param {DisconnectOptions} [options] @returns {Promise<void>}
   */
  disconnect(user, options) {
    return this.#call('disconnect', [user, options])
  }

  /**
   * Sets when the connections of a user expire.
   * @param {string} user @param {RefreshOptions} [options] @returns {Promise<void>}
   */
  refresh(user, options) {
    return this.#call('refresh', [user, options])
  }

  /**
   * Clients present in a channel, by their ids.
   * @param {string} channel @returns {Promise<{presence: Record<string, ClientInfo>}>}
   */
  presence(channel) {
    return this.#call('presence', [channel])
  }

  /** @param {string} channel @returns {Promise<{numClients: number, numUsers: number}>} */
  presenceStats(channel) {
    return this.#call('presenceStats', [channel])
  }

  /**
   * Publications that a channel keeps, and its position.
   * @param {string} channel @param {HistoryOptions} [options]
   * @returns {Promise<{publications: HistoryPublication[], offset: number, epoch: string}>}
   */
  history(channel, options) {
    return this.#call('history', [channel, options])
  }

  /**
   * Removes the publications that a channel keeps; its position stays.
   * @param {string} channel @returns {Promise<void>}
   */
  historyRemove(channel) {
    return this.#call('historyRemove', [channel])
  }

  /** Figures of all nodes, at most 3 s old. @returns {Promise<{nodes: NodeFigures[]}>} */
  info() {
    return this.#call('info', [])
  }

  /**
   * Channels with subscribers.
   * @param {{pattern?: string}} [options] a glob of names
   * @returns {Promise<{channels: Record<string, {numClients: number}>}>}
   */
  channels(options) {
    return this.#call('channels', [options])
  }

  /**
   * Makes several calls at once. A refused call does not end the others.
   * @param {Command[]} commands `['publish', 'news', { text: 'hello' }]`
   * @param {{parallel?: boolean}} [options] `parallel`: not one after another
   * @returns {Promise<Outcome[]>} in the order of the commands: the result that the method returns, or its error
   */
  async batch(commands, options) {
    const { text, methods, repeatable } = writeBatch(commands, options, this.#keys)
    if (methods.length === 0) return []
    const { replies, error } = await this.#send('batch', text, repeatable)
    if (error) throw new ApiError(String(error.message), error)
    if (!Array.isArray(replies) || replies.length !== methods.length)
      throw new ApiError('not the answer of a server API: the replies to a batch are missing')
    return understood(() =>
      methods.map(({ method, name }, i) => {
        const reply = replies[i]
        return reply.error
          ? { error: new ApiError(String(reply.error.message), { code: reply.error.code }) }
          : { result: results[method](reply[name] ?? {}) }
      }),
    )
  }
}
