import { disconnects } from '../../base/errors.js'
import { MAX_FILTER_DEPTH } from './filter.js'
import { Wire, WireReader } from './wire.js'

/** @import { Disconnect } from '../../base/errors.js' */
/** @import { Command } from './contract.js' */

/**
 * @typedef {'uint32' | 'int32' | 'uint64' | 'int64' | 'bool' | 'string' | 'bytes' | 'strings' | 'texts' | 'subs' |
 *   'message' | 'nodes'} Kind `texts` and `subs` are maps, `nodes` a repeated message
 * @typedef {{name: string, kind: Kind, shape: Shape | null}} Field
 * @typedef {(Field | undefined)[]} Shape a message: its fields by their numbers
 */

/** @param {Record<number, [string, Kind] | [string, Kind, Shape]>} fields @returns {Shape} */
function message(fields) {
  /** @type {Shape} */
  const shape = []
  for (const [number, [name, kind, inner = null]] of Object.entries(fields)) {
    shape[Number(number)] = { name, kind, shape: inner }
  }
  return shape
}

// Messages from clients (client protocol), without unused fields.

const filterNode = message({
  1: ['op', 'string'],
  2: ['key', 'string'],
  3: ['cmp', 'string'],
  4: ['val', 'string'],
  5: ['vals', 'strings'],
})
Object.assign(filterNode, message({ 6: ['nodes', 'nodes', filterNode] }))

const subscribeRequest = message({
  1: ['channel', 'string'],
  2: ['token', 'string'],
  3: ['recover', 'bool'],
  6: ['epoch', 'string'],
  7: ['offset', 'uint64'],
  8: ['data', 'bytes'],
  9: ['positioned', 'bool'],
  10: ['recoverable', 'bool'],
  11: ['join_leave', 'bool'],
  12: ['delta', 'string'],
  13: ['tf', 'message', filterNode],
  14: ['flag', 'int64'],
  15: ['type', 'int32'],
  16: ['phase', 'int32'],
  17: ['cursor', 'string'],
  18: ['limit', 'int32'],
  19: ['asc', 'bool'],
})

const connectRequest = message({
  1: ['token', 'string'],
  2: ['data', 'bytes'],
  3: ['subs', 'subs', message({ 1: ['key', 'string'], 2: ['value', 'message', subscribeRequest] })],
  4: ['name', 'string'],
  5: ['version', 'string'],
  6: ['headers', 'texts', message({ 1: ['key', 'string'], 2: ['value', 'string'] })],
  7: ['flag', 'int64'],
})

const channelOnly = message({ 1: ['channel', 'string'] })

const ID = 1
const PING = 11

/** The requests of a Command. */
const requests = message({
  4: ['connect', 'message', connectRequest],
  5: ['subscribe', 'message', subscribeRequest],
  6: ['unsubscribe', 'message', channelOnly],
  7: [
    'publish',
    'message',
    message({
      1: ['channel', 'string'],
      2: ['data', 'bytes'],
      3: ['type', 'int32'],
      4: ['key', 'string'],
      5: ['removed', 'bool'],
    }),
  ],
  8: ['presence', 'message', channelOnly],
  9: ['presence_stats', 'message', channelOnly],
  10: [
    'history',
    'message',
    message({
      1: ['channel', 'string'],
      7: ['limit', 'int32'],
      8: ['since', 'message', message({ 1: ['offset', 'uint64'], 2: ['epoch', 'string'] })],
      9: ['reverse', 'bool'],
    }),
  ],
  12: ['send', 'message', message({ 1: ['data', 'bytes'] })],
  13: ['rpc', 'message', message({ 1: ['data', 'bytes'], 2: ['method', 'string'] })],
  14: ['refresh', 'message', message({ 1: ['token', 'string'] })],
  15: [
    'sub_refresh',
    'message',
    message({ 1: ['channel', 'string'], 2: ['token', 'string'], 3: ['type', 'int32'] }),
  ],
})

/** The order of preference for a command with several requests (client protocol). */
const order = [4, 5, 6, 7, 8, 9, 10, 13, 12, 14, 15]

/** @type {Record<Kind, number>} */
const wires = {
  uint32: Wire.VARINT,
  int32: Wire.VARINT,
  uint64: Wire.VARINT,
  int64: Wire.VARINT,
  bool: Wire.VARINT,
  string: Wire.LENGTH,
  bytes: Wire.LENGTH,
  strings: Wire.LENGTH,
  texts: Wire.LENGTH,
  subs: Wire.LENGTH,
  message: Wire.LENGTH,
  nodes: Wire.LENGTH,
}

/**
 * Reads a message. Repeated fields are merged, or the last one wins, as everywhere in Protobuf.
 * @param {WireReader} reader at the first byte of the message, which ends at the reader's end
 * @param {Shape} shape @param {any} into @param {number} depth of filter nodes
 */
function read(reader, shape, into, depth) {
  while (!reader.done) {
    const tag = reader.tag()
    const number = tag >>> 3
    const field = shape[number]
    if (field === undefined) reader.skip(tag & 7)
    else if ((tag & 7) !== wires[field.kind]) throw disconnects.badRequest
    else readField(reader, field, into, depth)
  }
  return into
}

/**
 * @param {WireReader} reader at an inner message @param {Shape | null} shape @param {any} into @param {number} depth
 */
function readMessage(reader, shape, into, depth) {
  const outer = reader.enter()
  read(reader, /** @type {Shape} */ (shape), into, depth)
  reader.leave(outer)
  return into
}

/** @param {WireReader} reader @param {Field} field @param {any} into @param {number} depth */
function readField(reader, { name, kind, shape }, into, depth) {
  switch (kind) {
    case 'uint32':
      into[name] = reader.uint32()
      break
    case 'int32':
      into[name] = reader.uint32() | 0
      break
    case 'uint64':
      into[name] = reader.uint64()
      break
    case 'int64':
      into[name] = reader.int64()
      break
    case 'bool':
      into[name] = reader.uint64() !== 0
      break
    case 'string':
      into[name] = reader.text()
      break
    case 'bytes': {
      const bytes = reader.bytes()
      // Proto3 does not distinguish empty bytes from absent ones.
      into[name] = bytes.length > 0 ? bytes : undefined
      break
    }
    case 'strings':
      ;(into[name] ??= []).push(reader.text())
      break
    case 'texts': {
      const { key, value } = readMessage(reader, shape, { key: '', value: '' }, depth)
      // A plain assignment of `__proto__` would set the prototype.
      Object.defineProperty((into[name] ??= {}), key, {
        value,
        enumerable: true,
        configurable: true,
        writable: true,
      })
      break
    }
    case 'subs': {
      const { key, value } = readMessage(reader, shape, { key: '', value: undefined }, depth)
      ;(into[name] ??= new Map()).set(key, value ?? {})
      break
    }
    case 'message':
      readMessage(reader, shape, (into[name] ??= {}), depth)
      break
    case 'nodes':
      if (depth >= MAX_FILTER_DEPTH) throw disconnects.badRequest
      ;(into[name] ??= []).push(readMessage(reader, shape, {}, depth + 1))
  }
}

/** @type {Command} */
const PONG = Object.freeze({ id: 0, method: '', request: null, ping: false })

/**
 * @param {string} raw the bytes of one command as a byte string
 * @returns {Command}
 * @throws {Disconnect} disconnects.badRequest
 */
export function parseCommand(raw) {
  if (raw === '') return PONG
  const reader = new WireReader(Buffer.from(raw, 'latin1'))
  let id = 0
  let ping = false
  let chosen = 0
  let request = null
  while (!reader.done) {
    const tag = reader.tag()
    const number = tag >>> 3
    const wire = tag & 7
    const field = requests[number]
    if (number === ID && wire === Wire.VARINT) id = reader.uint32()
    else if (number === PING && wire === Wire.LENGTH) ping = reader.bytes() !== null
    else if (field !== undefined && wire === Wire.LENGTH) {
      const fields = readMessage(reader, field.shape, number === chosen ? request : {}, 0)
      if (chosen !== 0 && order.indexOf(number) > order.indexOf(chosen)) continue
      chosen = number
      request = fields
    } else if (field !== undefined || number === ID || number === PING) throw disconnects.badRequest
    else reader.skip(wire)
  }
  if (chosen !== 0) return { id, method: /** @type {Field} */ (requests[chosen]).name, request, ping }
  if (id > 0 || ping) throw disconnects.badRequest
  return PONG
}

/**
 * @param {Buffer} frame length-delimited commands
 * @returns {string[]} byte strings, because they may wait: any Buffer keeps the whole memory it was cut from
 * @throws {Disconnect} disconnects.badRequest
 */
export function splitFrame(frame) {
  if (frame.length === 0) throw disconnects.badRequest
  const reader = new WireReader(frame)
  const raws = []
  while (!reader.done) raws.push(reader.bytes().toString('latin1'))
  return raws
}

/**
 * Reads an EmulationRequest in Protobuf (client protocol).
 * @param {Buffer} body
 * @returns {{node: string, session: string, data: Buffer} | undefined} undefined: malformed; `data` is a view of `body`
 */
export function readEmulationRequest(body) {
  if (body.length === 0) return undefined
  /** @type {{node: string, session: string, data: Buffer}} */
  const request = { node: '', session: '', data: Buffer.alloc(0) }
  const reader = new WireReader(body)
  try {
    while (!reader.done) {
      const tag = reader.tag()
      if (tag === 0x0a) request.node = reader.text()
      else if (tag === 0x12) request.session = reader.text()
      else if (tag === 0x1a) request.data = reader.bytes()
      else reader.skip(tag & 7)
    }
  } catch {
    return undefined
  }
  return request
}
