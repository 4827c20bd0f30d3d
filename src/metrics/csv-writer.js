import { open, rename, stat } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { CSV_HEADER, csvRow } from './csv-columns.js'

/** @import { FileHandle } from 'node:fs/promises' */
/** @import { Snapshot } from './schema.js' */

/** Rows kept while the disk fails; the oldest are dropped first. */
const MAX_WAITING = 600
/** ms */
const CLOSE_TIMEOUT = 3000

/** @typedef {{first: string, next: string}} Row with and without facts */

/** @param {NodeJS.ErrnoException} error */
const reasonOf = ({ code, message }) => code ?? message

/**
 * Appends a row each second with one write(2): a crash loses at most the last row, a power failure also data the
 * kernel had not written. Disk errors neither throw nor block: rows are kept and retried.
 *
 * ```
 * write() -> waiting rows -> one append at a time -> FILE -> FILE.1 -> ... -> FILE.keep
 * ```
 */
export class CsvWriter {
  #file
  #maxBytes
  #keep
  #onError
  /** Text: snapshots of many workers need a thousand times the memory. @type {Row[]} */
  #waiting = []
  /** @type {FileHandle | null} */
  #handle = null
  /** Unlike /dev/stdout. */
  #regular = true
  #inode = 0
  #bytes = 0
  #rotations = 0
  /** @type {string | null} */
  #error = null
  #first = true
  /** @type {Promise<void> | null} */
  #running = null
  #closed = false

  /**
   * @param {object} options
   * @param {string} options.file in an existing folder
   * @param {number} [options.maxBytes] of a file; 0: no rotation
   * @param {number} [options.keep] rotated files
   * @param {(text: string) => void} [options.onError] once per outage
   */
  constructor({ file, maxBytes = 0, keep = 5, onError = () => {} }) {
    this.#file = file
    this.#maxBytes = maxBytes
    this.#keep = keep
    this.#onError = onError
  }

  /** @returns {NonNullable<Snapshot['csv']>} */
  get status() {
    return {
      file: this.#file,
      bytes: this.#bytes,
      max_bytes: this.#maxBytes,
      rotations: this.#rotations,
      error: this.#error,
    }
  }

  /** @param {Snapshot} snapshot */
  write(snapshot) {
    if (this.#closed) return
    this.#waiting.push({ first: csvRow(snapshot, true), next: csvRow(snapshot, false) })
    if (this.#waiting.length > MAX_WAITING) this.#waiting.shift()
    this.#running ??= this.#run()
  }

  async close() {
    this.#closed = true
    await Promise.race([this.#finish(), sleep(CLOSE_TIMEOUT, undefined, { ref: false })])
  }

  async #finish() {
    await this.#running
    if (this.#waiting.length > 0 && this.#error === null) await this.#run()
    await this.#closeFile()
  }

  async #run() {
    try {
      await this.#append()
      this.#error = null
    } catch (error) {
      await this.#closeFile()
      const before = this.#error
      this.#error = reasonOf(error)
      if (before === null) this.#onError(`cannot write ${this.#file}: ${this.#error}`)
    } finally {
      this.#running = null
    }
  }

  async #append() {
    await this.#checkFile()
    while (this.#waiting.length > 0) {
      this.#handle ??= await this.#open()
      const count = this.#waiting.length
      let rows = this.#format(count)
      if (this.#isFull(rows)) {
        await this.#rotate()
        this.#handle = await this.#open()
        rows = this.#format(count)
      }
      const { bytesWritten } = await this.#handle.write(rows)
      this.#bytes += bytesWritten
      if (bytesWritten < rows.length) throw Object.assign(new Error('the disk is full'), { code: 'ENOSPC' })
      this.#waiting.splice(0, count)
      this.#first = false
    }
  }

  /** @param {number} count */
  #format(count) {
    const rows = this.#waiting
      .slice(0, count)
      .map(({ first, next }, i) => (this.#first && i === 0 ? first : next))
    return Buffer.from((this.#bytes === 0 ? CSV_HEADER : '') + rows.join(''))
  }

  /** @param {Buffer} rows */
  #isFull(rows) {
    // Never rotates a bare header.
    const limit = this.#regular && this.#bytes > CSV_HEADER.length ? this.#maxBytes : 0
    return limit > 0 && this.#bytes + rows.length > limit
  }

  /** Reopens the file after it was moved or deleted. */
  async #checkFile() {
    if (this.#handle === null || !this.#regular) return
    try {
      if ((await stat(this.#file)).ino === this.#inode) return
    } catch (error) {
      if (reasonOf(error) !== 'ENOENT') throw error
    }
    await this.#closeFile()
  }

  /** Ensures an empty file, or this header and a final line feed. */
  async #open() {
    let handle = await open(this.#file, 'a+')
    try {
      let stats = await handle.stat()
      this.#regular = stats.isFile()
      if (this.#regular && stats.size > 0) {
        const head = await textAt(handle, 0, CSV_HEADER.length)
        // Start again after an incomplete header (full disk).
        if (head !== CSV_HEADER && CSV_HEADER.startsWith(head)) await handle.truncate(0)
        else if (head !== CSV_HEADER) {
          await handle.close()
          await this.#shiftFiles()
          handle = await open(this.#file, 'a+')
        }
        stats = await handle.stat()
      }
      this.#inode = stats.ino
      this.#bytes = this.#regular ? stats.size : 0
      this.#first = true
      // End an incomplete row (crash, full disk).
      if (this.#bytes > 0 && (await textAt(handle, this.#bytes - 1, 1)) !== '\n') {
        await handle.write('\n')
        this.#bytes++
      }
      return handle
    } catch (error) {
      await handle.close().catch(() => {})
      throw error
    }
  }

  async #rotate() {
    if (this.#keep === 0) {
      await this.#handle?.truncate(0)
      this.#rotations++
    }
    await this.#closeFile()
    if (this.#keep > 0) await this.#shiftFiles()
  }

  /** Overwrites the last rotated file; always keeps one with another header. */
  async #shiftFiles() {
    for (let n = Math.max(1, this.#keep); n >= 1; n--) {
      const from = n === 1 ? this.#file : `${this.#file}.${n - 1}`
      try {
        await rename(from, `${this.#file}.${n}`)
      } catch (error) {
        if (reasonOf(error) !== 'ENOENT') throw error
      }
    }
    this.#rotations++
    this.#bytes = 0
  }

  async #closeFile() {
    const handle = this.#handle
    this.#handle = null
    await handle?.close().catch(() => {})
  }
}

/** @param {FileHandle} handle @param {number} position @param {number} length bytes */
async function textAt(handle, position, length) {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, position)
  return buffer.toString('latin1', 0, bytesRead)
}
