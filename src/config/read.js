// Reads the value of an option from a file, a variable or a flag: parses durations (Go's form) and values given as text,
// and checks type and range with the schema in the option's row.

import { formatDuration, parseDuration, show } from './values.js'

/** @import { Option, Schema } from './options/make.js' */

/** An invalid value. The message follows the key: `http_server.port: "x" is not a whole number`. */
class ValueError extends Error {
  /** @param {string} message @param {string} [at] place in the value, appended to the key: `[2].to.code` */
  constructor(message, at = '') {
    super(message)
    this.at = at
  }
}

/**
 * Checks a value, and gives the objects in it their defaults.
 * @param {Schema} schema
 * @param {any} value
 * @param {Option} option for the message
 * @param {string} [at] place in the value
 * @throws {ValueError}
 */
function check(schema, value, option, at = '') {
  const { type, enum: allowed, minimum = -Infinity, maximum = Infinity, minLength = 0, minItems = 0 } = schema
  const shown = option.secret && value !== null ? 'the value' : show(value)
  /** @param {boolean} wrong @param {string} message */
  const refuse = (wrong, message) => {
    if (wrong) throw new ValueError(message, at)
  }
  switch (type) {
    case 'boolean':
      return refuse(typeof value !== 'boolean', `${shown} is not true or false`)
    case 'integer': {
      const digits = typeof value === 'string' && /^-?\d+$/.test(value)
      const fault = digits ? 'text, not a number; write it without quotes' : 'not a whole number'
      refuse(!Number.isInteger(value), `${shown} is ${fault}`)
      const format = option.type === 'duration' ? formatDuration : String
      const range = `${format(value)} is out of range, it must be at`
      refuse(value < minimum, `${range} least ${format(minimum)}`)
      return refuse(value > maximum, `${range} most ${format(maximum)}`)
    }
    case 'string': {
      const fault = typeof value === 'number' ? 'a number, not text; write it in quotes' : 'not text'
      refuse(typeof value !== 'string', `${shown} is ${fault}`)
      refuse(value.length < minLength, 'is empty')
      refuse(allowed?.includes(value) === false, `${shown} is not one of ${allowed?.map(show).join(', ')}`)
      return refuse(
        schema.pattern !== undefined && !new RegExp(schema.pattern, 'u').test(value),
        `${shown} is not a path like "/api" (a leading slash, none at the end)`,
      )
    }
    case 'array': {
      const hint = typeof value === 'string' ? `; write [${shown}]` : ''
      const fault = option.single && at === '' ? 'is not text or a list' : `is not a list${hint}`
      refuse(!Array.isArray(value), `${shown} ${fault}`)
      refuse(value.length < minItems, 'the list is empty')
      const { items } = schema
      if (items !== undefined)
        for (const [i, entry] of value.entries()) check(items, entry, option, `${at}[${i}]`)
      return
    }
    case 'object': {
      refuse(
        typeof value !== 'object' || value === null || Array.isArray(value),
        `${shown} is not an object with keys`,
      )
      const { properties = {}, values } = schema
      for (const [name, { default: given }] of Object.entries(properties)) {
        if (value[name] === undefined) value[name] = structuredClone(given)
        refuse(value[name] === undefined, `${name} is missing`)
      }
      for (const [name, below] of Object.entries(value)) {
        const wanted = values ?? (Object.hasOwn(properties, name) ? properties[name] : undefined)
        if (wanted === undefined) refuse(true, `unknown key ${show(name)}`)
        else check(wanted, below, option, `${at}.${name}`)
      }
    }
  }
}

/** @param {unknown} value @returns {any} ms */
function readDuration(value) {
  if (value === 0) return 0
  if (typeof value === 'string') return parseDuration(value)
  const shown = show(value)
  const fault =
    typeof value === 'number'
      ? `has no unit; write "${value}s" or "${value}ms"`
      : 'is not a duration like "25s", "300ms" or "1h30m"'
  throw new ValueError(`${shown} ${fault}`)
}

/**
 * The value of an option from a file.
 * @param {Option} option any type but members @param {unknown} given
 * @returns {any} a copy, with the defaults of its objects; durations in ms
 * @throws {ValueError}
 */
export function readValue(option, given) {
  const oneString = option.single && typeof given === 'string'
  const value =
    option.type === 'duration' ? readDuration(given) : oneString ? [given] : structuredClone(given)
  const { unsupported = {} } = option
  if (typeof value === 'string' && Object.hasOwn(unsupported, value)) {
    throw new ValueError(`${show(value)}: ${unsupported[value]}`)
  }
  try {
    check(option.schema, value, option)
  } catch (error) {
    // A single text has no place in a list.
    throw oneString ? new ValueError(error.message) : error
  }
  return value
}

/** The words of Go's strconv.ParseBool. @type {Readonly<Record<string, boolean>>} */
const BOOLEANS = { true: true, t: true, 1: true, false: false, f: false, 0: false }

/**
 * The value of an option from a variable or a flag: text.
 * @param {Option} option any type but members @param {string} text
 * @returns {any} as readValue
 * @throws {ValueError}
 */
export function readText(option, text) {
  const trimmed = text.trim()
  switch (option.type) {
    case 'bool': {
      const word = trimmed.toLowerCase()
      return readValue(option, Object.hasOwn(BOOLEANS, word) ? BOOLEANS[word] : text)
    }
    case 'int':
      return readValue(option, /^-?\d+$/.test(trimmed) ? Number(trimmed) : text)
    case 'duration':
      return readValue(option, trimmed)
    case 'strings':
      return readValue(option, trimmed === '' ? [] : trimmed.split(/\s+/))
    case 'map':
    case 'transforms':
      try {
        return readValue(option, JSON.parse(text))
      } catch (error) {
        throw error instanceof SyntaxError
          ? new ValueError(`is not a JSON ${option.type === 'map' ? 'object' : 'array'}`)
          : error
      }
    default:
      return readValue(option, text)
  }
}
