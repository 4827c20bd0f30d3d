import { constants } from 'node:fs'
import { open, stat } from 'node:fs/promises'

/** @import { FileHandle } from 'node:fs/promises' */
/** @import { Destination } from './sink.js' */

/** Time between two looks whether the file was moved away, ms. */
const MOVED_MS = 1000
const BATCH_SIZE = 5000
const LINE_FEED = 0x0a

const { O_APPEND, O_CREAT, O_NOCTTY, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants
/** A pipe that nobody reads must not hold a thread. */
const FLAGS = O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY | O_NONBLOCK

/**
 * Appends records to a file, one a line, on the threads of Node.js: a slow disk does not hold the primary up. If the
 * file is moved away or removed (`logrotate`), a new one is started.
 * @implements {Destination}
 */
export class FileDestination {
  name = 'file'
  batchSize = BATCH_SIZE
  #path
  #clock
  /** @type {FileHandle | null} */
  #file = null
  /** Bytes of an unfinished batch that the file has. */
  #done = 0
  #lookedAt = 0

  /** @param {string} path @param {() => number} [clock] ms, monotonic */
  constructor(path, clock = () => performance.now()) {
    this.#path = path
    this.#clock = clock
  }

  /** @type {Destination['write']} */
  async write(records) {
    await this.#follow()
    this.#file ??= await this.#open()
    const bytes = Buffer.from(`${records.join('\n')}\n`)
    while (this.#done < bytes.length) this.#done += (await this.#file.write(bytes, this.#done)).bytesWritten
    this.#done = 0
  }

  async #open() {
    const torn = await isTorn(this.#path)
    const file = await open(this.#path, FLAGS, 0o666)
    try {
      // The last record of a process that was killed may be incomplete.
      if (torn) await file.write('\n')
    } catch (error) {
      await file.close()
      throw error
    }
    return file
  }

  /** Starts a new file if the open one was moved away or removed. */
  async #follow() {
    const now = this.#clock()
    if (this.#file === null || now - this.#lookedAt < MOVED_MS) return
    this.#lookedAt = now
    const held = await this.#file.stat()
    if (!held.isFile()) return
    const found = await stat(this.#path).catch(() => null)
    if (found?.ino === held.ino && found.dev === held.dev) return
    const old = this.#file
    try {
      this.#file = await this.#open()
    } catch {
      // No right to make a file here: the moved one gets the records.
      return
    }
    await old.close()
    // The new file begins with a whole record: at worst, some are in both.
    this.#done = 0
  }

  async close() {
    await this.#file?.close()
    this.#file = null
  }
}

/** @param {string} path @returns {Promise<boolean>} whether it ends within a line */
async function isTorn(path) {
  const found = await stat(path).catch(() => null)
  if (!found?.isFile() || found.size === 0) return false
  const file = await open(path, O_RDONLY).catch(() => null)
  if (file === null) return false
  try {
    const { buffer } = await file.read(Buffer.alloc(1), 0, 1, found.size - 1)
    return buffer[0] !== LINE_FEED
  } finally {
    await file.close()
  }
}
