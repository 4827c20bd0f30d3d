// Reads values of a file, a variable or a flag, and checks type and range with the schema of the option.

import { formatDuration, parseDuration, show } from './values.js'

/** @import { Option, Schema } from './options/make.js' */
/** @import { Values } from './values.js' */

/** The message follows the key. */
class ValueError extends Error {
  /** @param {string} message @param {string} [at] `[2].to.code` */
  constructor(message, at = '') {
    super(message)
    this.at = at
  }
}

/**
 * Also sets defaults of objects, and replaces their durations.
 * @param {Schema} schema @param {unknown} value
 * @param {Option} option for the message
 * @param {string} [at] place in the value
 * @throws {ValueError}
 */
function check(schema, value, option, at = '') {
  const {
    enum: allowed,
    minimum = -Infinity,
    maximum = Infinity,
    minLength = 0,
    minItems = 0,
    maxItems = Infinity,
  } = schema
  const shown = option.secret && value !== null ? 'the value' : show(value)
  /** @param {string} message @returns {never} */
  const refuse = message => {
    throw new ValueError(message, at)
  }
  switch (schema.type) {
    case 'boolean':
      if (typeof value !== 'boolean') refuse(`${shown} is not true or false`)
      return
    case 'integer': {
      const digits = typeof value === 'string' && /^-?\d+$/.test(value)
      if (typeof value !== 'number' || !Number.isInteger(value))
        return refuse(
          `${shown} is ${digits ? 'text, not a number; write it without quotes' : 'not a whole number'}`,
        )
      const format = option.type === 'duration' || schema.duration ? formatDuration : String
      const range = `${format(value)} is out of range; it must be at`
      if (value < minimum) refuse(`${range} least ${format(minimum)}`)
      if (value > maximum) refuse(`${range} most ${format(maximum)}`)
      return
    }
    case 'string':
      if (typeof value !== 'string')
        return refuse(
          `${shown} is ${typeof value === 'number' ? 'a number, not text; write it in quotes' : 'not text'}`,
        )
      if (value.length < minLength) refuse('is empty')
      if (allowed?.includes(value) === false) refuse(`${shown} is not one of ${allowed.map(show).join(', ')}`)
      if (schema.pattern !== undefined && !new RegExp(schema.pattern, 'u').test(value))
        refuse(`${shown} is not a path like "/api" (a leading slash, none at the end)`)
      return
    case 'array': {
      const hint = typeof value === 'string' ? `; write [${shown}]` : ''
      if (!Array.isArray(value))
        return refuse(
          `${shown} ${option.single && at === '' ? 'is not text or a list' : `is not a list${hint}`}`,
        )
      if (value.length < minItems) refuse('the list is empty')
      if (value.length > maxItems) refuse(`${value.length} entries are too many; at most ${maxItems}`)
      const { items } = schema
      if (items) for (const [i, entry] of value.entries()) check(items, entry, option, `${at}[${i}]`)
      return
    }
    case 'object': {
      if (typeof value !== 'object' || value === null || Array.isArray(value))
        return refuse(`${shown} is not an object with keys`)
      const object = /** @type {Values} */ (value)
      const { properties = {}, values } = schema
      for (const [name, { default: usual }] of Object.entries(properties)) {
        if (object[name] === undefined) object[name] = structuredClone(usual)
        if (object[name] === undefined) refuse(`${name} is missing`)
      }
      for (const [name, below] of Object.entries(object)) {
        const wanted = values ?? (Object.hasOwn(properties, name) ? properties[name] : undefined)
        if (wanted === undefined) return refuse(`unknown key ${show(name)}`)
        if (wanted.duration) object[name] = durationAt(below, `${at}.${name}`)
        check(wanted, object[name], option, `${at}.${name}`)
      }
    }
  }
}

/** @param {unknown} value @returns {number} ms */
function readDuration(value) {
  if (value === 0) return 0
  if (typeof value === 'string') return parseDuration(value)
  const fault =
    typeof value === 'number'
      ? `has no unit; write "${value}s" or "${value}ms"`
      : 'is not a duration like "25s", "300ms" or "1h30m"'
  throw new ValueError(`${show(value)} ${fault}`)
}

/** @param {unknown} value @param {string} at place in the value of the option @returns {number} ms */
function durationAt(value, at) {
  try {
    return readDuration(value)
  } catch (error) {
    throw new ValueError(error.message, at)
  }
}

/**
 * From a file. Returns a copy with the defaults of its objects; durations in ms.
 * @param {Option} option of any type but members
 * @param {unknown} given
 * @throws {ValueError}
 */
export function readValue(option, given) {
  const { type, unsupported = {} } = option
  const oneString = option.single && typeof given === 'string'
  const value = type === 'duration' ? readDuration(given) : oneString ? [given] : structuredClone(given)
  if (typeof value === 'string' && Object.hasOwn(unsupported, value))
    throw new ValueError(`${show(value)}: ${unsupported[value]}`)
  try {
    check(option.schema, value, option)
  } catch (error) {
    // A single string has no list index.
    throw oneString ? new ValueError(error.message) : error
  }
  return value
}

/** Go's strconv.ParseBool. @type {Readonly<Record<string, boolean>>} */
const BOOLEANS = { true: true, t: true, 1: true, false: false, f: false, 0: false }

/** Invalid text is kept for the message. @type {Partial<Record<Option['type'], (text: string) => unknown>>} */
const PARSERS = {
  bool: text =>
    Object.hasOwn(BOOLEANS, text.trim().toLowerCase()) ? BOOLEANS[text.trim().toLowerCase()] : text,
  int: text => (/^-?\d+$/.test(text.trim()) ? Number(text) : text),
  duration: text => text.trim(),
  strings: text => text.split(/\s+/).filter(word => word !== ''),
  map: JSON.parse,
  transforms: JSON.parse,
}

/** From a variable or a flag, as readValue. @param {Option} option @param {string} text @throws {ValueError} */
export function readText(option, text) {
  const parse = PARSERS[option.type] ?? String
  let value
  try {
    value = parse(text)
  } catch {
    throw new ValueError(`is not a JSON ${option.type === 'map' ? 'object' : 'array'}`)
  }
  return readValue(option, value)
}
