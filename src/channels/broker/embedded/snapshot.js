import { createHash, randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { decode, encode, FORMAT, SnapshotFault } from './snapshot-format.js'

/** @import { FileHandle } from 'node:fs/promises' */
/** @import { Counts } from './snapshot-format.js' */
/** @import { Store } from './store.js' */

const HASH_BYTES = 32
const LINE_BYTES = 128
/** Opening a pipe must not block. */
const READ = constants.O_RDONLY | constants.O_NONBLOCK

const LINE = /^halley (snapshot|running) (\d+) ([-\w]+)\n/

/**
 * `engine.memory.snapshot_file`: stores data between two runs of a gateway. Replacements are atomic and synced.
 *
 *              start                         clean exit
 *   snapshot ---------> 'halley running' ------------------> snapshot
 *                            |   start after a crash
 *                            +---------------------> 'halley running', a new epoch
 *
 * A snapshot is used once: it is replaced before the first publication of the next run, which makes its offsets
 * outdated for their epochs. An unusable file is also replaced.
 */
export class Snapshot {
  #path
  #maxBytes
  #log
  /** Identifies this run: another gateway may use the file. */
  #token = randomUUID()

  /** @param {string} path @param {number} maxBytes limit of the file @param {import('pino').Logger} log */
  constructor(path, maxBytes, log) {
    this.#path = path
    this.#maxBytes = maxBytes
    this.#log = log
  }

  /**
   * @param {() => Store<any>} createStore
   * @returns {Promise<Store<any> | null>} null: nothing restored
   * @throws {Error} if the file can neither be replaced nor removed
   */
  async take(createStore) {
    const file = this.#path
    const store = createStore()
    const read = await this.#read(store).catch((/** @type {NodeJS.ErrnoException} */ error) => error)
    await this.#claim()
    if (!(read instanceof Error)) {
      this.#log.info({ file, ...read }, 'snapshot restored')
      return store
    }
    const { code, message } = read
    const text = 'no snapshot restored: channels start a new epoch'
    if (code === 'ENOENT') this.#log.info({ file, reason: NO_FILE }, text)
    else
      this.#log.warn({ file, reason: read instanceof SnapshotFault ? `the file ${message}` : message }, text)
    return null
  }

  /** @param {Store<any>} store empty */
  #read(store) {
    return withFile(this.#path, READ, async file => {
      const stat = await file.stat()
      if (!stat.isFile()) throw new SnapshotFault('is not a regular file')
      const line = await firstLine(file)
      if (line === null) throw new SnapshotFault('is not a snapshot or is corrupted')
      if (line.type === 'running')
        throw new SnapshotFault('contains no snapshot: the last run did not exit cleanly')
      if (line.format !== FORMAT)
        throw new SnapshotFault(`has format ${line.format}; this version reads format ${FORMAT}`)
      const limit = this.#maxBytes
      if (stat.size > limit)
        throw new SnapshotFault(`has ${stat.size} bytes, more than engine.memory.max_bytes (${limit})`)
      const end = stat.size - HASH_BYTES
      await checkHash(file, end)
      return decode(file, line.length, end, store)
    })
  }

  /** Replaces the file with the mark of this run. */
  async #claim() {
    try {
      await this.#replace(file => file.writeFile(`halley running ${FORMAT} ${this.#token}\n`))
    } catch (error) {
      // Removal works even on a full disk.
      try {
        await rm(this.#path, { force: true })
        await syncFolder(this.#path)
      } catch (failure) {
        const { message } = error
        if (failure.code !== 'ENOENT')
          throw new Error(`engine.memory.snapshot_file: cannot replace or remove ${this.#path}: ${message}`)
      }
      this.#log.warn({ file: this.#path, reason: error.message }, 'snapshot file is not writable')
    }
  }

  /** @param {Store<any>} store without subscribers */
  async write(store) {
    const path = this.#path
    const counts = { streams: 0, publications: 0, results: 0 }
    const startedAt = performance.now()
    try {
      await this.#checkOwner()
      let bytes = 0
      await this.#replace(async file => {
        const hash = createHash('sha256')
        for (const chunk of this.#chunks(store, counts)) {
          hash.update(chunk)
          bytes += chunk.length
          await file.writeFile(chunk)
        }
        await file.writeFile(hash.digest())
      })
      const duration_ms = Math.round(performance.now() - startedAt)
      this.#log.info({ file: path, bytes: bytes + HASH_BYTES, ...counts, duration_ms }, 'snapshot written')
    } catch (error) {
      const fields = { file: path, reason: error.message }
      this.#log.error(fields, 'snapshot not written: channels will start a new epoch')
    }
  }

  /** @param {Store<any>} store @param {Counts} counts */
  *#chunks(store, counts) {
    yield Buffer.from(`halley snapshot ${FORMAT} ${this.#token}\n`)
    yield* encode(store, counts)
  }

  /** @throws {Error} if another run has claimed the file */
  async #checkOwner() {
    const line = await withFile(this.#path, READ, firstLine).catch(error => {
      if (error.code !== 'ENOENT') throw error
      return { token: this.#token }
    })
    if (line?.token !== this.#token) throw new Error('another gateway is using the file')
  }

  /** @param {(file: FileHandle) => Promise<void>} write */
  async #replace(write) {
    const path = `${this.#path}.new`
    // Left by a killed run; never follows a link.
    await rm(path, { force: true })
    try {
      await withFile(path, 'wx', async file => {
        await write(file)
        await file.sync()
      })
      await rename(path, this.#path)
      await syncFolder(path)
    } catch (error) {
      await rm(path, { force: true }).catch(() => {})
      throw error
    }
  }
}

const NO_FILE = 'the file does not exist: first start, or it was removed'

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
  const hashed = end > 0 ? file.createReadStream({ start: 0, end: end - 1, autoClose: false }) : []
  for await (const chunk of hashed) hash.update(chunk)
  const { buffer, bytesRead } = await file.read(Buffer.alloc(HASH_BYTES), 0, HASH_BYTES, Math.max(0, end))
  if (!buffer.subarray(0, bytesRead).equals(hash.digest()))
    throw new SnapshotFault('is corrupted or truncated: checksum mismatch')
}

/**
 * @template T
 * @param {string} path @param {string | number} flags @param {(file: FileHandle) => Promise<T>} work @returns {Promise<T>}
 */
async function withFile(path, flags, work) {
  const file = await open(path, flags, 0o600)
  try {
    return await work(file)
  } finally {
    await file.close()
  }
}

/** Makes a rename or removal durable. @param {string} path of a file in the folder */
const syncFolder = path => withFile(dirname(path), 'r', folder => folder.sync())
