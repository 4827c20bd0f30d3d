// Entries as text, without Publication objects: for large states, workers only pass it on.

import { entryText } from '../entry-json.js'
import { Flag } from './frames.js'

/** @import { MapEntry } from './map-entries.js' */

const scratch = new Float64Array(1)
const scratchBytes = new Uint8Array(scratch.buffer)
const scratchInteger = new BigUint64Array(scratch.buffer)

/** Copies eight bytes to `scratch`. @param {string} body @param {number} at */
function load(body, at) {
  for (let i = 0; i < 8; i++) scratchBytes[i] = body.charCodeAt(at + i)
}

/** @param {string} body @param {number} at @returns {number} */
const u32At = (body, at) =>
  (body.charCodeAt(at) |
    (body.charCodeAt(at + 1) << 8) |
    (body.charCodeAt(at + 2) << 16) |
    (body.charCodeAt(at + 3) << 24)) >>>
  0

/** @param {string} body @param {number} at @returns {number} end of the text at this position */
export const textEnd = (body, at) => at + 4 + u32At(body, at)

/** @param {MapEntry<any>} entry @returns {string} byte string */
function textOf({ flags, body, key, offset }) {
  let at = textEnd(body, 0)
  const data = body.slice(4, at)
  const field = () => {
    const from = at + 4
    at = textEnd(body, at)
    return body.slice(from, at)
  }
  const info = flags & Flag.INFO ? field() : ''
  const tags = flags & Flag.TAGS ? field() : ''
  let version = 0n
  if (flags & Flag.VERSION) {
    load(body, at)
    version = scratchInteger[0]
    at += 8
  }
  // After the kind.
  load(body, at + 1)
  return entryText(data, info, offset, tags, key, version, scratch[0])
}

/** @param {MapEntry<any>[]} entries @returns {Buffer | null} a JSON list; null: none, or not all are JSON */
export function listText(entries) {
  if (entries.length === 0) return null
  let text = '['
  for (const entry of entries) {
    if (entry.flags & Flag.NOT_JSON) return null
    text += text.length === 1 ? textOf(entry) : `,${textOf(entry)}`
  }
  return Buffer.from(`${text}]`, 'latin1')
}
