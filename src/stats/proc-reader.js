import { closeSync, openSync, readFileSync, readSync } from 'node:fs'
import { endianness } from 'node:os'

/** Enough for any of these files but that of the interfaces of a machine with hundreds of them, which is read to its end all the same. */
const BUFFER_BYTES = 64 * 1024
const AT_NULL = 0n
const AT_PAGESZ = 6n
const USUAL_PAGE = 4096

/** Files that are read again and again share it: nothing is kept between two reads. */
const buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES)

/**
 * A file of /proc or /sys that is read once a second: it stays open, and is read from its beginning, which makes the kernel write
 * it anew. Opening and closing it each time would cost as much again.
 */
export class ProcFile {
  #fd

  /** @param {number} fd */
  constructor(fd) {
    this.#fd = fd
  }

  /**
   * @param {string} path
   * @returns {ProcFile | null} null when it is not there, or not for us
   */
  static open(path) {
    try {
      const file = new ProcFile(openSync(path, 'r'))
      file.read()
      return file
    } catch {
      return null
    }
  }

  /** @returns {string} all of a table of many lines */
  readTable() {
    let text = ''
    for (let position = 0; ; ) {
      // It comes a page at a time, whatever room there is.
      const length = readSync(this.#fd, buffer, 0, BUFFER_BYTES, position)
      if (length === 0) return text
      text += buffer.toString('latin1', 0, length)
      position += length
    }
  }

  /**
   * @param {number} [bytes]
   * @returns {string} its beginning: all of what the kernel writes in one piece, which are most of these files
   */
  read(bytes = BUFFER_BYTES) {
    return buffer.toString('latin1', 0, readSync(this.#fd, buffer, 0, bytes, 0))
  }

  close() {
    closeSync(this.#fd)
  }
}

/**
 * @param {string} path
 * @returns {string} empty when it cannot be read
 */
export function readText(path) {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

/** @returns {number} bytes of a page of memory, as the kernel has told this process when it began */
export function pageSize() {
  try {
    const vector = readFileSync('/proc/self/auxv')
    const word = (/** @type {number} */ at) =>
      endianness() === 'LE' ? vector.readBigUInt64LE(at) : vector.readBigUInt64BE(at)
    for (let at = 0; word(at) !== AT_NULL; at += 16) if (word(at) === AT_PAGESZ) return Number(word(at + 8))
  } catch {
    // Not for us to read, or of another form: 32 bits.
  }
  return USUAL_PAGE
}
