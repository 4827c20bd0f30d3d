// From what stands in a file, a variable or a flag to the value an option holds. Faults are thrown as Errors whose
// message follows the name of the key: `http_server.port: "x" is not a whole number`.

/** @typedef {import('./options/make.js').Option} Option */

/** ms. Go's units; what is below a millisecond has no use here but is read all the same. */
const UNITS = new Map([
  ['ns', 1e-6],
  ['us', 1e-3],
  ['µs', 1e-3],
  ['μs', 1e-3],
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
])

const TERM = '(\\d+\\.?\\d*|\\.\\d+)(ns|us|µs|μs|ms|s|m|h)'
const DURATION = new RegExp(`^(${TERM})+$`)
const TERMS = new RegExp(TERM, 'g')

/**
 * A value as it may stand in a message.
 * @param {unknown} value
 */
export function show(value) {
  if (Array.isArray(value)) return 'a list'
  if (value !== null && typeof value === 'object') return 'an object'
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 60 ? `${text.slice(0, 57)}...` : text
}

/**
 * @param {string} text Go's form: `25s`, `300ms`, `1h30m`; or `0`
 * @returns {number} ms
 */
export function parseDuration(text) {
  if (text === '0') return 0
  if (/^-/.test(text)) throw new Error(`${show(text)} is negative`)
  if (!DURATION.test(text)) {
    const hint = /^\d+(\.\d+)?$/.test(text)
      ? `has no unit; write "${text}s" or "${text}ms"`
      : 'is not a duration like "25s", "300ms" or "1h30m"'
    throw new Error(`${show(text)} ${hint}`)
  }
  let ms = 0
  for (const [, amount, unit] of text.matchAll(TERMS))
    ms += Number(amount) * /** @type {number} */ (UNITS.get(unit))
  // Takes away what binary fractions add: 0.3s is 300 ms.
  ms = Math.round(ms * 1e6) / 1e6
  if (!Number.isInteger(ms)) throw new Error(`${show(text)} is not a whole number of milliseconds`)
  return ms
}

/** @param {number} ms */
export function formatDuration(ms) {
  if (ms === 0 || ms % 1000 !== 0) return `${ms}ms`
  if (ms % 3_600_000 === 0) return `${ms / 3_600_000}h`
  return ms % 60_000 === 0 ? `${ms / 60_000}m` : `${ms / 1000}s`
}

/**
 * @param {Option} option
 * @param {number} value
 * @param {(n: number) => string | number} format
 */
function checkRange(option, value, format) {
  const { min = 0, max = Number.MAX_SAFE_INTEGER } = option
  if (value >= min && value <= max) return value
  const bounds = value < min ? `at least ${format(min)}` : `at most ${format(max)}`
  throw new Error(`${format(value)} is out of range, it must be ${bounds}`)
}

/**
 * @param {Option} option
 * @param {string} value
 */
function checkString(option, value) {
  if (option.later !== undefined && Object.hasOwn(option.later, value)) {
    throw new Error(`${show(value)}: ${option.later[value]}`)
  }
  if (option.values !== undefined && !option.values.includes(value)) {
    throw new Error(`${show(value)} is not one of ${option.values.map(show).join(', ')}`)
  }
  if (option.prefix && !/^\/([^\s?#*/]+(\/[^\s?#*/]+)*)?$/.test(value)) {
    throw new Error(`${show(value)} is not a path like "/api" (a leading slash, none at the end)`)
  }
  return value
}

/** @param {string} text */
function parseJson(text) {
  try {
    return JSON.parse(text)
  } catch {
    throw new Error('is not a JSON array')
  }
}

/** @param {unknown} value */
const isObject = value => value !== null && typeof value === 'object' && !Array.isArray(value)

/**
 * @param {Option} option
 * @param {unknown} value
 * @returns {{code: number, to: Record<string, any>}[]}
 */
function readTransforms(option, value) {
  if (!Array.isArray(value)) throw new Error(`${show(value)} is not a list of {"code", "to"}`)
  return value.map(entry => {
    if (!isObject(entry) || !Number.isInteger(entry.code) || !isObject(entry.to)) {
      throw new Error('an entry of the list is not {"code": a number, "to": an object}')
    }
    const to = /** @type {Required<Option>['to']} */ (option.to)
    for (const key of [...Object.keys(entry), ...Object.keys(entry.to)]) {
      if (!Object.hasOwn(to, key) && key !== 'code' && key !== 'to')
        throw new Error(`an entry of the list has the unknown key ${show(key)}`)
    }
    const read = Object.entries(to).map(([name, field]) => {
      const given = entry.to[name] ?? field.default
      const label = `to.${name} of code ${entry.code}`
      if (given === undefined) throw new Error(`${label} is missing`)
      const row = { ...field, path: name, default: field.default, doc: '' }
      try {
        return [name, readValue(row, given)]
      } catch (error) {
        throw new Error(`${label}: ${error.message}`)
      }
    })
    return { code: entry.code, to: Object.fromEntries(read) }
  })
}

/**
 * @param {Option} option
 * @param {unknown} value
 * @param {string} shown the value in a message
 * @returns {string[]}
 */
function readStrings(option, value, shown) {
  if (typeof value === 'string') {
    if (option.single) return readStrings(option, [value], shown)
    throw new Error(`${shown} is not a list; write [${shown}]`)
  }
  if (!Array.isArray(value))
    throw new Error(`${shown} is not ${option.single ? 'text or ' : ''}a list of strings`)
  if (option.single && value.length === 0) throw new Error('the list is empty')
  for (const item of value) {
    if (typeof item !== 'string') throw new Error(`${show(item)} in the list is not a string`)
    if (item === '')
      throw new Error(value.length === 1 && option.single ? 'is empty' : 'an entry of the list is empty')
    checkString(option, item)
  }
  return [...value]
}

/**
 * The value of an option from a file.
 * @param {Option} option any type but namespaces
 * @param {unknown} value
 * @returns {any} durations in ms
 * @throws {Error}
 */
export function readValue(option, value) {
  const shown = option.secret && value !== null ? 'the value' : show(value)
  switch (option.type) {
    case 'bool':
      if (typeof value !== 'boolean') throw new Error(`${shown} is not true or false`)
      return value
    case 'int':
      if (typeof value === 'string' && /^-?\d+$/.test(value)) {
        throw new Error(`${shown} is text, not a number; write it without quotes`)
      }
      if (typeof value !== 'number' || !Number.isInteger(value))
        throw new Error(`${shown} is not a whole number`)
      return checkRange(option, value, n => n)
    case 'duration':
      if (value === 0) return checkRange(option, 0, formatDuration)
      if (typeof value === 'number')
        throw new Error(`${shown} has no unit; write "${value}s" or "${value}ms"`)
      if (typeof value !== 'string')
        throw new Error(`${shown} is not a duration like "25s", "300ms" or "1h30m"`)
      return checkRange(option, parseDuration(value), formatDuration)
    case 'strings':
      return readStrings(option, value, shown)
    case 'transforms':
      return readTransforms(option, value)
    default:
      if (typeof value === 'number') throw new Error(`${shown} is a number, not text; write it in quotes`)
      if (typeof value !== 'string') throw new Error(`${shown} is not text`)
      return checkString(option, value)
  }
}

/**
 * The value of an option from a variable or a flag, where everything is text.
 * @param {Option} option any type but namespaces
 * @param {string} text
 * @returns {any} as readValue
 * @throws {Error}
 */
export function readText(option, text) {
  switch (option.type) {
    case 'bool': {
      const word = text.trim().toLowerCase()
      if (word === 'true' || word === 't' || word === '1') return true
      if (word === 'false' || word === 'f' || word === '0') return false
      throw new Error(`${show(text)} is not true or false`)
    }
    case 'int':
      if (!/^\s*-?\d+\s*$/.test(text)) throw new Error(`${show(text)} is not a whole number`)
      return readValue(option, Number(text))
    case 'duration':
      return readValue(option, text.trim())
    case 'strings':
      return readValue(
        option,
        text.split(/\s+/).filter(item => item !== ''),
      )
    case 'transforms':
      return readTransforms(option, parseJson(text))
    default:
      return readValue(option, text)
  }
}
