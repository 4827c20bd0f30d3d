// Reads the JSON objects of requests by a table of fields: unknown fields are ignored, `null` equals an absent field, a
// wrong type refuses the whole request.

import { errors } from '../errors.js'
import { bytesPayload, decodeBase64, NO_PAYLOAD, textPayload, toJson } from '../protocol/payload.js'
import { isObject, rawMember, singleLine } from '../protocol/raw-json.js'

/** @import { ReplyError } from '../errors.js' */
/** @import { Payload } from '../protocol/payload.js' */

/** Invalid request body: HTTP 400. */
export class BadBody extends Error {
  constructor() {
    super('Bad Request')
  }
}

/**
 * @typedef {object} Field
 * @property {any} zero value of an absent field
 * @property {boolean} nullable whether `null` is an ordinary value
 * @property {(value: any, name: string, text: string) => any} read `text`: the object around the field; throws BadBody
 */

/** @param {any} zero @param {(value: any) => boolean} test @returns {Field} */
const field = (zero, test) => ({
  zero,
  nullable: false,
  read(value) {
    if (!test(value)) throw new BadBody()
    return value
  },
})

/** @param {number} min @param {number} max */
const integer = (min, max) =>
  field(0, value => typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max)

export const string = field('', value => typeof value === 'string')
export const flag = field(false, value => typeof value === 'boolean')
export const int32 = integer(-(2 ** 31), 2 ** 31 - 1)
export const uint32 = integer(0, 2 ** 32 - 1)
/** Unix seconds: beyond 2^53 there is no difference to "never". */
export const seconds = integer(-(2 ** 63), 2 ** 63)
/** A position in a stream, which never reaches 2^53: a larger one may lose digits. */
export const offset = integer(0, 2 ** 64)
/** Any JSON value; it is not read. */
export const ignored = field(undefined, () => true)

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
    if (typeof value !== 'number') throw new BadBody()
    const digits = /** @type {string} */ (rawMember(text, name))
    if (!/^\d{1,20}$/.test(digits)) throw new BadBody()
    const number = BigInt(digits)
    if (number > MAX_UINT64) throw new BadBody()
    return number
  },
}

/** A list of strings; `null` in it becomes ''. @type {Field} */
export const strings = {
  zero: Object.freeze([]),
  nullable: false,
  read(value) {
    if (!Array.isArray(value)) throw new BadBody()
    for (let i = 0; i < value.length; i++) {
      if (value[i] === null) value[i] = ''
      else if (typeof value[i] !== 'string') throw new BadBody()
    }
    return value
  },
}

/** A map of strings to strings, null when empty; `null` in it becomes ''. @type {Field} */
export const tags = {
  zero: null,
  nullable: false,
  read(value) {
    if (!isObject(value)) throw new BadBody()
    const entries = Object.entries(value)
    for (const entry of entries) {
      if (entry[1] === null) entry[1] = ''
      else if (typeof entry[1] !== 'string') throw new BadBody()
    }
    // fromEntries, not assignment: a tag may be called `__proto__`.
    return entries.length === 0 ? null : Object.fromEntries(entries)
  },
}

/** An object, without raw fields; null if absent. @param {Record<string, Field>} fields @returns {Field} */
export const object = fields => ({
  zero: null,
  nullable: false,
  read: value => readObject(fields, value, ''),
})

/**
 * @param {Record<string, Field>} fields @param {any} value a parsed JSON value @param {string} text its JSON text
 * @returns {any} every field by its name
 * @throws {BadBody}
 */
export function readObject(fields, value, text) {
  if (!isObject(value)) throw new BadBody()
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
    throw new BadBody()
  }
}

/** @param {string} base64 @throws {ReplyError} 107 */
function decode(base64) {
  const bytes = decodeBase64(base64)
  if (bytes === undefined) throw errors.badRequest
  return bytes
}

/**
 * @param {string} raw JSON text of `data`, '' if absent @param {string} base64 `b64data`, which wins unless empty
 * @returns {Payload}
 * @throws {ReplyError} 107
 */
export function readPayload(raw, base64) {
  if (base64 !== '') return bytesPayload(decode(base64))
  return raw === '' ? NO_PAYLOAD : textPayload(raw)
}

/**
 * The same where only JSON is allowed: other data becomes a JSON string.
 * @param {string} raw @param {string} base64 @returns {string} JSON text, '' if there is none
 * @throws {ReplyError} 107
 */
export function readJson(raw, base64) {
  return base64 === '' ? raw : toJson(decode(base64))
}
