import { closeSync, openSync, readFileSync, readSync } from 'node:fs'
import { endianness } from 'node:os'

/** One read holds most of these files; tables are read to their end. */
const BUFFER_BYTES = 64 * 1024
const AT_NULL = 0n
const AT_PAGESZ = 6n
const USUAL_PAGE = 4096

/** Shared: no file needs it between two reads. */
const buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES)

/** A file of /proc or /sys. Keeping it open halves the cost: a read from the start makes the kernel write it anew. */
export class ProcFile {
  #fd

  /** @param {number} fd */
  constructor(fd) {
    this.#fd = fd
  }

  /** @param {string} path @returns {ProcFile | null} null if missing or not readable */
  static open(path) {
    try {
      const file = new ProcFile(openSync(path, 'r'))
      file.read()
      return file
    } catch {
      return null
    }
  }

  /** @returns {string} the whole file */
  readTable() {
    let text = ''
    for (let position = 0; ; ) {
      // The kernel returns at most a page at a time.
      const length = readSync(this.#fd, buffer, 0, BUFFER_BYTES, position)
      if (length === 0) return text
      text += buffer.toString('latin1', 0, length)
      position += length
    }
  }

  /** @param {number} [bytes] @returns {string} the first page: most of these files as a whole */
  read(bytes = BUFFER_BYTES) {
    return buffer.toString('latin1', 0, readSync(this.#fd, buffer, 0, bytes, 0))
  }

  close() {
    closeSync(this.#fd)
  }
}

/** @param {string} path @returns {string} empty if unreadable */
export function readText(path) {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

/** @returns {number} bytes of a memory page, from the auxiliary vector */
export function pageSize() {
  try {
    const vector = readFileSync('/proc/self/auxv')
    const word = (/** @type {number} */ at) =>
      endianness() === 'LE' ? vector.readBigUInt64LE(at) : vector.readBigUInt64BE(at)
    for (let at = 0; word(at) !== AT_NULL; at += 16) if (word(at) === AT_PAGESZ) return Number(word(at + 8))
  } catch {
    // Not readable, or 32 bits.
  }
  return USUAL_PAGE
}
