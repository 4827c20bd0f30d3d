/** @import { Publication } from './contract.js' */

/** Bytes of a publication in a reply, excluding payload, info and tags. */
export const OVERHEAD = 48

/** @param {Publication[]} [publications] @returns {number} their approximate bytes in a reply, without tags */
export function bytesOf(publications = []) {
  let bytes = 0
  for (const { data, info } of publications) bytes += data.length + info.length + OVERHEAD
  return bytes
}
