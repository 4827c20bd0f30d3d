import { Flag } from './frames.js'

/**
 * @typedef {import('../contract.js').Publication} Publication
 * @typedef {import('./records.js').FrameCursor} FrameCursor
 */

/**
 * Reads the part of a publication after the channel name.
 * @param {FrameCursor} cursor @param {number} flags @param {number} offset @param {string} epoch
 * @param {boolean} copy whether the payload must outlive the frame
 * @returns {Publication}
 */
export function readPublication(cursor, flags, offset, epoch, copy) {
  const view = cursor.view()
  return {
    data: copy ? Buffer.from(view) : view,
    offset,
    epoch,
    info: flags & Flag.INFO ? cursor.string() : '',
    tags: flags & Flag.TAGS ? JSON.parse(cursor.string()) : null,
    version: flags & Flag.VERSION ? cursor.u64() : 0n,
    json: (flags & Flag.NOT_JSON) === 0,
    delta: (flags & Flag.DELTA) !== 0,
  }
}

/** @param {FrameCursor} cursor @param {string} epoch @returns {Publication[]} with payloads of their own */
export function readPublications(cursor, epoch) {
  const publications = []
  for (let count = cursor.u32(); count > 0; count--) {
    const flags = cursor.u8()
    publications.push(readPublication(cursor, flags, cursor.f64(), epoch, true))
  }
  return publications
}
