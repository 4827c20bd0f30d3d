// Server API calls as JSON: converts names and values of ServerApi to the wire format and back.

import { randomUUID } from 'node:crypto'
import { didYouMean } from '../../config/nearest.js'
import { ApiError, badRequest } from './api-error.js'

/** @import { ApiMethod, Send } from './server-api.js' */

/** Maximum request body size in bytes: enough for the largest broadcast. */
export const MAX_BODY = 16 * 1024 * 1024
/** Maximum memory of calls in progress in bytes. Further calls fail with error 111. */
const MAX_PENDING_BYTES = 64 * 1024 * 1024
const CALL_BYTES = 512
/** Default time for the answers of clients, ms. */
export const ACK_TIMEOUT = 5000

/** Bounds the memory of calls in progress. @param {Send} send @returns {Send} */
export function limitCalls(send) {
  let pending = 0
  return async (name, text, repeatable, wait) => {
    const bytes = CALL_BYTES + Buffer.byteLength(text)
    if (pending + bytes > MAX_PENDING_BYTES)
      throw new ApiError(`too many requests: calls of ${pending} bytes are in progress`, { code: 111 })
    pending += bytes
    try {
      return await send(name, text, repeatable, wait)
    } finally {
      pending -= bytes
    }
  }
}

/** @typedef {Record<string, string | undefined>} Members JSON texts by wire name; undefined: absent */
/** @typedef {Record<string, string>} Names option -> wire name */

const MAX_NAME = 64

/** @param {unknown} value @returns {string | undefined} its JSON text @throws {ApiError} 107 */
function write(value) {
  try {
    return JSON.stringify(value)
  } catch (error) {
    const [reason] = String(error?.message ?? error).split('\n', 1)
    throw badRequest(`a value cannot be serialized as JSON: ${reason}`, error)
  }
}

/** @param {Members} members */
function objectText(members) {
  let text = ''
  for (const name in members) {
    if (members[name] !== undefined) text += `${text === '' ? '' : ','}"${name}":${members[name]}`
  }
  return `{${text}}`
}

/** @param {unknown} data @returns {Members} @throws {ApiError} 107 */
function payload(data) {
  if (data instanceof ArrayBuffer) return { b64data: write(Buffer.from(data).toString('base64')) }
  if (ArrayBuffer.isView(data)) {
    const { buffer, byteOffset, byteLength } = data
    return { b64data: write(Buffer.from(buffer, byteOffset, byteLength).toString('base64')) }
  }
  const text = write(data)
  if (text === undefined) throw badRequest(`data must be a JSON value or bytes, not ${typeof data}`)
  return { data: text }
}

/**
 * @param {string} where for errors @param {any} options of a caller @param {Names} names
 * @returns {Record<string, any>} the given options by wire name
 * @throws {ApiError} 107
 */
function rename(where, options, names) {
  /** @type {Record<string, any>} */
  const renamed = {}
  if (options === undefined || options === null) return renamed
  if (typeof options !== 'object' || Array.isArray(options)) throw badRequest(`${where} must be an object`)
  for (const name of Object.keys(options)) {
    if (options[name] === undefined) continue
    if (!Object.hasOwn(names, name)) {
      const near = didYouMean(name, Object.keys(names))
      throw badRequest(`${where}: unknown option ${JSON.stringify(name.slice(0, MAX_NAME))}${near}`)
    }
    renamed[names[name]] = options[name]
  }
  return renamed
}

/** @param {Record<string, any>} values @returns {Members} @throws {ApiError} 107 */
const members = values =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, write(value)]))

/** @param {string} name on the wire */
const toCamelCase = name => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase())

/** @param {string} names on the wire @returns {Names} */
const camelCase = names => Object.fromEntries(names.split(' ').map(name => [toCamelCase(name), name]))

const TARGET = camelCase('client session label_filter all_users')
const PUBLISH = camelCase(
  'skip_history tags idempotency_key delta version version_epoch exclude_client exclude_user users',
)
const SUBSCRIBE = { ...TARGET, ...camelCase('expire_at info data recover_since override server_tags_filter') }
const SWITCHES = camelCase('presence join_leave force_push_join_leave force_positioning force_recovery')
const DISCONNECT = { ...TARGET, ...camelCase('code reason whitelist') }
const REFRESH = { ...TARGET, ...camelCase('expired expire_at info') }
const HISTORY = camelCase('limit since reverse')
const CHANNELS = camelCase('pattern')
const CONNECTIONS = camelCase('user label_filter where limit')
const BATCH = camelCase('parallel')
const MAP_PUBLISH = camelCase(
  'tags idempotency_key delta version version_epoch key_mode stream_data expected_offset expected_epoch append',
)
const MAP_REMOVE = camelCase('idempotency_key')
const MAP_STATE = camelCase('cursor limit key revision_offset revision_epoch')
const POLL_PUBLISH = camelCase('version epoch')
const USER_STATUS = camelCase('state')
const ACK = camelCase('count timeout_ms')
const REQUEST_TARGET = camelCase('client user session channel')
const MAP_STREAM = camelCase('since_offset since_epoch limit reverse')
const EXPIRING = camelCase('expire_at')
const INVALIDATE = camelCase('expire_at issued_before channel')

/** @param {Members} where the channel or channels @param {any} data @param {any} options @param {boolean} keys */
function writePublish(where, data, options, keys) {
  const given = rename('the publish options', options, PUBLISH)
  return { ...where, ...payload(data), ...writeOptions(given, keys) }
}

/** @param {Record<string, any>} options by wire name @param {boolean} keys @returns {Members} */
function writeOptions({ version, ...given }, keys) {
  if (version !== undefined && typeof version !== 'bigint' && !Number.isSafeInteger(version))
    throw badRequest('version must be an integer from 0 to 2^64 - 1 (above 2^53 - 1: a BigInt)')
  if (keys && (given.idempotency_key ?? '') === '') given.idempotency_key = randomUUID()
  const digits = version === undefined ? undefined : String(version)
  return { ...members(given), version: digits }
}

/** @param {any[]} args of mapPublish @param {boolean} keys @returns {Members} */
function writeMapPublish([channel, key, data, options], keys) {
  const { stream_data: change, ...given } = rename('the map publish options', options, MAP_PUBLISH)
  const stream = Object.entries(change === undefined ? {} : payload(change))
  return {
    ...members({ channel, key }),
    ...payload(data),
    ...Object.fromEntries(stream.map(([name, text]) => [name.replace('data', 'stream_data'), text])),
    ...writeOptions(given, keys),
  }
}

/** @param {any} options of a request @returns {number} ms */
const waitOf = options => (Number(options?.timeoutMs) > 0 ? Number(options.timeoutMs) : ACK_TIMEOUT)

/** @param {any} channel */
const onlyChannel = channel => ({ channel: write(channel) })

/**
 * For each method: its wire name, its fields, whether it is read-only, whether repeating it has no further effect, and
 * how long it waits for clients, ms.
 * @type {Record<ApiMethod, {name: string, reads?: true, repeats?: true, fields: (args: any[], keys: boolean) => Members,
 *   wait?: (args: any[]) => number}>}
 */
const CALLS = {
  publish: {
    name: 'publish',
    fields([channel, data, options], keys) {
      const { ack, ...rest } = options ?? {}
      if (ack === undefined) return writePublish(onlyChannel(channel), data, options, keys)
      // Nobody would answer a repeated publication.
      const members = writePublish(onlyChannel(channel), data, rest, false)
      return { ...members, ack: write(rename('ack', ack, ACK)) }
    },
    wait: ([, , options]) => (options?.ack === undefined ? 0 : waitOf(options.ack)),
  },
  broadcast: {
    name: 'broadcast',
    fields: ([channels, data, options], keys) =>
      writePublish({ channels: write(channels) }, data, options, keys),
  },
  subscribe: {
    name: 'subscribe',
    fields([user, channel, options]) {
      const { override, ...given } = rename('the subscribe options', options, SUBSCRIBE)
      const switches = Object.entries(rename('override', override, SWITCHES))
      return {
        ...members({ user, channel, ...given }),
        override: write(Object.fromEntries(switches.map(([name, value]) => [name, { value }]))),
      }
    },
  },
  unsubscribe: {
    name: 'unsubscribe',
    fields: ([user, channel, options]) =>
      members({ user, channel, ...rename('the unsubscribe options', options, TARGET) }),
  },
  disconnect: {
    name: 'disconnect',
    fields([user, options]) {
      const { code, reason, ...given } = rename('the disconnect options', options, DISCONNECT)
      if (code === undefined && reason !== undefined)
        throw badRequest('disconnect: a reason requires a code from 3000 to 4999')
      return members({ user, ...given, ...(code === undefined ? null : { disconnect: { code, reason } }) })
    },
  },
  refresh: {
    name: 'refresh',
    fields: ([user, options]) => members({ user, ...rename('the refresh options', options, REFRESH) }),
  },
  presence: { name: 'presence', reads: true, fields: ([channel]) => onlyChannel(channel) },
  presenceStats: { name: 'presence_stats', reads: true, fields: ([channel]) => onlyChannel(channel) },
  history: {
    name: 'history',
    reads: true,
    fields: ([channel, options]) => members({ channel, ...rename('the history options', options, HISTORY) }),
  },
  historyRemove: { name: 'history_remove', fields: ([channel]) => onlyChannel(channel) },
  mapPublish: { name: 'map_publish', fields: writeMapPublish },
  mapRemove: {
    name: 'map_remove',
    fields: ([channel, key, options], keys) => ({
      ...members({ channel, key }),
      ...writeOptions(rename('the map remove options', options, MAP_REMOVE), keys),
    }),
  },
  mapReadState: {
    name: 'map_read_state',
    reads: true,
    fields: ([channel, options]) =>
      members({ channel, ...rename('the map state options', options, MAP_STATE) }),
  },
  mapReadStream: {
    name: 'map_read_stream',
    reads: true,
    fields: ([channel, options]) =>
      members({ channel, ...rename('the map stream options', options, MAP_STREAM) }),
  },
  mapStats: { name: 'map_stats', reads: true, fields: ([channel]) => onlyChannel(channel) },
  mapClear: { name: 'map_clear', fields: ([channel]) => onlyChannel(channel) },
  sharedPollPublish: {
    name: 'shared_poll_publish',
    fields: ([channel, key, data, options]) => ({
      ...members({ channel, key }),
      ...payload(data),
      ...writeOptions(rename('the shared poll options', options, POLL_PUBLISH), false),
    }),
  },
  updateUserStatus: {
    name: 'update_user_status',
    fields: ([users, options]) =>
      members({ users, ...rename('the user status options', options, USER_STATUS) }),
  },
  getUserStatus: { name: 'get_user_status', reads: true, fields: ([users]) => members({ users }) },
  deleteUserStatus: { name: 'delete_user_status', fields: ([users]) => members({ users }) },
  request: {
    name: 'request',
    fields([target, method, data, options]) {
      const given = rename('the target', target, REQUEST_TARGET)
      return {
        ...members({ ...given, method, ...rename('the request options', options, ACK) }),
        ...(data === undefined ? null : payload(data)),
      }
    },
    wait: ([, , , options]) => waitOf(options),
  },
  blockUser: {
    name: 'block_user',
    repeats: true,
    fields: ([user, options]) => members({ user, ...rename('the block options', options, EXPIRING) }),
  },
  unblockUser: { name: 'unblock_user', repeats: true, fields: ([user]) => members({ user }) },
  revokeToken: {
    name: 'revoke_token',
    repeats: true,
    fields: ([uid, options]) => members({ uid, ...rename('the revoke options', options, EXPIRING) }),
  },
  invalidateUserTokens: {
    name: 'invalidate_user_tokens',
    repeats: true,
    fields: ([user, options]) => members({ user, ...rename('the invalidate options', options, INVALIDATE) }),
  },
  info: { name: 'info', reads: true, fields: () => ({}) },
  channels: {
    name: 'channels',
    reads: true,
    fields: ([options]) => members(rename('the channels options', options, CHANNELS)),
  },
  connections: {
    name: 'connections',
    reads: true,
    fields: ([options]) => members(rename('the connections options', options, CONNECTIONS)),
  },
}

/** An empty idempotency key is none. */
const NO_KEY = '""'

/** Methods on connections: user undefined would select all anonymous ones. */
const OF_USER = [
  'subscribe',
  'unsubscribe',
  'disconnect',
  'refresh',
  'blockUser',
  'unblockUser',
  'invalidateUserTokens',
]

/**
 * @param {ApiMethod} method @param {any[]} args of the method @param {boolean} keys see ServerApi
 * @throws {ApiError} 107
 */
export function writeCall(method, args, keys) {
  if (OF_USER.includes(method) && typeof args[0] !== 'string')
    throw badRequest(`user must be a string, not ${typeof args[0]}`)
  const { name, reads = false, repeats = reads, fields, wait = () => 0 } = CALLS[method]
  const given = fields(args, keys)
  const { idempotency_key: key = NO_KEY } = given
  return { name, text: objectText(given), repeatable: repeats || key !== NO_KEY, wait: wait(args) }
}

/**
 * @param {any} commands @param {any} options @param {boolean} keys see ServerApi
 * @returns {{text: string, methods: {method: ApiMethod, name: string}[], repeatable: boolean, wait: number}}
 * @throws {ApiError} 107
 */
export function writeBatch(commands, options, keys) {
  if (!Array.isArray(commands)) throw badRequest('the batch commands must be an array')
  const texts = []
  const methods = []
  let all = true
  let waits = 0
  for (const [i, command] of commands.entries()) {
    const [method, ...args] = Array.isArray(command) ? command : []
    if (!Object.hasOwn(CALLS, String(method)))
      throw badRequest(
        `batch command ${i} must be an array of a method and its arguments: ` +
          `['publish', 'news', { text: 'hello' }]${didYouMean(String(method), Object.keys(CALLS))}`,
      )
    const { name, text, repeatable, wait } = writeCall(method, args, keys)
    waits += wait
    texts.push(`{"${name}":${text}}`)
    methods.push({ method, name })
    all &&= repeatable
  }
  const given = members(rename('the batch options', options, BATCH))
  return {
    text: objectText({ ...given, commands: `[${texts.join(',')}]` }),
    methods,
    repeatable: all,
    wait: waits,
  }
}

/** @param {any} given @returns {{offset: number, epoch: string}} */
const position = ({ offset = 0, epoch = '' }) => ({ offset, epoch })

/** @param {any} info of the wire */
const clientInfo = ({ user, client, conn_info, chan_info }) => ({
  user: user ?? '',
  client: client ?? '',
  ...(conn_info === undefined ? null : { connInfo: conn_info }),
  ...(chan_info === undefined ? null : { chanInfo: chan_info }),
})

/** @param {any} publication of the wire */
function publication({ b64data, info, exclude_user: excludeUser, ...given }) {
  if (b64data !== undefined) given.data = Buffer.from(b64data, 'base64')
  if (info) given.info = clientInfo(info)
  if (excludeUser !== undefined) given.excludeUser = excludeUser
  return given
}

/**
 * @template T @param {Record<string, any> | undefined} object @param {(value: any) => T} read
 * @returns {Record<string, T>}
 */
const mapValues = (object, read) =>
  // fromEntries: a channel may be called `__proto__`.
  Object.fromEntries(Object.entries(object ?? {}).map(([name, value]) => [name, read(value)]))

/** @param {any} entry of the wire */
function mapEntry({ b64data, ...given }) {
  if (b64data !== undefined) given.data = Buffer.from(b64data, 'base64')
  return given
}

/** @param {any} result of the wire */
const mapResult = ({ suppressed = false, suppress_reason = '', current, ...given }) => ({
  ...position(given),
  suppressed,
  suppressReason: suppress_reason,
  ...(current === undefined ? null : { current: mapEntry(current) }),
})

/** @param {any} answer of the wire */
function clientAnswer({ b64data, ...given }) {
  if (b64data !== undefined) given.data = Buffer.from(b64data, 'base64')
  return given
}

/** @param {any} result of the wire */
const acks = ({ answers, ...given }) => ({ ...given, answers: mapValues(answers, clientAnswer) })

/** @param {any} token of the wire @returns {{uid?: string, issuedAt?: number}} */
const tokenInfo = ({ uid, issued_at }) => ({
  ...(uid === undefined ? null : { uid }),
  ...(issued_at === undefined ? null : { issuedAt: issued_at }),
})

/** @param {any} connection of the wire */
function connectionInfo({ state, ...given }) {
  const { channels, connection_token: token, subscription_tokens: tokens, meta } = state ?? {}
  return {
    user: given.user ?? '',
    transport: given.transport ?? '',
    protocol: given.protocol ?? '',
    appName: given.app_name ?? '',
    appVersion: given.app_version ?? '',
    connectedAtMs: given.connected_at_ms ?? 0,
    pingPongLatencyMs: given.ping_pong_latency_ms ?? -1,
    labels: given.labels ?? {},
    channels: mapValues(channels, ({ source = 0 }) => ({ source })),
    ...(token === undefined ? null : { connectionToken: tokenInfo(token) }),
    subscriptionTokens: mapValues(tokens, tokenInfo),
    ...(meta === undefined ? null : { meta }),
  }
}

const nothing = () => undefined

/** Converts wire results to method results. @type {Record<ApiMethod, (result: any) => any>} */
export const results = {
  publish: result => ({ ...position(result), ...(result.acks && { acks: acks(result.acks) }) }),
  broadcast: ({ responses = [] }) => ({
    responses: responses.map((/** @type {any} */ { result, error }) =>
      error
        ? { error: new ApiError(String(error.message), { code: error.code }) }
        : { result: position(result ?? {}) },
    ),
  }),
  subscribe: nothing,
  unsubscribe: nothing,
  disconnect: nothing,
  refresh: nothing,
  presence: ({ presence }) => ({ presence: mapValues(presence, clientInfo) }),
  presenceStats: ({ num_clients = 0, num_users = 0 }) => ({ numClients: num_clients, numUsers: num_users }),
  history: ({ publications, ...given }) => ({
    publications: (publications ?? []).map(publication),
    ...position(given),
  }),
  historyRemove: nothing,
  mapPublish: mapResult,
  mapRemove: mapResult,
  mapReadState: ({ entries = [], cursor = '', ...given }) => ({
    entries: entries.map(mapEntry),
    ...position(given),
    cursor,
  }),
  mapReadStream: ({ entries = [], ...given }) => ({ entries: entries.map(mapEntry), ...position(given) }),
  mapStats: ({ num_keys = 0 }) => ({ numKeys: num_keys }),
  mapClear: nothing,
  sharedPollPublish: nothing,
  updateUserStatus: nothing,
  getUserStatus: ({ statuses = [] }) => ({ statuses }),
  deleteUserStatus: nothing,
  request: acks,
  blockUser: nothing,
  unblockUser: nothing,
  revokeToken: nothing,
  invalidateUserTokens: nothing,
  info: ({ nodes = [] }) => ({
    nodes: nodes.map((/** @type {any} */ node) =>
      Object.fromEntries(Object.entries(node).map(([name, value]) => [toCamelCase(name), value])),
    ),
  }),
  channels: ({ channels }) => ({
    channels: mapValues(channels, ({ num_clients = 0 }) => ({ numClients: num_clients })),
  }),
  connections: ({ connections, total = 0, truncated = false }) => ({
    connections: mapValues(connections, connectionInfo),
    total,
    truncated,
  }),
}
