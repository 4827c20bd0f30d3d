// Finds members of a JSON object, or elements of an array, accepted by JSON.parse: parsing and stringifying loses big numbers, `1.0` and spacing,
// and takes time.

const QUOTE = 34
const COMMA = 44
const COLON = 58
const OPEN_BRACKET = 91
const BACKSLASH = 92
const CLOSE_BRACKET = 93
const OPEN_BRACE = 123
const CLOSE_BRACE = 125
const SPACE = 32

/** @param {any} value */
export const isObject = value => typeof value === 'object' && value !== null && !Array.isArray(value)

/** @param {string} text @param {number} at */
function skipSpace(text, at) {
  // Outside strings, only white space is <= 0x20.
  while (text.charCodeAt(at) <= SPACE) at++
  return at
}

/** @param {string} text @param {number} open index of the opening quote */
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

/** @param {string} text @param {number} at index of a value @returns {number} index after it */
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
    // At the end, charCodeAt returns NaN.
    if (at >= text.length) return at
  }
}

/** @param {string} text @param {number} from @param {number} to */
function hasEscape(text, from, to) {
  for (let at = from; at < to; at++) if (text.charCodeAt(at) === BACKSLASH) return true
  return false
}

/**
 * @param {string} text valid JSON
 * @param {string} name
 * @param {Map<string, string> | null} members receives all members instead, by decoded name
 */
function scan(text, name, members) {
  let found
  let at = skipSpace(text, 0)
  if (text.charCodeAt(at) !== OPEN_BRACE) return undefined
  at = skipSpace(text, at + 1)
  while (text.charCodeAt(at) === QUOTE) {
    const key = at + 1
    const end = closingQuote(text, at)
    const escaped = hasEscape(text, key, end)
    const matches =
      members === null &&
      (escaped
        ? JSON.parse(text.slice(at, end + 1)) === name
        : end - key === name.length && text.startsWith(name, key))
    at = end + 1
    if (text.charCodeAt(at) !== COLON) at = skipSpace(text, at)
    const value = skipSpace(text, at + 1)
    at = skipValue(text, value)
    if (matches) found = text.slice(value, at)
    members?.set(
      escaped ? JSON.parse(text.slice(key - 1, end + 1)) : text.slice(key, end),
      text.slice(value, at),
    )
    at = skipSpace(text, at)
    if (text.charCodeAt(at) !== COMMA) break
    at = skipSpace(text, at + 1)
  }
  return found
}

/**
 * @param {string} text valid JSON
 * @param {string} name decoded
 * @returns {string | undefined} original text, the last of duplicates; undefined if absent or `text` is no object
 */
export const rawMember = (text, name) => scan(text, name, null)

/** @param {string} text valid JSON @returns original texts by name */
export function rawMembers(text) {
  /** @type {Map<string, string>} */
  const members = new Map()
  scan(text, '', members)
  return members
}

/** @param {string} text valid JSON @returns original texts of the elements; [] if `text` is no array */
export function rawElements(text) {
  const elements = []
  let at = skipSpace(text, 0)
  if (text.charCodeAt(at) !== OPEN_BRACKET) return []
  at = skipSpace(text, at + 1)
  while (text.charCodeAt(at) !== CLOSE_BRACKET) {
    const end = skipValue(text, at)
    elements.push(text.slice(at, end))
    at = skipSpace(text, end)
    if (text.charCodeAt(at) === COMMA) at = skipSpace(text, at + 1)
  }
  return elements
}

/** Valid JSON has line breaks only between tokens. @param {string} raw */
export function singleLine(raw) {
  if (raw.indexOf('\n') === -1 && raw.indexOf('\r') === -1) return raw
  return raw.replace(/[\n\r]+/g, '')
}
