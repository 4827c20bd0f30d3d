import { deflateSync, inflateSync } from 'node:zlib'
import { parseSubject } from '../../subjects.js'
import { enlarge } from './enlarge.js'

/** @typedef {import('../../schema.js').Ledger} Ledger */
/** @typedef {import('../../schema.js').Publish} Publish */

/** Bytes that a ledger may have when it is inflated: a billion subjects are too many. */
const LONGEST = 2 ** 28

/**
 * @param {number} time Unix ms
 * @returns {number} number of a publisher that starts then, the `e` of its payloads: tenths of a second since 2025. A later start has
 *   a greater one
 */
export const startNumber = time => Math.max(1, Math.floor((time - Date.UTC(2025, 0)) / 100)) >>> 0

/** What one publisher has published since it started: the last sequence of each subject of its part. */
export class Books {
  /**
   * @param {Publish} publish
   * @param {number} time of its start, Unix ms
   */
  constructor({ channels, part, parts }, time) {
    this.channels = channels
    this.part = part
    this.parts = parts
    this.start = startNumber(time)
    this.subject = parseSubject(channels)
    this.sequences = new Uint32Array(0)
  }

  /** @param {number} total connections: with them, subjects of their own may have come */
  grow(total) {
    const subjects = this.subject.span || this.subject.count(total)
    const size = Math.ceil((subjects - this.part) / this.parts)
    if (size > this.sequences.length) this.sequences = enlarge(this.sequences, size)
  }

  /** @param {number} at place in `sequences` @returns {string} channel */
  name(at) {
    return this.subject.nameOf(this.part + at * this.parts)
  }

  /** @returns {Ledger} */
  toLedger() {
    const { channels, part, parts, start, sequences } = this
    const bytes = Buffer.from(sequences.buffer)
    return { channels, part, parts, start, sequences: deflateSync(bytes).toString('base64') }
  }
}

/**
 * @param {Ledger} ledger
 * @returns {(name: string) => number} last sequence of a channel; 0: nothing was published there, or it is not in this ledger
 * @throws {Error} when it cannot be read
 */
export function readLedger({ channels, part, parts, sequences }) {
  const subject = parseSubject(channels)
  const bytes = inflateSync(Buffer.from(sequences, 'base64'), { maxOutputLength: LONGEST })
  const last = new Uint32Array(Uint8Array.from(bytes).buffer)
  return name => {
    const at = (subject.indexOf(name) - part) / parts
    return last[at] ?? 0
  }
}
