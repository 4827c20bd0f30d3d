// Parses JSON objects by a table of fields: ignores unknown fields, treats `null` as absent, and rejects the whole
// request on a wrong type.

import { errors, ReplyError } from '../../base/errors.js'
import {
  bytesPayload,
  decodeBase64,
  NO_PAYLOAD,
  partOf,
  textPayload,
  toJson,
} from '../../clients/protocol/payload.js'
import { isObject, rawMember, singleLine } from '../../clients/protocol/raw-json.js'
import { didYouMean } from '../../config/nearest.js'

/** @import { Payload } from '../../clients/protocol/payload.js' */

/** Invalid request body: HTTP 400. */
export class BadBody extends Error {
  /** @param {string} what is wrong: `channel must be a string` */
  constructor(what) {
    super(`Bad Request: ${what}`)
  }
}

const NOT_OBJECT = 'the body must be a JSON object'

/**
 * `zero`: value of an absent field; `nullable`: `null` is a value; `read` receives the text of the enclosing object and
 * throws BadBody; `fields`: of an object.
 * @typedef {{zero: any, nullable: boolean, read: (value: any, name: string, text: string) => any,
 *   fields?: Record<string, Field>}} Field
 */

/** @param {any} zero @param {string} type with article @param {(value: any) => boolean} test @returns {Field} */
const field = (zero, type, test) => ({
  zero,
  nullable: false,
  read(value, name) {
    if (!test(value)) throw new BadBody(`${name} must be ${type}`)
    return value
  },
})

/** @param {number} min @param {number} max */
const integer = (min, max) =>
  field(
    0,
    min < 0 ? `a ${Math.log2(max + 1) + 1}-bit integer` : 'a non-negative integer',
    value => typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max,
  )

export const string = field('', 'a string', value => typeof value === 'string')
export const flag = field(false, 'a boolean', value => typeof value === 'boolean')
export const int32 = integer(-(2 ** 31), 2 ** 31 - 1)
export const uint32 = integer(0, 2 ** 32 - 1)
/** Unix seconds: beyond 2^53 equivalent to "never". */
export const seconds = integer(-(2 ** 63), 2 ** 63)
/** A position in a stream. It never reaches 2^53. */
export const offset = integer(0, 2 ** 64)
export const ignored = field(undefined, 'anything', () => true)

/** undefined if absent: '' is a value. */
export const optionalString = { ...string, zero: undefined }

/** The original JSON text of a value, on one line; '' if absent. @type {Field} */
export const raw = {
  zero: '',
  nullable: false,
  read: (_value, name, text) => singleLine(/** @type {string} */ (rawMember(text, name))),
}

/** A payload: the same, but `null` is a value. @type {Field} */
export const payload = { ...raw, nullable: true }

const MAX_UINT64 = 2n ** 64n - 1n

/** A number beyond the precision of a double. @type {Field} */
export const uint64 = {
  zero: 0n,
  nullable: false,
  read(value, name, text) {
    const digits = typeof value === 'number' ? /** @type {string} */ (rawMember(text, name)) : ''
    const number = /^\d{1,20}$/.test(digits) ? BigInt(digits) : -1n
    if (number < 0n || number > MAX_UINT64) throw new BadBody(`${name} must be an integer from 0 to 2^64 - 1`)
    return number
  },
}

/** A list of strings; `null` in it becomes ''. @type {Field} */
export const strings = {
  zero: Object.freeze([]),
  nullable: false,
  read(value, name) {
    if (!Array.isArray(value)) throw new BadBody(`${name} must be an array of strings`)
    for (let i = 0; i < value.length; i++) {
      if (value[i] === null) value[i] = ''
      else if (typeof value[i] !== 'string') throw new BadBody(`${name} must be an array of strings`)
    }
    return value
  },
}

/** A map of strings to strings, null when empty; `null` in it becomes ''. @type {Field} */
export const tags = {
  zero: null,
  nullable: false,
  read(value, name) {
    if (!isObject(value)) throw new BadBody(`${name} must be an object with string values`)
    const entries = Object.entries(value)
    for (const entry of entries) {
      if (entry[1] === null) entry[1] = ''
      else if (typeof entry[1] !== 'string') throw new BadBody(`${name} must be an object with string values`)
    }
    // fromEntries, not assignment: a tag may be called `__proto__`.
    return entries.length === 0 ? null : Object.fromEntries(entries)
  },
}

/** An object, without raw fields; null if absent. @param {Record<string, Field>} fields @returns {Field} */
export const object = fields => ({
  zero: null,
  nullable: false,
  fields,
  read: (value, name) => readObject(fields, value, '', `${name} must be an object`),
})

/**
 * @param {Record<string, Field>} fields @param {any} value a parsed JSON value @param {string} text its JSON text
 * @param {string} [fault] error if not an object
 * @returns {any} every field by name
 * @throws {BadBody}
 */
export function readObject(fields, value, text, fault = NOT_OBJECT) {
  if (!isObject(value)) throw new BadBody(fault)
  /** @type {any} */
  const params = {}
  for (const name in fields) {
    const { zero, nullable, read } = fields[name]
    const given = Object.hasOwn(value, name) ? value[name] : undefined
    params[name] = given === undefined || (given === null && !nullable) ? zero : read(given, name, text)
  }
  return params
}

/** @param {string} text @returns {any} @throws {BadBody} */
export function parseJson(text) {
  try {
    return JSON.parse(text)
  } catch {
    throw new BadBody(text === '' ? 'the body is empty' : 'the body is not JSON')
  }
}

const MAX_NAMED = 3
const MAX_NAME = 64

/** Fields that every method with them requires. A payload may be given as `b64data`, a list may be of all keys. */
const REQUIRED = ['channel', 'channels', 'key', 'data']

/**
 * Names missing and unknown fields of a rejected request: probably misspelt.
 * @param {Error} error
 * @param {Record<string, Field>} fields
 * @param {any} given the parsed request
 */
export function explain(error, fields, given) {
  if (error !== errors.badRequest || !isObject(given)) return error
  const why = []
  for (const name of REQUIRED) {
    if (!Object.hasOwn(fields, name)) continue
    if (name === 'key' && Object.hasOwn(fields, 'cursor')) continue
    // null is a payload; `subscribe` (with a user) needs none.
    if (name === 'data' && (Object.hasOwn(fields, 'user') || given.b64data || given.data === null)) continue
    if (given[name] === undefined || given[name] === null || given[name] === '')
      why.push(`${name} is missing`)
  }
  const unknown = Object.keys(given).filter(name => !Object.hasOwn(fields, name))
  for (const name of unknown.slice(0, MAX_NAMED)) {
    const shown = name.length > MAX_NAME ? `${name.slice(0, MAX_NAME)}...` : name
    why.push(`unknown field ${JSON.stringify(shown)}${didYouMean(name, Object.keys(fields))}`)
  }
  if (why.length === 0) return error
  const { code, message, temporary, status } = errors.badRequest
  return new ReplyError(code, `${message}: ${why.join('; ')}`, temporary, status)
}

/**
 * Rejects calls with unsupported restrictions: they would reach too many clients.
 * @param {Record<string, Field>} restrictions
 * @param {any} params
 * @param {ReplyError} error
 */
export function refuseRestrictions(restrictions, params, { code, message, temporary, status }) {
  for (const name in restrictions) {
    const { zero } = restrictions[name]
    const value = params[name]
    if (value === zero || (Array.isArray(zero) && value.length === 0)) continue
    throw new ReplyError(code, `${message}: ${name} is not supported`, temporary, status)
  }
}

/** @param {string} base64 @throws {ReplyError} 107 */
function decode(base64) {
  const bytes = decodeBase64(base64)
  if (bytes === undefined) throw errors.badRequest
  return bytes
}

/**
 * @param {string} raw JSON text of `data`, '' if absent @param {string} base64 `b64data`, preferred unless empty
 * @throws {ReplyError} 107
 */
export function readPayload(raw, base64) {
  if (base64 !== '') return bytesPayload(decode(base64))
  return raw === '' ? NO_PAYLOAD : textPayload(raw)
}

/** A part to append. @param {string} raw @param {string} base64 @throws {ReplyError} 107 */
export const readPart = (raw, base64) => (base64 === '' ? readPayload(raw, '') : partOf(decode(base64)))

/** A payload as JSON text: other data becomes a JSON string. @param {string} raw @param {string} base64 */
export const readJson = (raw, base64) => (base64 === '' ? raw : toJson(decode(base64)))

/** Parameters of a publication with data only. */
export const NO_PARAMS = Object.freeze({
  skip_history: false,
  tags: null,
  idempotency_key: '',
  delta: false,
  version: 0n,
  version_epoch: '',
  target: null,
})
