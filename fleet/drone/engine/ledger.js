import { deflateSync, inflateSync } from 'node:zlib'
import { parseSubject } from '../../subjects.js'

/** @typedef {import('../../schema.js').Ledger} Ledger */

/**
 * @param {number} time Unix ms
 * @returns {number} number of a publisher that starts then, the `e` of its payloads: tenths of a second since 2025. A later start has
 *   a greater one
 */
export const startNumber = time => Math.max(1, (time - 1735689600000) / 100) >>> 0

/**
 * @param {Uint32Array<ArrayBuffer>} sequences
 * @returns {string} as ledgers have them
 */
export const packSequences = sequences => deflateSync(Buffer.from(sequences.buffer)).toString('base64')

/**
 * @param {Ledger} ledger
 * @returns {(name: string) => number} last sequence of a channel; 0: nothing was published there, or it is not in this ledger
 * @throws {Error} when it cannot be read
 */
export function readLedger({ channels, part, parts, sequences }) {
  const subject = parseSubject(channels)
  const bytes = inflateSync(Buffer.from(sequences, 'base64'))
  const last = new Uint32Array(Uint8Array.from(bytes).buffer)
  return name => {
    const at = (subject.indexOf(name) - part) / parts
    return last[at] ?? 0
  }
}
