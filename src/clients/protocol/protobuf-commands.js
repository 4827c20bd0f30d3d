import { disconnects } from '../../base/errors.js'
import { MAX_DEPTH, PONG, requests } from './requests.js'
import { Wire, WireReader } from './wire.js'

/** @import { Disconnect } from '../../base/errors.js' */
/** @import { Command } from './contract.js' */
/** @import { Field, Shape } from './requests.js' */

const ID = 1
const PING = 11

/**
 * Merges repeated messages; otherwise the last value wins, as in Protobuf.
 * @param {WireReader} reader @param {Shape} shape @param {any} into @param {number} depth of `messages`
 */
function read(reader, shape, into, depth) {
  while (!reader.done) {
    const tag = reader.tag()
    const wire = tag & 7
    const field = shape.byNumber[tag >>> 3]
    if (field === undefined) reader.skip(wire)
    else if (wire === (field.varint ? Wire.VARINT : Wire.LENGTH)) readField(reader, field, into, depth)
    else throw disconnects.badRequest
  }
}

/** @param {WireReader} reader @param {Shape} shape @param {any} into @param {number} depth */
function readMessage(reader, shape, into, depth) {
  const outer = reader.enter()
  read(reader, shape, into, depth)
  reader.leave(outer)
  return into
}

/** @param {WireReader} reader @param {Field} field @param {any} into @param {number} depth */
function readField(reader, { name, kind, shape }, into, depth) {
  switch (kind) {
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
      into[name] = reader.bigUint64() !== 0n
      break
    case 'string':
      into[name] = reader.text()
      break
    case 'bytes': {
      const bytes = reader.bytes()
      // In proto3, empty bytes equal absent bytes.
      into[name] = bytes.length > 0 ? bytes : undefined
      break
    }
    case 'strings':
      ;(into[name] ??= []).push(reader.text())
      break
    case 'texts': {
      const { key, value } = readMessage(reader, shape, { key: '', value: '' }, depth)
      // Assigning `__proto__` would set the prototype.
      const property = { value, enumerable: true, configurable: true, writable: true }
      Object.defineProperty((into[name] ??= {}), key, property)
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
    case 'messages':
      if (depth >= MAX_DEPTH) throw disconnects.badRequest
      ;(into[name] ??= []).push(readMessage(reader, shape, {}, depth + 1))
  }
}

/** @param {string} raw byte string @returns {Command} @throws {Disconnect} disconnects.badRequest */
export function parseCommand(raw) {
  if (raw === '') return PONG
  const reader = new WireReader(Buffer.from(raw, 'latin1'))
  let id = 0
  let ping = false
  /** @type {Field | null} */
  let chosen = null
  let request = null
  while (!reader.done) {
    const tag = reader.tag()
    const number = tag >>> 3
    const wire = tag & 7
    const field = requests.byNumber[number]
    if (number === ID && wire === Wire.VARINT) id = reader.uint32()
    else if (number === PING && wire === Wire.LENGTH) ping = reader.bytes() !== null
    else if (field !== undefined && wire === Wire.LENGTH) {
      const fields = readMessage(reader, field.shape, field === chosen ? request : {}, 0)
      if (chosen !== null && field.rank > chosen.rank) continue
      chosen = field
      request = fields
    } else if (field !== undefined || number === ID || number === PING) throw disconnects.badRequest
    else reader.skip(wire)
  }
  if (chosen !== null) return { id, method: chosen.name, request, ping }
  if (id > 0 || ping) throw disconnects.badRequest
  return PONG
}

/**
 * @param {Buffer} frame
 * @returns byte strings: a waiting Buffer would retain the memory of the whole frame
 * @throws {Disconnect} disconnects.badRequest
 */
export function splitFrame(frame) {
  if (frame.length === 0) throw disconnects.badRequest
  const reader = new WireReader(frame)
  const raws = []
  while (!reader.done) raws.push(reader.bytes().toString('latin1'))
  return raws
}

/** @param {Buffer} body @returns undefined: malformed; `data` is a view of `body` */
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
