import { open, rename, stat } from 'node:fs/promises'
import { CSV_HEADER, csvRow } from './csv-columns.js'

/** @import { FileHandle } from 'node:fs/promises' */
/** @import { Snapshot } from './schema.js' */

/** Rows kept while the disk accepts none; beyond that, the oldest are dropped. */
const MAX_WAITING = 600
/** Time limit of close(), ms. */
const CLOSE_TIMEOUT = 3000

/** @typedef {{first: string, next: string}} Row as a gateway's first row in a file, and as any other row */

/** @param {unknown} error */
const reasonOf = error => {
  const { code, message } = /** @type {NodeJS.ErrnoException} */ (error)
  return code ?? message
}

/**
 * Appends a row to a file each second. `write` leads to one write(2), so a crash loses at most the last row, a power
 * failure also what the kernel had not written. Disk errors neither throw nor block: rows are kept and tried again.
 *
 * ```
 * write() -> waiting rows -> one append under way at a time -> FILE -> FILE.1 -> ... -> FILE.keep
 * ```
 */
export class CsvWriter {
  #file
  #maxBytes
  #keep
  #onError
  /** @type {Row[]} texts: snapshots of many workers need a thousand times the memory */
  #waiting = []
  /** @type {FileHandle | null} */
  #handle = null
  /** Whether the file is regular, so that it has a size and can be renamed; unlike /dev/stdout. */
  #regular = true
  #inode = 0
  #bytes = 0
  #rotations = 0
  /** @type {string | null} */
  #error = null
  /** The next row is this gateway's first in the file. */
  #first = true
  /** @type {Promise<void> | null} */
  #running = null
  #closed = false

  /**
   * @param {object} options
   * @param {string} options.file its folder must exist
   * @param {number} [options.maxBytes] rotated before it exceeds this; 0: never
   * @param {number} [options.keep] number of rotated files
   * @param {(text: string) => void} [options.onError] called once per outage, not per row
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

  /** Writes the remaining rows and closes the file. */
  async close() {
    this.#closed = true
    /** @type {NodeJS.Timeout | undefined} */
    let timer
    const late = new Promise(resolve => {
      timer = setTimeout(resolve, CLOSE_TIMEOUT)
    })
    await Promise.race([this.#finish(), late])
    clearTimeout(timer)
  }

  async #finish() {
    await this.#running
    // Rows that arrived meanwhile.
    if (this.#waiting.length > 0 && this.#error === null) await this.#run()
    await this.#closeFile()
  }

  /** One attempt to write all rows. */
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

  /** @param {number} count rows */
  #format(count) {
    const rows = this.#waiting
      .slice(0, count)
      .map((row, at) => (this.#first && at === 0 ? row.first : row.next))
    return Buffer.from((this.#bytes === 0 ? CSV_HEADER : '') + rows.join(''))
  }

  /** @param {Buffer} rows */
  #isFull(rows) {
    // Never rotate a file that has only a header.
    const something = this.#bytes > CSV_HEADER.length
    return this.#regular && this.#maxBytes > 0 && something && this.#bytes + rows.length > this.#maxBytes
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

  /** @returns {Promise<FileHandle>} of an empty file, or one with this header that ends with a line feed */
  async #open() {
    let handle = await open(this.#file, 'a+')
    try {
      let stats = await handle.stat()
      this.#regular = stats.isFile()
      if (this.#regular && stats.size > 0) {
        const head = await headOf(handle)
        // An incomplete header (the disk was full): start the file again.
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
      // End an incomplete row (crash, full disk) before the next one.
      if (this.#bytes > 0 && !(await endsLine(handle, this.#bytes))) {
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

  /** Renames FILE.1 to FILE.2 and FILE to FILE.1, overwriting the last. A file with another header is always kept. */
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

/** @param {FileHandle} handle */
async function headOf(handle) {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(CSV_HEADER.length), 0, CSV_HEADER.length, 0)
  return buffer.toString('latin1', 0, bytesRead)
}

/** @param {FileHandle} handle @param {number} size */
async function endsLine(handle, size) {
  const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, size - 1)
  return buffer[0] === 10
}
