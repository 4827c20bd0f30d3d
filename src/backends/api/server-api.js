// The server API as methods, for embedding programs (createGateway), hooks modules and the HTTP client
// (halley-gateway/api), which differ in `send`. Names are camelCase here and snake_case on the wire (wire.js).

import { ApiError } from './api-error.js'
import { results, writeBatch, writeCall } from './wire.js'

/** @import { FilterNode } from '../../clients/protocol/filter.js' */

/**
 * @typedef {{offset: number, epoch: string}} Position of a publication in the history of its channel; offset 0: none
 *
 * @typedef {object} PublishOptions
 * @property {boolean} [skipHistory] deliver without storing
 * @property {Record<string, string>} [tags] passed to subscribers and to their filters
 * @property {string} [idempotencyKey] further publications with the same key have no effect
 * @property {boolean} [delta] send deltas to subscribers that negotiated them
 * @property {number | bigint} [version] ignored unless above the previous version
 * @property {string} [versionEpoch] of the versions; a new epoch resets them
 * @property {string} [excludeClient] not for this connection: a client id
 * @property {string} [excludeUser] not for the connections of this user
 * @property {string[]} [users] only for subscribers with these users, 1 to 100; never stored
 *
 * @typedef {object} AckOptions
 * @property {number} [count] return after this many answers; 0: after all (the default)
 * @property {number} [timeoutMs] return after this time with the answers so far; default 5000, at most 60000
 *
 * @typedef {{client: string} | {user: string} | {session: string} | {channel: string}} RequestTarget one client, all
 *   connections of a user, or all subscribers of a channel, which get a publication
 *
 * @typedef {object} ClientAnswer
 * @property {string} user @property {any} [data] JSON value, or a Buffer
 * @property {{code: number, message: string}} [error] in place of `data`
 *
 * @typedef {object} Acks answers of clients
 * @property {number} sent clients that should answer
 * @property {number} answered @property {number} gone disconnected without an answer
 * @property {boolean} complete false: ended by the timeout
 * @property {boolean} truncated some answers are counted, but not in `answers`, because of their size
 * @property {Record<string, ClientAnswer>} answers by client id
 *
 * @typedef {object} Target selects connections of the user; default: all
 * @property {string} [client] @property {string} [session]
 * @property {FilterNode} [labelFilter] only connections whose labels match
 * @property {boolean} [allUsers] with user '': all users, not only the anonymous one
 *
 * @typedef {object} Switches channel options that a subscription overrides
 * @property {boolean} [presence]
 * @property {boolean} [joinLeave]
 * @property {boolean} [forcePushJoinLeave]
 * @property {boolean} [forcePositioning]
 * @property {boolean} [forceRecovery]
 *
 * @typedef {Target & SubscribeTerms} SubscribeOptions
 * @typedef {object} SubscribeTerms
 * @property {number} [expireAt] unix seconds
 * @property {unknown} [info] a JSON value for presence, joins and publications
 * @property {unknown} [data] a JSON value for the client
 * @property {Position} [recoverSince] send publications since then
 * @property {Switches} [override]
 * @property {FilterNode} [serverTagsFilter] of publications; absent: that of an existing subscription stays
 *
 * @typedef {Target & DisconnectTerms} DisconnectOptions
 * @typedef {object} DisconnectTerms
 * @property {number} [code] 3000 to 4999; SDKs reconnect unless it is 3500-3999 or 4500-4999. Default 3503
 * @property {string} [reason] at most 123 bytes
 * @property {string[]} [whitelist] ids of clients to keep
 *
 * @typedef {Target & RefreshTerms} RefreshOptions
 * @typedef {object} RefreshTerms
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
 * @property {any} [data] JSON value, or a Buffer for other payloads
 * @property {number} [offset]
 * @property {ClientInfo} [info] of the publishing client
 * @property {Record<string, string>} [tags]
 * @property {string} [excludeUser] user that does not receive it
 *
 * @typedef {object} NodeFigures
 * @property {string} uid @property {string} name @property {string} version
 * @property {number} uptime s
 * @property {number} numClients @property {number} numUsers
 * @property {number} numChannels @property {number} numSubs
 * @property {{interval: number, items: Record<string, number>}} [metrics] counters of the last `interval` seconds
 *
 * @typedef {object} ConnectionsOptions user, labelFilter or where is required; all of them must match
 * @property {string} [user]
 * @property {FilterNode} [labelFilter] of labels
 * @property {FilterNode} [where] of `user`, `client`, `transport`, `protocol`, `app_name`, `app_version`, `channel` (any),
 *   `meta.<path>`
 * @property {number} [limit] 1 to 10,000; default 1,000
 *
 * @typedef {{uid?: string, issuedAt?: number}} TokenInfo `jti` and `iat` of a token
 *
 * @typedef {object} ConnectionInfo
 * @property {string} user '' = anonymous
 * @property {string} transport `websocket`, `sse` ... @property {string} protocol `json` or `protobuf`
 * @property {string} appName @property {string} appVersion of the client's library or program, '' if unknown
 * @property {number} connectedAtMs unix ms
 * @property {number} pingPongLatencyMs of the last ping; -1: unknown
 * @property {Record<string, string>} labels
 * @property {Record<string, {source: number}>} channels subscriptions, and what allowed them (docs/access.md)
 * @property {TokenInfo} [connectionToken]
 * @property {Record<string, TokenInfo>} subscriptionTokens by channel
 * @property {any} [meta]
 *
 * @typedef {object} MapPublishOptions
 * @property {Record<string, string>} [tags] of the entry, for the filters of subscribers
 * @property {string} [idempotencyKey] further writes with the same key have no effect for five minutes
 * @property {boolean} [delta] send deltas to subscribers that negotiated them
 * @property {number | bigint} [version] of the key; ignored unless above the previous version
 * @property {string} [versionEpoch] of the versions; a new epoch resets them
 * @property {'if_new' | 'if_exists'} [keyMode] publish only a new, or only an existing key
 * @property {unknown} [streamData] sent to subscribers in place of `data`: a JSON value or bytes
 * @property {number} [expectedOffset] compare-and-set: offset of the entry; 0: the key must not exist
 * @property {string} [expectedEpoch] of this offset
 * @property {boolean} [append] append `data` to the value: a string to a string, or bytes to bytes
 *
 * @typedef {object} MapEntry
 * @property {string} key
 * @property {any} [data] JSON value, or a Buffer for other values
 * @property {number} [offset] @property {Record<string, string>} [tags]
 * @property {boolean} [removed] a removal, in the stream
 * @property {boolean} [append] `data` extends the value, in the stream
 * @property {number} [time] of the write, unix ms
 *
 * @typedef {object} MapResult of a write
 * @property {number} offset @property {string} epoch
 * @property {boolean} suppressed nothing was written
 * @property {string} suppressReason '', 'idempotency', 'version', 'key_exists', 'key_not_found' or 'position_mismatch'
 * @property {MapEntry} [current] with `position_mismatch`, unless there is no entry
 *
 * @typedef {object} MapStateOptions
 * @property {string} [cursor] of the previous page
 * @property {number} [limit] entries; 0: position only (the default), -1: all
 * @property {string} [key] only this entry
 * @property {number} [revisionOffset] omits entries written after this offset
 * @property {string} [revisionEpoch] fails with error 112 if the map has another epoch
 *
 * @typedef {object} MapStreamOptions
 * @property {number} [sinceOffset] exclusive @property {string} [sinceEpoch]
 * @property {number} [limit] changes; 0: position only (the default), -1: all
 * @property {boolean} [reverse] newest first
 *
 * @typedef {object} UserStatus
 * @property {string} user
 * @property {number} [active] last activity, unix s
 * @property {number} [online] last time that it was known to be connected, unix s
 * @property {string} [state]
 *
 * @typedef {'publish' | 'broadcast' | 'subscribe' | 'unsubscribe' | 'disconnect' | 'refresh' | 'presence' |
 *   'presenceStats' | 'history' | 'historyRemove' | 'info' | 'channels' | 'connections' | 'mapPublish' | 'mapRemove' |
 *   'mapReadState' | 'mapReadStream' | 'mapStats' | 'mapClear' | 'sharedPollPublish' | 'updateUserStatus' | 'getUserStatus' |
 *   'deleteUserStatus' | 'request' | 'blockUser' | 'unblockUser' | 'revokeToken' | 'invalidateUserTokens'} ApiMethod
 * @typedef {{[M in ApiMethod]: [method: M, ...args: Parameters<ServerApi[M]>]}[ApiMethod]} Command a call of a batch:
 *   `['publish', 'news', { text: 'hello' }]`
 * @typedef {{result: any, error?: undefined} | {result?: undefined, error: ApiError}} Outcome of a batched call
 *
 * @typedef {(method: string, text: string, repeatable: boolean, wait: number) => Promise<any>} Send makes a call and
 *   returns its parsed response: an object with `result`, `error` or `replies`. `method`: wire name; `text`: JSON object
 *   of its fields; `repeatable`: repeating the call has no further effect; `wait`: how long the call waits for clients,
 *   ms. Rejects with an ApiError.
 */

/** @template T @param {() => T} read @returns {T} @throws {ApiError} on an unexpected response */
function understood(read) {
  try {
    return read()
  } catch (cause) {
    throw new ApiError('not a server API response: unexpected format', { cause })
  }
}

/** The methods of the server API. All reject with an ApiError. */
export class ServerApi {
  #send
  #keys

  /**
   * @param {Send} send
   * @param {{keys?: boolean}} [options] `keys`: generate missing idempotency keys, so that publications can be retried
   */
  constructor(send, { keys = false } = {}) {
    this.#send = send
    this.#keys = keys
  }

  /** @param {ApiMethod} method @param {any[]} args @returns {Promise<any>} */
  async #call(method, args) {
    const { name, text, repeatable, wait } = writeCall(method, args, this.#keys)
    const { result, error } = await this.#send(name, text, repeatable, wait)
    if (error) throw new ApiError(String(error.message), error)
    return understood(() => results[method](result ?? {}))
  }

  /**
   * Publishes to a channel.
   * @param {string} channel
   * @param {unknown} data any JSON value; a Buffer, Uint8Array or ArrayBuffer is sent as its bytes
   * @param {PublishOptions & {ack?: AckOptions}} [options] `ack`: wait until subscribers have confirmed it
   * @returns {Promise<Position & {acks?: Acks}>} when the broker has accepted it; with `ack`, `acks`
   */
  publish(channel, data, options) {
    return this.#call('publish', [channel, data, options])
  }

  /**
   * Publishes the same data to several channels.
   * @param {string[]} channels @param {unknown} data as for `publish` @param {PublishOptions} [options]
   * @returns {Promise<{responses: ({result: Position, error?: undefined} | {result?: undefined, error: ApiError})[]}>}
   *   one response per channel, in order
   */
  broadcast(channels, data, options) {
    return this.#call('broadcast', [channels, data, options])
  }

  /**
   * Subscribes the connections of a user to a channel, server-side. No error if there are none.
   * @param {string} user '' = anonymous @param {string} channel @param {SubscribeOptions} [options]
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
   * @param {string} user '' = anonymous @param {DisconnectOptions} [options] @returns {Promise<void>}
   */
  disconnect(user, options) {
    return this.#call('disconnect', [user, options])
  }

  /**
   * Sets the expiry of a user's connections.
   * @param {string} user @param {RefreshOptions} [options] @returns {Promise<void>}
   */
  refresh(user, options) {
    return this.#call('refresh', [user, options])
  }

  /**
   * Clients present in a channel, by id.
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
   * History and position of a channel.
   * @param {string} channel @param {HistoryOptions} [options]
   * @returns {Promise<{publications: HistoryPublication[], offset: number, epoch: string}>}
   */
  history(channel, options) {
    return this.#call('history', [channel, options])
  }

  /**
   * Removes the history of a channel; keeps its position.
   * @param {string} channel @returns {Promise<void>}
   */
  historyRemove(channel) {
    return this.#call('historyRemove', [channel])
  }

  /** Metrics of all nodes, at most 3 s old. @returns {Promise<{nodes: NodeFigures[]}>} */
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
   * Connections of all nodes, by client id. `total`: matching ones; `truncated`: the result has only those with the lowest
   * client ids.
   * @param {ConnectionsOptions} options
   * @returns {Promise<{connections: Record<string, ConnectionInfo>, total: number, truncated: boolean}>}
   */
  connections(options) {
    return this.#call('connections', [options])
  }

  /**
   * Publishes a key of a map.
   * @param {string} channel @param {string} key @param {unknown} data as for `publish`
   * @param {MapPublishOptions} [options] @returns {Promise<MapResult>}
   */
  mapPublish(channel, key, data, options) {
    return this.#call('mapPublish', [channel, key, data, options])
  }

  /**
   * Removes a key of a map.
   * @param {string} channel @param {string} key @param {{idempotencyKey?: string}} [options]
   * @returns {Promise<MapResult>}
   */
  mapRemove(channel, key, options) {
    return this.#call('mapRemove', [channel, key, options])
  }

  /**
   * A page of the entries of a map, in an order that is the same for all pages.
   * @param {string} channel @param {MapStateOptions} [options]
   * @returns {Promise<{entries: MapEntry[], offset: number, epoch: string, cursor: string}>} `cursor`: '' = last page
   */
  mapReadState(channel, options) {
    return this.#call('mapReadState', [channel, options])
  }

  /**
   * The recent changes of a map.
   * @param {string} channel @param {MapStreamOptions} [options]
   * @returns {Promise<{entries: MapEntry[], offset: number, epoch: string}>}
   */
  mapReadStream(channel, options) {
    return this.#call('mapReadStream', [channel, options])
  }

  /** @param {string} channel @returns {Promise<{numKeys: number}>} */
  mapStats(channel) {
    return this.#call('mapStats', [channel])
  }

  /**
   * Removes all entries and changes of a map; its subscribers start again.
   * @param {string} channel @returns {Promise<void>}
   */
  mapClear(channel) {
    return this.#call('mapClear', [channel])
  }

  /**
   * Sends new data of a key of a shared poll at once, if its namespace has `shared_poll.publish_enabled`.
   * @param {string} channel @param {string} key @param {unknown} data as for `publish`
   * @param {{version: number | bigint, epoch?: string}} options `version`: greater than that of the former data
   * @returns {Promise<void>}
   */
  sharedPollPublish(channel, key, data, options) {
    return this.#call('sharedPollPublish', [channel, key, data, options])
  }

  /**
   * Sets the last activity of users to now. Needs `user_status.enabled`, as the two methods below.
   * @param {string[]} users at most 1,000
   * @param {{state?: string}} [options] `state`: at most 64 bytes; '': none; absent: unchanged
   * @returns {Promise<void>}
   */
  updateUserStatus(users, options) {
    return this.#call('updateUserStatus', [users, options])
  }

  /**
   * When users were last active and last connected.
   * @param {string[]} users at most 1,000
   * @returns {Promise<{statuses: UserStatus[]}>} in the order of `users`; an unknown one has only `user`
   */
  getUserStatus(users) {
    return this.#call('getUserStatus', [users])
  }

  /**
   * Removes the status of users. A connected user is online again within a minute.
   * @param {string[]} users at most 1,000 @returns {Promise<void>}
   */
  deleteUserStatus(users) {
    return this.#call('deleteUserStatus', [users])
  }

  /**
   * Asks clients, and waits for their answers (docs/access.md). Only two-way connections can answer.
   * @param {RequestTarget} target
   * @param {string} method of the handler in the client, at most 128 bytes
   * @param {unknown} [data] as for `publish`; at most 64 KB, except to a channel
   * @param {AckOptions} [options]
   * @returns {Promise<Acks>} rejects if nothing was sent, never because of missing answers
   */
  request(target, method, data, options) {
    return this.#call('request', [target, method, data, options])
  }

  /**
   * Closes the connections of a user (3507), and refuses new ones.
   * @param {string} user @param {{expireAt?: number}} [options] `expireAt`: unix seconds; absent: until `unblockUser`
   * @returns {Promise<void>} all workers of all nodes refuse the user
   */
  blockUser(user, options) {
    return this.#call('blockUser', [user, options])
  }

  /** @param {string} user @returns {Promise<void>} */
  unblockUser(user) {
    return this.#call('unblockUser', [user])
  }

  /**
   * Refuses a token, and ends the connections and subscriptions with it.
   * @param {string} uid claim `jti` of the token
   * @param {{expireAt?: number}} [options] `expireAt`: unix seconds, that of the token or later; absent: never
   * @returns {Promise<void>}
   */
  revokeToken(uid, options) {
    return this.#call('revokeToken', [uid, options])
  }

  /**
   * Refuses the older tokens of a user, and ends the connections and subscriptions with them.
   * @param {string} user
   * @param {{issuedBefore?: number, channel?: string, expireAt?: number}} [options] unix seconds. `issuedBefore`: refuses
   *   tokens with a smaller `iat`, default now; `channel`: only subscription tokens of this channel
   * @returns {Promise<void>}
   */
  invalidateUserTokens(user, options) {
    return this.#call('invalidateUserTokens', [user, options])
  }

  /** The map methods by their short names: `maps.publish(channel, key, data)`. */
  get maps() {
    return {
      /** @type {ServerApi['mapPublish']} */
      publish: (...args) => this.mapPublish(...args),
      /** @type {ServerApi['mapRemove']} */
      remove: (...args) => this.mapRemove(...args),
      /** @type {ServerApi['mapReadState']} */
      readState: (...args) => this.mapReadState(...args),
      /** @type {ServerApi['mapReadStream']} */
      readStream: (...args) => this.mapReadStream(...args),
      /** @type {ServerApi['mapStats']} */
      stats: (...args) => this.mapStats(...args),
      /** @type {ServerApi['mapClear']} */
      clear: (...args) => this.mapClear(...args),
    }
  }

  /**
   * Makes several calls in one request. A failed call does not stop others.
   * @param {Command[]} commands `['publish', 'news', { text: 'hello' }]`
   * @param {{parallel?: boolean}} [options] `parallel`: run concurrently
   * @returns {Promise<Outcome[]>} in command order: the result of the method, or its error
   */
  async batch(commands, options) {
    const { text, methods, repeatable, wait } = writeBatch(commands, options, this.#keys)
    if (methods.length === 0) return []
    const { replies, error } = await this.#send('batch', text, repeatable, wait)
    if (error) throw new ApiError(String(error.message), error)
    if (!Array.isArray(replies) || replies.length !== methods.length)
      throw new ApiError('not a server API response: the batch replies are missing')
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
