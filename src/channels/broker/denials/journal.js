import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { open, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { KINDS } from '../denylist.js'

/** @import { FileHandle } from 'node:fs/promises' */
/** @import { Denial } from './contract.js' */
/** @import { Denylist } from '../denylist.js' */

const HEAD = 'halley access 1\n'
const HASH = 16
/** Opening a pipe must not block. */
const READ = constants.O_RDONLY | constants.O_NONBLOCK
const CHUNK = 256 * 1024
/** Longest record, bytes: 500 changes with the longest names take about 400 KB. */
const MAX_RECORD = 16 * 1024 * 1024
/** Entries in one record of a rewritten file. */
const PER_RECORD = 500
/** The file is rewritten when it is larger than twice its rewritten size plus this, bytes. */
const SPARE = 1024 * 1024

const LF = 10

/**
 * Journal of denials: `<engine.memory.snapshot_file>.access`.
 *
 *   'halley access 1\n' | records: 16 hex digits of SHA-256 of the rest, ' ', number from 1, ' ', JSON, '\n'
 *
 * A rewritten file replaces the former one when it is synced; it has the entries in some records, then an empty one. Each
 * further record has the changes of one write, which is synced before the next one begins. So only the last record,
 * after the empty one, can be incomplete after a crash; its changes have not been acknowledged. Any other damage is an
 * error.
 */
export class Journal {
  #path
  #log
  /** @type {FileHandle | null} null: the next append rewrites the file */
  #file = null
  #inode = 0
  #number = 0
  #size = 0
  #rewrittenSize = 0

  /** @param {string} path @param {import('pino').Logger} log */
  constructor(path, log) {
    this.#path = path
    this.#log = log
  }

  /**
   * Reads the file, if there is one.
   * @param {(denial: Denial) => void} onDenial in the order of the changes
   * @returns {Promise<boolean>} whether there is one
   * @throws {Error} one-line message
   */
  async open(onDenial) {
    const file = await open(this.#path, READ).catch(error => {
      if (error.code === 'ENOENT') return null
      throw this.#fault(`cannot be read: ${error.message}`)
    })
    if (file === null) return false
    try {
      if (!(await file.stat()).isFile()) throw this.#fault('is not a regular file')
      await this.#readAll(file, onDenial)
      return true
    } catch (error) {
      throw error instanceof JournalFault ? error : this.#fault(`cannot be read: ${error.message}`)
    } finally {
      await file.close()
    }
  }

  /** @param {string} what */
  #fault(what) {
    return new JournalFault(
      `${this.#path} ${what}; it has the blocked users and revoked tokens. Restore it, or remove it to start without them`,
    )
  }

  /** @param {FileHandle} file @param {(denial: Denial) => void} onDenial */
  async #readAll(file, onDenial) {
    const chunk = Buffer.allocUnsafeSlow(CHUNK)
    let rest = Buffer.alloc(0)
    let line = 0
    let torn = false
    /** Whether the entries of the rewritten file are complete. */
    let whole = false
    for (let position = 0; ; ) {
      const { bytesRead } = await file.read(chunk, 0, CHUNK, position)
      if (bytesRead === 0) break
      position += bytesRead
      rest = Buffer.concat([rest, chunk.subarray(0, bytesRead)])
      let start = 0
      for (let end = rest.indexOf(LF); end !== -1; end = rest.indexOf(LF, start)) {
        if (torn) throw this.#fault(`is damaged in line ${line}`)
        const text = rest.toString('utf8', start, end)
        start = end + 1
        line++
        if (line === 1) {
          if (`${text}\n` !== HEAD) throw this.#fault('is not a journal of this version')
          continue
        }
        const denials = this.#record(text)
        if (denials === null) torn = true
        else if (denials.length === 0) whole = true
        else for (const denial of denials) onDenial(denial)
      }
      rest = rest.subarray(start)
      if (rest.length > MAX_RECORD) throw this.#fault(`is damaged in line ${line + 1}`)
    }
    if (torn && (!whole || rest.length > 0)) throw this.#fault(`is damaged in line ${line}`)
    if (!whole) throw this.#fault(`is damaged in line ${line + 1}`)
    if (torn || rest.length > 0)
      this.#log.warn({ file: this.#path }, 'the last change of the access journal is incomplete: ignored')
  }

  /** @param {string} text a line @returns {Denial[] | null} null: incomplete */
  #record(text) {
    const body = text.slice(HASH + 1)
    if (text.slice(0, HASH + 1) !== `${hashOf(body)} `) return null
    const space = body.indexOf(' ')
    const number = Number(body.slice(0, space))
    if (number !== this.#number + 1) throw this.#fault(`lacks the record ${this.#number + 1}`)
    this.#number = number
    /** @type {any[][]} */
    const rows = JSON.parse(body.slice(space + 1))
    return rows.map(([kind, key, channel, seq, expireAt, issuedBefore, removed]) => {
      if (!(kind in KINDS))
        throw this.#fault(`has an entry of the unknown kind ${kind}: it is of a newer version`)
      return { kind: KINDS[kind], key, channel, seq, expireAt, issuedBefore, removed: removed === 1 }
    })
  }

  /**
   * Replaces the file by one with the entries of a list. Failures are logged; the next append tries again.
   * @param {Denylist} list
   * @returns {Promise<boolean>} whether it succeeded
   */
  async rewrite(list) {
    try {
      await this.#rewrite(list)
      return true
    } catch (error) {
      await this.#failed(error)
      return false
    }
  }

  /** @param {Denylist} list */
  async #rewrite(list) {
    const path = `${this.#path}.new`
    await this.close()
    // Left by a killed run; never follows a link.
    await rm(path, { force: true })
    const file = await open(path, 'wx', 0o600)
    try {
      this.#number = 0
      let size = 0
      const write = async (/** @type {string} */ text) => {
        size += Buffer.byteLength(text)
        await file.writeFile(text)
      }
      await write(HEAD)
      /** @type {Denial[]} */
      let batch = []
      for (const denial of list.all()) {
        if (batch.push(denial) < PER_RECORD) continue
        await write(recordOf(++this.#number, batch))
        batch = []
      }
      if (batch.length > 0) await write(recordOf(++this.#number, batch))
      await write(recordOf(++this.#number, []))
      await file.sync()
      await rename(path, this.#path)
      await syncFolder(this.#path)
      this.#inode = (await file.stat()).ino
      this.#size = size
      this.#rewrittenSize = size
      this.#file = file
    } catch (error) {
      await file.close().catch(() => {})
      await rm(path, { force: true }).catch(() => {})
      throw error
    }
  }

  /**
   * Appends changes, and returns when they are on disk.
   * @param {Denial[]} denials @param {Denylist} list without them
   * @throws {Error} it is not known whether they are kept
   */
  async append(denials, list) {
    try {
      if (this.#file === null || this.#size > 2 * this.#rewrittenSize + SPARE) await this.#rewrite(list)
      const file = /** @type {FileHandle} */ (/** @type {unknown} */ (this.#file))
      // Two gateways with one file would lose changes.
      if ((await stat(this.#path)).ino !== this.#inode) throw new Error('another gateway uses the file')
      const text = recordOf(++this.#number, denials)
      await file.writeFile(text)
      await file.sync()
      this.#size += Buffer.byteLength(text)
    } catch (error) {
      await this.#failed(error)
      throw error
    }
  }

  /** After a failed write or sync, the content is unknown: the next append rewrites the file. @param {Error} error */
  async #failed(error) {
    this.#log.error(
      { file: this.#path, reason: error.message },
      'access journal not written: calls that block users or revoke tokens fail',
    )
    await this.close()
  }

  async close() {
    const file = this.#file
    this.#file = null
    await file?.close().catch(() => {})
  }
}

class JournalFault extends Error {}

/** @param {string} text */
const hashOf = text => createHash('sha256').update(text).digest('hex').slice(0, HASH)

/** @param {number} number @param {Denial[]} denials @returns {string} a line */
function recordOf(number, denials) {
  const rows = denials.map(({ kind, key, channel, seq, expireAt, issuedBefore, removed }) => [
    KINDS.indexOf(kind),
    ...[key, channel, seq, expireAt, issuedBefore, removed ? 1 : 0],
  ])
  const body = `${number} ${JSON.stringify(rows)}`
  return `${hashOf(body)} ${body}\n`
}

/** Makes a rename durable. @param {string} path of a file in the folder */
async function syncFolder(path) {
  const folder = await open(dirname(path), 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
