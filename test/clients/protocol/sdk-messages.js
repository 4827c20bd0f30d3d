// The Protobuf messages of the JavaScript SDK, generated from the official schema. The SDK does not export them, so its
// file is compiled here with one line more.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { compileFunction } from 'node:vm'

const require = createRequire(import.meta.url)
const file = require.resolve('centrifuge/build/protobuf')
const text = `${readFileSync(file, 'utf8')}\nexports.messages = $root.centrifugal.centrifuge.protocol`
const exported = /** @type {any} */ ({})
compileFunction(text, ['exports', 'require'], { filename: file })(exported, require)

const { Command, Reply } = exported.messages

/** @param {any} value @returns {any} with 64-bit integers as numbers or text, bytes as Buffers; no empty defaults */
function plain(value) {
  if (value instanceof Uint8Array) return Buffer.from(value)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value.toNumber === 'function') {
    const number = value.toNumber()
    return Number.isSafeInteger(number) ? number : value.toString()
  }
  const fields = Object.entries(value).filter(([, field]) => !isAbsent(field))
  return Object.fromEntries(fields.map(([key, field]) => [key, plain(field)]))
}

/** A message has an empty list or map where the wire had none. @param {any} field */
function isAbsent(field) {
  if (Array.isArray(field)) return field.length === 0
  return field?.constructor === Object && Object.keys(field).length === 0
}

/** @param {object[]} commands with the fields of the schema @returns {Buffer} a frame */
export const commandFrame = (...commands) =>
  Buffer.concat(commands.map(command => Command.encodeDelimited(command).finish()))

/** @param {Uint8Array} frame @returns {any[]} replies, with pushes in them */
export function repliesOf(frame) {
  const bytes = Buffer.from(frame)
  const replies = []
  for (let at = 0; at < bytes.length; ) {
    const { length, size } = lengthAt(bytes, at)
    at += size
    if (at + length > bytes.length) throw new Error('a reply runs past the end of its frame')
    replies.push(plain(Reply.decode(bytes.subarray(at, at + length))))
    at += length
  }
  return replies
}

/** @param {Buffer} bytes @param {number} at */
function lengthAt(bytes, at) {
  let length = 0
  for (let size = 0; ; size++) {
    const byte = bytes[at + size]
    length += (byte & 127) * 128 ** size
    if (byte < 128) return { length, size: size + 1 }
  }
}
