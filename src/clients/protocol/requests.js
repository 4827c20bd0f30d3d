// Client requests (client protocol), for both codecs. Omits fields not used by the gateway.

/** @import { Command } from './contract.js' */

/**
 * Protobuf types: `texts` and `subs` are maps, `messages` is a repeated message. In JSON, `bytes` is any value.
 * @typedef {'bool' | 'int32' | 'int64' | 'uint64' | 'string' | 'bytes' | 'strings' | 'texts' | 'subs' | 'message' |
 *   'messages'} Kind
 * @typedef {{name: string, kind: Kind, shape: Shape, rank: number, varint: boolean}} Field `varint`: without a length
 * @typedef {[number: number, name: string, kind: Kind, shape?: Shape]} Row
 */

export class Shape {
  /** No prototype: client keys could match its members. @type {Record<string, Field>} */
  byName = Object.create(null)
  /** @type {(Field | undefined)[]} */
  byNumber = []

  /** @param {...Row} rows */
  constructor(...rows) {
    for (const row of rows) this.add(row)
  }

  /** @param {Row} row */
  add([number, name, kind, shape = NO_FIELDS]) {
    const rank = Object.keys(this.byName).length
    const varint = ['bool', 'int32', 'int64', 'uint64'].includes(kind)
    const field = { name, kind, shape, rank, varint }
    this.byName[name] = this.byNumber[number] = field
  }
}

const NO_FIELDS = new Shape()

/** Maximum nesting of `messages`: beyond sensible use, far below the stack limit. */
export const MAX_DEPTH = 32

const filter = new Shape(
  [1, 'op', 'string'],
  [2, 'key', 'string'],
  [3, 'cmp', 'string'],
  [4, 'val', 'string'],
  [5, 'vals', 'strings'],
)
filter.add([6, 'nodes', 'messages', filter])

const subscribe = new Shape(
  [1, 'channel', 'string'],
  [2, 'token', 'string'],
  [3, 'recover', 'bool'],
  [6, 'epoch', 'string'],
  [7, 'offset', 'uint64'],
  [8, 'data', 'bytes'],
  [9, 'positioned', 'bool'],
  [10, 'recoverable', 'bool'],
  [11, 'join_leave', 'bool'],
  [12, 'delta', 'string'],
  [13, 'tf', 'message', filter],
  [14, 'flag', 'int64'],
  [15, 'type', 'int32'],
  [16, 'phase', 'int32'],
  [17, 'cursor', 'string'],
  [18, 'limit', 'int32'],
  [19, 'asc', 'bool'],
)

export const connect = new Shape(
  [1, 'token', 'string'],
  [2, 'data', 'bytes'],
  [3, 'subs', 'subs', new Shape([1, 'key', 'string'], [2, 'value', 'message', subscribe])],
  [4, 'name', 'string'],
  [5, 'version', 'string'],
  [6, 'headers', 'texts', new Shape([1, 'key', 'string'], [2, 'value', 'string'])],
  [7, 'flag', 'int64'],
)

const publish = new Shape(
  [1, 'channel', 'string'],
  [2, 'data', 'bytes'],
  [3, 'type', 'int32'],
  [4, 'key', 'string'],
  [5, 'removed', 'bool'],
  [100, 'expected_offset', 'uint64'],
  [101, 'expected_epoch', 'string'],
  [102, 'append', 'bool'],
)

const history = new Shape(
  [1, 'channel', 'string'],
  [7, 'limit', 'int32'],
  [8, 'since', 'message', new Shape([1, 'offset', 'uint64'], [2, 'epoch', 'string'])],
  [9, 'reverse', 'bool'],
)

const keyedItem = new Shape([1, 'key', 'string'], [2, 'version', 'uint64'])

const subRefresh = new Shape(
  [1, 'channel', 'string'],
  [2, 'token', 'string'],
  [3, 'type', 'int32'],
  [4, 'track', 'messages', new Shape([1, 'signature', 'string'], [2, 'items', 'messages', keyedItem])],
  [5, 'untrack', 'strings'],
)
const channelOnly = new Shape([1, 'channel', 'string'])

/** In order of precedence for commands with several. */
export const requests = new Shape(
  [4, 'connect', 'message', connect],
  [5, 'subscribe', 'message', subscribe],
  [6, 'unsubscribe', 'message', channelOnly],
  [7, 'publish', 'message', publish],
  [8, 'presence', 'message', channelOnly],
  [9, 'presence_stats', 'message', channelOnly],
  [10, 'history', 'message', history],
  [13, 'rpc', 'message', new Shape([1, 'data', 'bytes'], [2, 'method', 'string'])],
  [12, 'send', 'message', new Shape([1, 'data', 'bytes'])],
  [14, 'refresh', 'message', new Shape([1, 'token', 'string'])],
  [15, 'sub_refresh', 'message', subRefresh],
)

/** `type` of a subscribe or publish request; the reply has MAP for all kinds of maps. */
export const SubscriptionType = Object.freeze({
  STREAM: 0,
  MAP: 1,
  MAP_CLIENTS: 2,
  MAP_USERS: 3,
  SHARED_POLL: 4,
})

/** Bits of `flag` in a subscribe request. */
export const SubscribeFlag = Object.freeze({
  /** Pushes may have an id instead of the channel's name. */
  COMPACT: 1,
  /** Fail with error 112 if not recovered. */
  REJECT_UNRECOVERED: 2,
})

/** `phase` of a subscription to a map. */
export const Phase = Object.freeze({ LIVE: 0, STREAM: 1, STATE: 2 })

/** Bit of `flag` in a connect request: the client understands `append`. Not in the Centrifuge protocol. */
export const APPEND_FLAG = 1 << 30

/** @type {Command} */
export const PONG = Object.freeze({ id: 0, method: '', request: null, ping: false })
