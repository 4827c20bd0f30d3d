// Labels of a connection: texts by name, from a token, a connect proxy or a connect hook (docs/access.md). They select
// connections in the server API, so an invalid map is an error, never a smaller one.

import { isObject } from '../protocol/raw-json.js'

const MAX_LABELS = 32
const MAX_KEY_BYTES = 64
const MAX_VALUE_BYTES = 256

/** @typedef {Readonly<Record<string, string>>} Labels */

/** @param {string} text @returns {string} for messages */
const show = text => JSON.stringify(text.slice(0, MAX_KEY_BYTES))

/**
 * Reads `labels`.
 * @param {any} value texts by name; undefined and null: absent
 * @returns {Labels | null | undefined} null: an empty map; undefined: absent
 * @throws {Error} one line: the map is invalid or too large
 */
export function readLabels(value) {
  if (value === undefined || value === null) return undefined
  if (!isObject(value)) throw new Error('labels is not an object')
  const entries = Object.entries(value)
  if (entries.length === 0) return null
  if (entries.length > MAX_LABELS) throw new Error(`labels has more than ${MAX_LABELS} labels`)
  for (const [name, text] of entries) {
    if (name === '' || Buffer.byteLength(name) > MAX_KEY_BYTES)
      throw new Error(`labels has the name ${show(name)}: must be 1 to ${MAX_KEY_BYTES} bytes`)
    if (typeof text !== 'string' || Buffer.byteLength(text) > MAX_VALUE_BYTES)
      throw new Error(`labels.${show(name)} is not a text of at most ${MAX_VALUE_BYTES} bytes`)
  }
  // fromEntries, not assignment: a label may be called `__proto__`.
  return Object.freeze(Object.fromEntries(entries))
}
