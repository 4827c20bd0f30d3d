// Reads the value of an option from a file, a variable or a flag. ajv checks types and ranges with the schema in the
// option's row. This file parses durations (Go's form) and values given as text, and writes the error messages.
// Loading ajv is half of what the configuration costs at the start, so plain valid values are accepted without it.

import { createRequire } from 'node:module'
import { formatDuration, parseDuration, show } from './values.js'

/** @import { Option } from './options/make.js' */
/** @import { Ajv, ErrorObject, ValidateFunction } from 'ajv' */

const require = createRequire(import.meta.url)

/** An invalid value. The message follows the key: `http_server.port: "x" is not a whole number`. */
class ValueError extends Error {
  /** @param {string} message @param {string} [at] place in the value, appended to the key: `[2].to.code` */
  constructor(message, at = '') {
    super(message)
    this.at = at
  }
}

/** @type {Ajv | undefined} */
let ajv
/** Validators by their schema: most options share one. @type {Map<string, ValidateFunction>} */
const validators = new Map()

/** @param {Option} option @returns {ValidateFunction} */
function validatorOf({ schema }) {
  const key = JSON.stringify(schema)
  let validate = validators.get(key)
  if (validate === undefined) {
    // Loaded on first use, in the primary only: it takes 70 ms and 8 MB.
    const { Ajv } = /** @type {typeof import('ajv')} */ (require('ajv'))
    ajv ??= new Ajv({ verbose: true, useDefaults: true, meta: false, validateSchema: false, strict: false })
    validate = ajv.compile(schema)
    validators.set(key, validate)
  }
  return validate
}

/** Keywords that `isPlain` knows. */
const PLAIN = new Set(['type', 'enum', 'minimum', 'maximum', 'minLength', 'minItems', 'pattern', 'items'])

/**
 * @param {Record<string, any>} schema @param {unknown} value
 * @returns {boolean} whether the value is valid beyond doubt; false: ajv decides, and names the fault
 */
export function isPlain(schema, value) {
  if (!Object.keys(schema).every(keyword => PLAIN.has(keyword))) return false
  const { type, minimum = -Infinity, maximum = Infinity, minLength = 0, minItems = 0 } = schema
  switch (type) {
    case 'boolean':
      return typeof value === 'boolean'
    case 'integer':
      return Number.isInteger(value) && Number(value) >= minimum && Number(value) <= maximum
    case 'string':
      return (
        typeof value === 'string' &&
        // ajv counts characters, of which each has at most two units.
        value.length >= 2 * minLength - 1 &&
        (schema.enum === undefined || schema.enum.includes(value)) &&
        (schema.pattern === undefined || new RegExp(schema.pattern, 'u').test(value))
      )
    case 'array':
      return (
        Array.isArray(value) &&
        value.length >= minItems &&
        // A copy: `every` skips the holes of a sparse array.
        [...value].every(entry => schema.items === undefined || isPlain(schema.items, entry))
      )
  }
  return false
}

/**
 * @param {string} type the required type, as in JSON schema
 * @param {unknown} value
 * @param {string} shown `value` in messages
 * @returns {string} message
 */
function typeFault(type, value, shown) {
  if (type === 'boolean') return `${shown} is not true or false`
  if (type === 'object') return `${shown} is not an object with keys`
  if (type === 'array')
    return `${shown} is not a list${typeof value === 'string' ? `; write [${shown}]` : ''}`
  if (type === 'integer') {
    const digits = typeof value === 'string' && /^-?\d+$/.test(value)
    return `${shown} is ${digits ? 'text, not a number; write it without quotes' : 'not a whole number'}`
  }
  return `${shown} is ${typeof value === 'number' ? 'a number, not text; write it in quotes' : 'not text'}`
}

/** @param {ErrorObject} error @param {Option} option @returns {string} message */
function faultOf(error, option) {
  const { keyword, params, data } = error
  const shown = option.secret && data !== null ? 'the value' : show(data)
  const format = option.type === 'duration' ? formatDuration : String
  switch (keyword) {
    case 'minimum':
    case 'maximum': {
      const bound = `at ${keyword === 'minimum' ? 'least' : 'most'} ${format(params.limit)}`
      return `${format(/** @type {number} */ (data))} is out of range, it must be ${bound}`
    }
    case 'enum':
      return `${shown} is not one of ${params.allowedValues.map(show).join(', ')}`
    case 'pattern':
      return `${shown} is not a path like "/api" (a leading slash, none at the end)`
    case 'minItems':
      return 'the list is empty'
    case 'minLength':
      return 'is empty'
    case 'required':
      return `${params.missingProperty} is missing`
    case 'additionalProperties':
      return `unknown key ${show(params.additionalProperty)}`
    default:
      return option.single && !error.instancePath
        ? `${shown} is not text or a list`
        : typeFault(params.type, data, shown)
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
  if (isPlain(option.schema, value)) return value
  const validate = validatorOf(option)
  if (validate(value)) return value
  const [error] = /** @type {ErrorObject[]} */ (validate.errors)
  const at = oneString ? '' : error.instancePath.replace(/\/(\d+)/g, '[$1]').replaceAll('/', '.')
  throw new ValueError(faultOf(error, option), at)
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
