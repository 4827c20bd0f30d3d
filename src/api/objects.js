// Cuts a text into the objects that stand in it one after another, as they were written.

import { BadBody } from './params.js'

const QUOTE = 34
const BACKSLASH = 92
const OPEN_BRACE = 123
const CLOSE_BRACE = 125
const SPACE = 32

/**
 * @param {string} text anything
 * @param {number} at index of the opening quote
 * @returns {number} index of the closing quote
 * @throws {BadBody} if there is none
 */
function closingQuote(text, at) {
  for (;;) {
    const code = text.charCodeAt(++at)
    if (code === QUOTE) return at
    if (code === BACKSLASH) at++
    else if (at >= text.length) throw new BadBody()
  }
}

/**
 * @param {string} text anything; the objects need not be well-formed within
 * @returns {{objects: string[], pure: boolean}} the outermost objects, and whether there is only white space around them
 * @throws {BadBody} if an object does not end
 */
export function cutObjects(text) {
  const objects = []
  let pure = true
  let depth = 0
  let start = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === OPEN_BRACE) {
      if (depth++ === 0) start = at
    } else if (code === CLOSE_BRACE) {
      if (--depth < 0) throw new BadBody()
      if (depth === 0) objects.push(text.slice(start, at + 1))
    } else {
      if (code === QUOTE) at = closingQuote(text, at)
      if (depth === 0 && code > SPACE) pure = false
    }
  }
  if (depth !== 0) throw new BadBody()
  return { objects, pure }
}
