/** Up to this many characters, a loop is faster than a runtime call. */
const SHORT_TEXT = 64
const SPACE = 32
const QUOTE = 34
const BACKSLASH = 92
const TILDE = 126

/** @param {string} text @returns {string} as JSON; fast for short ASCII */
function quote(text) {
  if (text.length > SHORT_TEXT) return JSON.stringify(text)
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code < SPACE || code > TILDE || code === QUOTE || code === BACKSLASH) return JSON.stringify(text)
  }
  return `"${text}"`
}

/**
 * An entry of a map as JSON text, as in SubscribeResult.state of the client protocol. All texts may be byte strings.
 * @param {string} data JSON, '' = none @param {string} info JSON, '' = none @param {number} offset 0 = none
 * @param {string} tags JSON, '' = none @param {string} key @param {bigint} version 0n = none
 * @param {number} time unix ms, 0 = unknown
 */
export function entryText(data, info, offset, tags, key, version, time) {
  let text = data === '' ? '{' : `{"data":${data},`
  if (info !== '') text += `"info":${info},`
  if (offset > 0) text += `"offset":${offset},`
  if (tags !== '') text += `"tags":${tags},`
  text += `"key":${quote(key)}`
  if (version > 0n) text += `,"version":${version}`
  return time > 0 ? `${text},"time":${time}}` : `${text}}`
}
