// Finds members of a JSON object without rebuilding them: parsing and stringifying a payload loses big numbers, `1.0`
// and the spacing, and costs time. Every function here requires text that JSON.parse has accepted.

const QUOTE = 34
const COMMA = 44
const COLON = 58
const OPEN_BRACKET = 91
const BACKSLASH = 92
const CLOSE_BRACKET = 93
const OPEN_BRACE = 123
const CLOSE_BRACE = 125
const SPACE = 32

/** Whether a parsed value is a JSON object. @param {any} value */
export const isObject = value => typeof value === 'object' && value !== null && !Array.isArray(value)

/** @param {string} text @param {number} at @returns {number} index of the first non-space character from `at` */
function skipSpace(text, at) {
  // In valid JSON only white space is <= 0x20 outside of strings.
  while (text.charCodeAt(at) <= SPACE) at++
  return at
}

/** @param {string} text @param {number} open index of the opening quote @returns {number} index of the closing quote */
function closingQuote(text, open) {
  let at = open
  for (;;) {
    at = text.indexOf('"', at + 1)
    let before = at - 1
    while (text.charCodeAt(before) === BACKSLASH) before--
    // A quote after an even number of backslashes is not escaped.
    if (((at - before) & 1) === 1) return at
  }
}

/**
 * @param {string} text @param {number} at index of a value's first character
 * @returns {number} index after the value
 */
function skipValue(text, at) {
  const first = text.charCodeAt(at)
  if (first === QUOTE) return closingQuote(text, at) + 1
  if (first === OPEN_BRACE || first === OPEN_BRACKET) {
    let depth = 1
    for (;;) {
      const code = text.charCodeAt(++at)
      if (code === QUOTE) at = closingQuote(text, at)
      // '{' and '[', '}' and ']' differ in one bit, and no other character shares the rest.
      else if ((code | 32) === OPEN_BRACE) depth++
      else if ((code | 32) === CLOSE_BRACE && --depth === 0) return at + 1
    }
  }
  for (;;) {
    const code = text.charCodeAt(++at)
    if (code <= SPACE || code === COMMA || code === CLOSE_BRACE || code === CLOSE_BRACKET) return at
    // A lone number or literal ends with the text, where charCodeAt returns NaN.
    if (at >= text.length) return at
  }
}

/** @param {string} text @param {number} from @param {number} to */
function hasEscape(text, from, to) {
  for (let at = from; at < to; at++) if (text.charCodeAt(at) === BACKSLASH) return true
  return false
}

/**
 * The original text of one member of an object.
 * @param {string} text valid JSON
 * @param {string} name the member's name, decoded
 * @returns {string | undefined} undefined if it is absent, or `text` is not an object. Of duplicates the last, like
 *   JSON.parse
 */
export function rawMember(text, name) {
  let at = skipSpace(text, 0)
  if (text.charCodeAt(at) !== OPEN_BRACE) return undefined
  at = skipSpace(text, at + 1)
  let from = -1
  let to = -1
  while (text.charCodeAt(at) === QUOTE) {
    const key = at + 1
    const end = closingQuote(text, at)
    const found = hasEscape(text, key, end)
      ? JSON.parse(text.slice(at, end + 1)) === name
      : end - key === name.length && text.startsWith(name, key)
    // The colon, with or without white space around it.
    at = end + 1
    if (text.charCodeAt(at) !== COLON) at = skipSpace(text, at)
    at = skipSpace(text, at + 1)
    const value = at
    at = skipValue(text, at)
    if (found) {
      from = value
      to = at
    }
    at = skipSpace(text, at)
    if (text.charCodeAt(at) !== COMMA) break
    at = skipSpace(text, at + 1)
  }
  return from === -1 ? undefined : text.slice(from, to)
}

/**
 * The original texts of all members of an object.
 * @param {string} text valid JSON
 * @returns {Map<string, string>} decoded name -> text of the value; empty if `text` is not an object
 */
export function rawMembers(text) {
  /** @type {Map<string, string>} */
  const members = new Map()
  let at = skipSpace(text, 0)
  if (text.charCodeAt(at) !== OPEN_BRACE) return members
  at = skipSpace(text, at + 1)
  while (text.charCodeAt(at) === QUOTE) {
    const end = closingQuote(text, at)
    const name = hasEscape(text, at + 1, end) ? JSON.parse(text.slice(at, end + 1)) : text.slice(at + 1, end)
    at = skipSpace(text, end + 1)
    const value = skipSpace(text, at + 1)
    at = skipValue(text, value)
    members.set(name, text.slice(value, at))
    at = skipSpace(text, at)
    if (text.charCodeAt(at) !== COMMA) break
    at = skipSpace(text, at + 1)
  }
  return members
}

/**
 * Removes line breaks, which end a frame on some transports. Valid JSON has them only between tokens.
 * @param {string} raw valid JSON @returns {string}
 */
export function singleLine(raw) {
  if (raw.indexOf('\n') === -1 && raw.indexOf('\r') === -1) return raw
  return raw.replace(/[\n\r]+/g, '')
}
