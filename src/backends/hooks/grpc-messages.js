// Requests and answers of gRPC proxies, with the numbers of proto/proxy.proto and proto/notices.proto. The wire format
// is read strictly, by our own reader (protocol/wire.js says why): a backend must not be able to harm a worker.

import { isUtf8 } from 'node:buffer'
import { CallFailed } from '../../clients/hooks/contract.js'
import { Wire, WireReader, WireWriter } from '../../clients/protocol/wire.js'

/** @import { ProxyAnswer } from './proxy-answers.js' */

/**
 * @typedef {'text' | 'texts' | 'bytes' | 'bool' | 'uint32' | 'int64' | 'uint64' | 'message' | 'messages' | 'map' |
 *   'double' | 'any'} Kind `map`: from texts to values of the kind in `shape[2]`; `any`: a message that nobody reads
 * @typedef {{name: string, kind: Kind, shape: Shape | null}} Field
 * @typedef {ReadonlyMap<number, Field>} Shape a message: its fields by their numbers
 */

/** @param {Record<number, [string, Kind] | [string, Kind, Shape]>} fields @returns {Shape} */
const message = fields =>
  new Map(
    Object.entries(fields).map(([number, [name, kind, shape = null]]) => [
      Number(number),
      { name, kind, shape },
    ]),
  )

/** @param {Kind} kind @param {Shape} [shape] an entry of a map */
const entry = (kind, shape) =>
  message({ 1: ['key', 'text'], 2: shape ? ['value', kind, shape] : ['value', kind] })

const textMap = entry('text')
const boolValue = message({ 1: ['value', 'bool'] })
const override = message({
  1: ['presence', 'message', boolValue],
  2: ['join_leave', 'message', boolValue],
  3: ['force_recovery', 'message', boolValue],
  4: ['force_positioning', 'message', boolValue],
  5: ['force_push_join_leave', 'message', boolValue],
})
const caps = message({ 1: ['channels', 'texts'], 2: ['allow', 'texts'], 3: ['match', 'text'] })
const subscribeOptions = message({
  1: ['expire_at', 'int64'],
  2: ['info', 'bytes'],
  3: ['b64info', 'text'],
  4: ['data', 'bytes'],
  5: ['b64data', 'text'],
  6: ['override', 'message', override],
  7: ['server_tags_filter', 'any'],
  8: ['cache_recover', 'bool'],
})

/** @type {Readonly<Record<string, Shape>>} */
const RESULTS = Object.freeze({
  connect: message({
    1: ['user', 'text'],
    2: ['expire_at', 'int64'],
    3: ['info', 'bytes'],
    4: ['b64info', 'text'],
    5: ['data', 'bytes'],
    6: ['b64data', 'text'],
    7: ['channels', 'texts'],
    8: ['subs', 'map', entry('message', subscribeOptions)],
    9: ['meta', 'bytes'],
    10: ['caps', 'messages', caps],
    11: ['labels', 'map', textMap],
  }),
  refresh: message({
    1: ['expired', 'bool'],
    2: ['expire_at', 'int64'],
    3: ['info', 'bytes'],
    4: ['b64info', 'text'],
    5: ['meta', 'bytes'],
    6: ['caps', 'messages', caps],
  }),
  subscribe: message({
    1: ['expire_at', 'int64'],
    2: ['info', 'bytes'],
    3: ['b64info', 'text'],
    4: ['data', 'bytes'],
    5: ['b64data', 'text'],
    6: ['override', 'message', override],
    7: ['allow', 'texts'],
    8: ['server_tags_filter', 'any'],
  }),
  sub_refresh: message({
    1: ['expired', 'bool'],
    2: ['expire_at', 'int64'],
    3: ['info', 'bytes'],
    4: ['b64info', 'text'],
    5: ['server_tags_filter', 'any'],
  }),
  publish: message({
    1: ['data', 'bytes'],
    2: ['b64data', 'text'],
    3: ['skip_history', 'bool'],
    4: ['tags', 'map', textMap],
    5: ['idempotency_key', 'text'],
    6: ['delta', 'bool'],
    7: ['version', 'uint64'],
    8: ['version_epoch', 'text'],
  }),
  rpc: message({ 1: ['data', 'bytes'], 2: ['b64data', 'text'] }),
})

const error = message({ 1: ['code', 'uint32'], 2: ['message', 'text'], 3: ['temporary', 'bool'] })
const disconnect = message({ 1: ['code', 'uint32'], 2: ['reason', 'text'] })

/** @type {(result: Shape) => Shape} */
const response = result =>
  message({
    1: ['result', 'message', result],
    2: ['error', 'message', error],
    3: ['disconnect', 'message', disconnect],
  })

/** Answers by event. @type {Readonly<Record<string, Shape>>} */
const RESPONSES = Object.freeze({
  ...Object.fromEntries(Object.entries(RESULTS).map(([event, result]) => [event, response(result)])),
  disconnected: message({}),
  unsubscribed: message({}),
})

/** The first fields of all requests. */
const HEAD = Object.freeze({ client: 1, transport: 2, protocol: 3, encoding: 4 })

/** Numbers of the fields of requests, by event. @type {Readonly<Record<string, Readonly<Record<string, number>>>>} */
const REQUESTS = Object.freeze({
  connect: { ...HEAD, data: 10, b64data: 11, name: 12, version: 13, channels: 14 },
  refresh: { ...HEAD, user: 10, meta: 11 },
  subscribe: { ...HEAD, user: 10, channel: 11, meta: 13, data: 14, b64data: 15 },
  publish: { ...HEAD, user: 10, channel: 11, data: 12, b64data: 13, meta: 14 },
  rpc: { ...HEAD, user: 10, method: 11, data: 12, b64data: 13, meta: 14 },
  sub_refresh: { ...HEAD, user: 10, channel: 11, meta: 12 },
  disconnected: { ...HEAD, user: 10, code: 11, reason: 12, channels: 13, duration: 14, meta: 15 },
  unsubscribed: { ...HEAD, user: 10, channel: 11, code: 12, reason: 13, meta: 14 },
})

/** Kinds of those that are no texts. @type {Readonly<Record<string, Kind>>} */
const REQUEST_KINDS = Object.freeze({
  data: 'bytes',
  meta: 'bytes',
  channels: 'texts',
  code: 'uint32',
  duration: 'double',
})

/** Paths of the methods, by event. @type {Readonly<Record<string, string>>} */
export const METHODS = Object.freeze({
  connect: '/centrifugal.centrifugo.proxy.CentrifugoProxy/Connect',
  refresh: '/centrifugal.centrifugo.proxy.CentrifugoProxy/Refresh',
  subscribe: '/centrifugal.centrifugo.proxy.CentrifugoProxy/Subscribe',
  publish: '/centrifugal.centrifugo.proxy.CentrifugoProxy/Publish',
  rpc: '/centrifugal.centrifugo.proxy.CentrifugoProxy/RPC',
  sub_refresh: '/centrifugal.centrifugo.proxy.CentrifugoProxy/SubRefresh',
  disconnected: '/halley.proxy.HalleyNotices/Disconnected',
  unsubscribed: '/halley.proxy.HalleyNotices/Unsubscribed',
})

/**
 * @param {WireWriter} out its content is replaced @param {string} event
 * @param {Record<string, any>} fields those of proxy-requests.js @returns {Buffer}
 */
export function encodeRequest(out, event, fields) {
  const numbers = REQUESTS[event]
  out.clear()
  for (const name of Object.keys(fields)) {
    const value = fields[name]
    if (value === undefined) continue
    const number = numbers[name]
    const kind = REQUEST_KINDS[name]
    if (kind === undefined) out.text(number, value)
    else if (kind === 'bytes') out.bytes(number, Buffer.from(value))
    else if (kind === 'texts') for (const text of value) out.text(number, text)
    else if (kind === 'double') out.double(number, value)
    else out.uint(number, value)
  }
  return out.finish()
}

/** Wire types of all other kinds are Wire.LENGTH. @type {Readonly<Partial<Record<Kind, number>>>} */
const WIRES = Object.freeze({
  bool: Wire.VARINT,
  uint32: Wire.VARINT,
  int64: Wire.VARINT,
  uint64: Wire.VARINT,
})

/** @param {string} reason @returns {CallFailed} */
const wrong = reason => new CallFailed(`the answer ${reason}`, 'answer')

/** @param {WireReader} reader @param {string} name @returns {string} */
function textOf(reader, name) {
  const bytes = reader.bytes()
  if (!isUtf8(bytes)) throw wrong(`has no UTF-8 in ${name}`)
  return bytes.toString()
}

/**
 * @param {WireReader} reader at the first byte of the message, which ends at the reader's end
 * @param {Shape} shape @param {Record<string, any>} into fields that occur again are merged, or the last one counts
 */
function readMessage(reader, shape, into) {
  while (!reader.done) {
    const tag = reader.tag()
    const field = shape.get(tag >>> 3)
    const wire = tag & 7
    if (field === undefined) reader.skip(wire)
    else if (wire !== (WIRES[field.kind] ?? Wire.LENGTH))
      throw wrong(`has a field of a wrong type in ${field.name}`)
    else readField(reader, field, into)
  }
  return into
}

/** @param {WireReader} reader at an inner message @param {Shape} shape @param {Record<string, any>} into */
function readInner(reader, shape, into) {
  const outer = reader.enter()
  readMessage(reader, shape, into)
  reader.leave(outer)
  return into
}

/** @param {WireReader} reader @param {Field} field @param {Record<string, any>} into */
function readField(reader, { name, kind, shape }, into) {
  const inner = /** @type {Shape} */ (shape)
  switch (kind) {
    case 'text':
      into[name] = textOf(reader, name)
      break
    case 'texts':
      into[name] ??= []
      into[name].push(textOf(reader, name))
      break
    case 'bytes': {
      const bytes = reader.bytes()
      // Empty bytes equal absence; proto3 does not distinguish them.
      into[name] = bytes.length > 0 ? bytes : undefined
      break
    }
    case 'bool':
      into[name] = reader.bigUint64() !== 0n
      break
    case 'uint32':
      into[name] = reader.uint32()
      break
    case 'int64':
      into[name] = reader.int64()
      break
    case 'uint64':
      into[name] = reader.bigUint64()
      break
    case 'message':
      into[name] ??= {}
      readInner(reader, inner, into[name])
      break
    case 'messages':
      into[name] ??= []
      into[name].push(readInner(reader, inner, {}))
      break
    case 'map': {
      const { key = '', value } = readInner(reader, inner, {})
      // A plain object: `__proto__` is a name like any other.
      into[name] ??= Object.create(null)
      into[name][key] = value ?? (inner.get(2)?.kind === 'text' ? '' : {})
      break
    }
    default:
      // Also an empty message is there.
      into[name] = true
      reader.bytes()
  }
}

/**
 * @param {string} event @param {Buffer} bytes of the answer; those of its result are views of it
 * @returns {ProxyAnswer}
 * @throws {CallFailed} kind `answer`
 */
export function decodeAnswer(event, bytes) {
  let answer
  try {
    answer = readMessage(new WireReader(bytes), RESPONSES[event], {})
  } catch (error) {
    throw error instanceof CallFailed ? error : wrong('is not a valid message')
  }
  const { result = null, error = null, disconnect = null } = answer
  return {
    result,
    error: error && { code: 0, message: '', temporary: false, ...error },
    disconnect: disconnect && { code: 0, reason: '', ...disconnect },
  }
}
