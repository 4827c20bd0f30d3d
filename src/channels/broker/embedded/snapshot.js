import { createHash, randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { decode, encode, FORMAT, SnapshotFault } from './snapshot-format.js'

/** @import { FileHandle } from 'node:fs/promises' */
/** @import { Store } from './store.js' */

const HASH_BYTES = 32
/** Longest first line. */
const LINE_BYTES = 128
const CHUNK = 256 * 1024

/** First line of the file: what it is, its format, the run that wrote it. */
const LINE = /^halley (snapshot|running) (\d+) ([-\w]+)\n/

/**
 * `engine.memory.snapshot_file`: the store between two runs of a gateway.
 *
 *              start                         clean end
 *   snapshot ---------> 'halley running' ------------------> snapshot
 *                            |   start after a crash
 *                            +---------------------> 'halley running', a new epoch
 *
 * A snapshot is taken over once: it is replaced before the first publication of the run that has read it, because its
 * offsets would be too old later, under the same epochs. Whatever is not taken over is replaced, too. Each replacement
 * is atomic and on disk when it is used: a new file, synced, renamed over the old one.
 */
export class Snapshot {
  #path
  #maxBytes
  #log
  /** Names this run: another gateway with the same file must not lose its own. */
  #token = randomUUID()

  /**
   * @param {string} path @param {number} maxBytes limit of the file @param {import('pino').Logger} log
   */
  constructor(path, maxBytes, log) {
    this.#path = path
    this.#maxBytes = maxBytes
    this.#log = log
  }

  get #newPath() {
    return `${this.#path}.new`
  }

  /**
   * Reads the snapshot of the last run, and replaces it. One log line says what was found.
   * @param {() => Store<any>} createStore
   * @returns {Promise<Store<any> | null>} null: nothing was taken over
   * @throws {Error} if the file can neither be replaced nor removed
   */
  async take(createStore) {
    const file = this.#path
    let store = null
    let counts = null
    let reason = ''
    try {
      store = createStore()
      counts = await this.#read(store)
    } catch (error) {
      store = null
      reason = error instanceof SnapshotFault ? `the file ${error.message}` : error.message
      if (error.code === 'ENOENT') reason = NO_FILE
    }
    await this.#claim()
    if (store === null) {
      const level = reason === NO_FILE ? 'info' : 'warn'
      this.#log[level]({ file, reason }, 'no snapshot taken over: channels begin a new epoch')
    } else this.#log.info({ file, ...counts }, 'snapshot taken over')
    return store
  }

  /** @param {Store<any>} store empty */
  async #read(store) {
    // A pipe must not block the start.
    const file = await open(this.#path, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      const stat = await file.stat()
      if (!stat.isFile()) throw new SnapshotFault('is not a regular file')
      const line = await firstLine(file)
      if (line === null) throw new SnapshotFault('is not a snapshot, or damaged')
      if (line.type === 'running') throw new SnapshotFault('has none: the last run did not end cleanly')
      if (line.format !== FORMAT)
        throw new SnapshotFault(`has format ${line.format}, this release reads format ${FORMAT}`)
      if (stat.size > this.#maxBytes)
        throw new SnapshotFault(
          `has ${stat.size} bytes, more than engine.memory.max_bytes (${this.#maxBytes})`,
        )
      const end = stat.size - HASH_BYTES
      await checkHash(file, end)
      return await decode(file, line.length, end, store)
    } finally {
      await file.close()
    }
  }

  /** Replaces the file by the mark of this run. */
  async #claim() {
    try {
      await this.#replace(async file => {
        await file.write(`halley running ${FORMAT} ${this.#token}\n`)
      })
    } catch (error) {
      // A full disk still lets files be removed.
      try {
        await rm(this.#path, { force: true })
        await syncFolder(this.#path)
      } catch (failure) {
        const { message } = error
        if (failure.code !== 'ENOENT')
          throw new Error(`engine.memory.snapshot_file: cannot replace or remove ${this.#path}: ${message}`)
      }
      this.#log.warn({ file: this.#path, reason: error.message }, 'snapshot file cannot be written now')
    }
  }

  /**
   * Writes a snapshot. One log line says whether it was written.
   * @param {Store<any>} store without subscribers
   */
  async write(store) {
    const path = this.#path
    const counts = { streams: 0, publications: 0, results: 0 }
    const startedAt = performance.now()
    try {
      await this.#checkOwner()
      let bytes = 0
      await this.#replace(async file => {
        const hash = createHash('sha256')
        const add = async (/** @type {Buffer} */ chunk) => {
          hash.update(chunk)
          bytes += chunk.length
          await writeAll(file, chunk)
        }
        await add(Buffer.from(`halley snapshot ${FORMAT} ${this.#token}\n`))
        for (const chunk of encode(store, counts)) await add(chunk)
        await writeAll(file, hash.digest())
      })
      const duration_ms = Math.round(performance.now() - startedAt)
      this.#log.info({ file: path, bytes: bytes + HASH_BYTES, ...counts, duration_ms }, 'snapshot written')
    } catch (error) {
      this.#log.error(
        { file: path, reason: error.message },
        'snapshot not written: channels will begin a new epoch',
      )
    }
  }

  /** @throws {Error} if another run has taken the file over */
  async #checkOwner() {
    try {
      const file = await open(this.#path, constants.O_RDONLY | constants.O_NONBLOCK)
      try {
        if ((await firstLine(file))?.token !== this.#token) throw new Error('another gateway uses the file')
      } finally {
        await file.close()
      }
    } catch (error) {
      if (error.code !== 'ENOENT') throw error
    }
  }

  /** @param {(file: FileHandle) => Promise<void>} write */
  async #replace(write) {
    const path = this.#newPath
    // What a killed run has left; never follow a link that lies there.
    await rm(path, { force: true })
    try {
      const file = await open(path, 'wx', 0o600)
      try {
        await write(file)
        await file.sync()
      } finally {
        await file.close()
      }
      await rename(path, this.#path)
      await syncFolder(path)
    } catch (error) {
      await rm(path, { force: true }).catch(() => {})
      throw error
    }
  }
}

const NO_FILE = 'there is no file: first start, or it was removed'

/** @param {FileHandle} file */
async function firstLine(file) {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(LINE_BYTES), 0, LINE_BYTES, 0)
  const found = LINE.exec(buffer.toString('latin1', 0, bytesRead))
  if (found === null) return null
  const [{ length }, type, format, token] = found
  return { length, type, format: Number(format), token }
}

/** @param {FileHandle} file @param {number} end of the hashed bytes; the hash follows @throws {SnapshotFault} */
async function checkHash(file, end) {
  const hash = createHash('sha256')
  const buffer = Buffer.allocUnsafeSlow(CHUNK)
  for (let at = 0; at < end; ) {
    const { bytesRead } = await file.read(buffer, 0, Math.min(CHUNK, end - at), at)
    if (bytesRead === 0) break
    hash.update(buffer.subarray(0, bytesRead))
    at += bytesRead
  }
  const { bytesRead } = await file.read(buffer, 0, HASH_BYTES, Math.max(0, end))
  if (!buffer.subarray(0, bytesRead).equals(hash.digest()))
    throw new SnapshotFault('is damaged or truncated: its checksum is wrong')
}

/** @param {FileHandle} file @param {Buffer} bytes */
async function writeAll(file, bytes) {
  for (let at = 0; at < bytes.length; at += (await file.write(bytes, at)).bytesWritten);
}

/** Makes a rename or a removal durable. @param {string} path of a file in the folder */
async function syncFolder(path) {
  const folder = await open(dirname(path), 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
