// The messages of the proxy protocol: JSON member names and their numbers in proto/.

import { CallFailed } from '../../clients/hooks/contract.js'

/** @import { HookEvent } from '../../clients/hooks/events.js' */
/** @import { Labels } from '../../clients/hooks/labels.js' */

/** @typedef {{binary: boolean, meta: boolean}} RequestOptions `binary_encoding`, `include_connection_meta` */

const HEAD = { client: 1, transport: 2, protocol: 3, encoding: 4 }

/** Requests by event, with fields in JSON order. @type {Readonly<Record<string, Record<string, number>>>} */
export const REQUESTS = Object.freeze({
  connect: { ...HEAD, data: 10, b64data: 11, name: 12, version: 13, channels: 14 },
  refresh: { ...HEAD, user: 10, meta: 11, labels: 12 },
  subscribe: { ...HEAD, user: 10, channel: 11, meta: 13, data: 14, b64data: 15, labels: 16 },
  publish: { ...HEAD, user: 10, channel: 11, data: 12, b64data: 13, meta: 14, labels: 15 },
  map_publish: { ...HEAD, user: 10, channel: 11, key: 12, data: 13, b64data: 14, meta: 15, labels: 16 },
  map_remove: { ...HEAD, user: 10, channel: 11, key: 12, meta: 13, labels: 14 },
  shared_poll_refresh: { channel: 1, items: 2 },
  cache_empty: { channel: 1 },
  state: { events: 1 },
  rpc: { ...HEAD, user: 10, method: 11, data: 12, b64data: 13, meta: 14, labels: 15 },
  sub_refresh: { ...HEAD, user: 10, channel: 11, meta: 12, labels: 13 },
  disconnected: { ...HEAD, user: 10, code: 11, reason: 12, channels: 13, duration: 14, meta: 15, labels: 16 },
  unsubscribed: { ...HEAD, user: 10, channel: 11, code: 12, reason: 13, meta: 14, labels: 15 },
})

/** @param {Labels} labels @returns {Labels | undefined} undefined: none */
function givenLabels(labels) {
  for (const _ in labels) return labels
}

/** @type {(text: string) => string | undefined} */
const filled = text => (text === '' ? undefined : text)

/**
 * Fields not copied directly from the event.
 * @type {Readonly<Record<string, (event: any, options: RequestOptions) => string | Labels | undefined>>}
 */
const VALUES = Object.freeze({
  encoding: (_event, { binary }) => (binary ? 'binary' : 'json'),
  data({ payload: { data, json } }, { binary }) {
    if (data.length === 0 || binary) return undefined
    if (!json) throw new CallFailed('the client data is not JSON and binary_encoding is off', 'data')
    return data.toString()
  },
  b64data: ({ payload: { data } }, { binary }) =>
    binary && data.length > 0 ? Buffer.from(data).toString('base64') : undefined,
  meta: (event, { meta }) => (meta ? filled(event.metaText) : undefined),
  name: event => filled(event.name),
  version: event => filled(event.version),
  method: event => filled(event.method),
  key: event => filled(event.key),
  labels: event => givenLabels(event.labels),
})

/**
 * @param {string} name of the event @param {HookEvent} event @param {RequestOptions} options
 * @returns {Record<string, any>} request fields in order; undefined: omitted
 * @throws {CallFailed} kind `data`: the backend expects JSON and the client's data is not
 */
export function requestOf(name, event, options) {
  /** @type {Record<string, any>} */
  const fields = {}
  for (const field in REQUESTS[name]) {
    const value = VALUES[field]
    fields[field] = value === undefined ? /** @type {any} */ (event)[field] : value(event, options)
  }
  if (name === 'connect' && fields.channels.length === 0) fields.channels = undefined
  return fields
}

/**
 * @typedef {'text' | 'texts' | 'bool' | 'uint32' | 'int64' | 'uint64' | 'json' | 'message' | 'messages' | 'map' |
 *   'filter'} Kind `json`: JSON text, bytes in Protobuf; `map`: from texts to messages, or to texts if `inner` is
 *   empty; `filter`: unchecked, of nested messages
 * @typedef {{name: string, number: number, kind: Kind, inner: Field[]}} Field number 0: not in Protobuf
 */

const SWITCHES = 'presence join_leave force_recovery force_positioning force_push_join_leave'

/** Kinds of response fields; default: text. */
const KINDS = Object.entries({
  bool: 'expired skip_history delta exclude_sender cache_recover temporary value removed populated',
  uint32: 'code',
  int64: 'expire_at score',
  uint64: 'version',
  json: 'data info meta stream_data prev_data',
  texts: 'channels allow',
  message: `result error disconnect override ${SWITCHES}`,
  messages: 'caps items',
  map: 'subs labels tags',
  filter: 'server_tags_filter',
}).flatMap(([kind, names]) => names.split(' ').map(name => [name, kind]))
/** @type {Map<string, Kind>} */
const KIND_OF = new Map(/** @type {[string, Kind][]} */ (KINDS))

/** Fields of inner messages, by name of the outer field. @type {Readonly<Record<string, string>>} */
const INNER = Object.freeze({
  subs: 'expire_at info b64info data b64data override server_tags_filter cache_recover',
  override: SWITCHES,
  caps: 'channels allow match',
  items: 'key data version removed prev_data',
  error: 'code message temporary',
  disconnect: 'code reason',
  ...Object.fromEntries(SWITCHES.split(' ').map(name => [name, 'value'])),
})

/** @param {string} name @param {number} number @param {Field[]} [inner] @returns {Field} */
const field = (name, number, inner = Object.hasOwn(INNER, name) ? message(INNER[name]) : []) => ({
  name,
  number,
  kind: KIND_OF.get(name) ?? 'text',
  inner,
})

/** @param {string} names of fields 1, 2 ... @returns {Field[]} */
const message = names => names.split(' ').map((name, i) => field(name, i + 1))

const RESULTS = Object.freeze({
  connect: message('user expire_at info b64info data b64data channels subs meta caps labels'),
  refresh: message('expired expire_at info b64info meta caps'),
  subscribe: message('expire_at info b64info data b64data override allow server_tags_filter'),
  sub_refresh: message('expired expire_at info b64info server_tags_filter'),
  publish: [
    ...message('data b64data skip_history tags idempotency_key delta version version_epoch'),
    // Beyond the fields of Centrifugo.
    field('exclude_sender', 100),
  ],
  // `score` is for ordered maps, which do not exist yet.
  map_publish: message(
    'key data b64data tags score key_mode stream_data b64stream_data idempotency_key delta version version_epoch',
  ),
  map_remove: message('key tags idempotency_key'),
  shared_poll_refresh: message('items epoch'),
  rpc: message('data b64data'),
})

/** Notice responses are empty messages in Protobuf. */
const NOTICE = [field('result', 0), field('error', 0), field('disconnect', 0)]

/** Responses by event. @type {Readonly<Record<string, Field[]>>} */
export const ANSWERS = Object.freeze({
  ...Object.fromEntries(
    Object.entries(RESULTS).map(([event, result]) => [
      event,
      [field('result', 1, result), field('error', 2), field('disconnect', 3)],
    ]),
  ),
  cache_empty: [field('result', 1, message('populated')), field('error', 0), field('disconnect', 0)],
  state: [field('result', 1), field('error', 2)],
  disconnected: NOTICE,
  unsubscribed: NOTICE,
})
