import { disconnects } from '../../base/errors.js'
import { isObject, rawMember, rawMembers, singleLine } from './raw-json.js'
import { connect, MAX_DEPTH, PONG, requests } from './requests.js'

/** @import { Disconnect } from '../../base/errors.js' */
/** @import { Command } from './contract.js' */
/** @import { Field, Shape } from './requests.js' */

/** @typedef {() => string | undefined} RawText of the checked object */

/**
 * Checks in place: null becomes undefined, payloads become raw text.
 * @param {any} value @param {Shape} shape @param {RawText} text @param {number} depth of `messages`
 */
function check(value, shape, text, depth) {
  if (!isObject(value)) throw disconnects.badRequest
  for (const key of Object.keys(value)) {
    const field = shape.byName[key]
    // Clients must not set fields added by the gateway.
    if (field === undefined) value[key] = undefined
    else if (field.kind === 'bytes') value[key] = singleLine(rawMember(text() ?? '{}', key) ?? 'null')
    else if (value[key] === null) value[key] = undefined
    else if (!checkField(value, field, text, depth)) throw disconnects.badRequest
  }
  return value
}

/** @param {any} value */
const isText = value => typeof value === 'string'

/** @param {any} owner @param {Field} field @param {RawText} text @param {number} depth @returns {boolean} */
function checkField(owner, { name, kind, shape }, text, depth) {
  const value = owner[name]
  switch (kind) {
    case 'string':
      return isText(value)
    case 'bool':
      return typeof value === 'boolean'
    case 'int32':
    case 'int64':
      return Number.isInteger(value)
    case 'uint64':
      return Number.isInteger(value) && value >= 0
    case 'strings':
      return Array.isArray(value) && value.every(isText)
    case 'texts':
      return isObject(value) && Object.values(value).every(isText)
    case 'subs':
      if (!isObject(value)) return false
      owner[name] = checkSubs(value, shape.byName.value.shape, () => rawMember(text() ?? '{}', name))
      return true
    case 'messages':
      if (!Array.isArray(value) || depth >= MAX_DEPTH) return false
      for (const node of value) check(node, shape, text, depth + 1)
      return true
    default:
      check(value, shape, text, depth)
      return true
  }
}

/** @param {any} subs by channel @param {Shape} shape @param {RawText} text @returns {Map<string, any>} */
function checkSubs(subs, shape, text) {
  /** @type {Map<string, string> | null} read only for payloads */
  let texts = null
  const checked = new Map()
  for (const channel of Object.keys(subs)) {
    if (subs[channel] === null) continue
    const textOf = () => (texts ??= rawMembers(text() ?? '{}')).get(channel)
    checked.set(channel, check(subs[channel], shape, textOf, 0))
  }
  return checked
}

/** Ignores text after the first JSON value, like the reference server. @param {string} line */
function parseFirst(line) {
  try {
    return { value: JSON.parse(line), text: line }
  } catch {
    const text = line.slice(0, valueEnd(line))
    return { value: parse(text), text }
  }
}

/** @param {string} text @returns {any} @throws {Disconnect} disconnects.badRequest */
function parse(text) {
  try {
    return JSON.parse(text)
  } catch {
    throw disconnects.badRequest
  }
}

/** @param {string} line @returns {number} end of the object at its start, or 0 */
function valueEnd(line) {
  let depth = 0
  for (let i = 0; i < line.length; i++) {
    const char = line[i]
    if (char === '"') {
      for (i++; i < line.length && line[i] !== '"'; i++) if (line[i] === '\\') i++
    } else if (char === '{' || char === '[') depth++
    else if ((char === '}' || char === ']') && --depth === 0) return i + 1
  }
  return 0
}

/** @param {string} line one command @returns {Command} @throws {Disconnect} disconnects.badRequest */
export function parseCommand(line) {
  if (line === '{}') return PONG
  const { value, text } = parseFirst(line)
  if (!isObject(value)) throw disconnects.badRequest
  const id = value.id ?? 0
  if (!Number.isInteger(id) || id < 0 || id > 0xffffffff) throw disconnects.badRequest
  const ping = Object.hasOwn(value, 'ping') && value.ping !== null
  /** @type {Field | null} */
  let chosen = null
  let request = null
  for (const name of Object.keys(value)) {
    const field = requests.byName[name]
    if (field === undefined || value[name] === null) continue
    const checked = check(value[name], field.shape, () => rawMember(text, name), 0)
    if (chosen !== null && field.rank > chosen.rank) continue
    chosen = field
    request = checked
  }
  if (chosen !== null) return { id, method: chosen.name, request, ping }
  if (id > 0 || ping) throw disconnects.badRequest
  return PONG
}

/** @param {string} text a single bare ConnectRequest @throws {Disconnect} disconnects.badRequest */
export const parseConnectRequest = text => check(parse(text), connect, () => text, 0)

/** @param {Buffer} frame @throws {Disconnect} disconnects.badRequest */
export function splitFrame(frame) {
  const text = frame.toString()
  if (text === '') throw disconnects.badRequest
  if (!text.includes('\n')) return [text]
  const lines = text.split('\n')
  if (lines[lines.length - 1] === '') lines.pop()
  return lines
}
