import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

/** @import { FileHandle } from 'node:fs/promises' */
/** @import { LimitedLog } from '../../../base/log.js' */
/** @import { StateEvent } from '../contract.js' */

const HEAD = 'halley channels 1'
/** The file is rewritten when it has grown by this, and to twice its size. */
const MIN_GROWTH = 4 * 1024 * 1024
const CHUNK = 256 * 1024

/**
 * The journal of tracked channels beside `engine.memory.snapshot_file`: after a crash or a restart, the backend gets the
 * `vacated` of channels that it knows as occupied. A line is a JSON array:
 *
 *   ["c", channel, interval]                     it is occupied; `interval` of its counts, ms
 *   ["e", id, channel, type, time, interval]     an event
 *   ["d", number]                                the backend has accepted the first events
 *
 * Lines are synced before the backend gets their events. The end of a damaged file is ignored.
 */
export class StateJournal {
  #path
  #log
  /** @type {FileHandle | null} null: not open, or not writable */
  #file = null
  #text = ''
  #writing = false
  /** @type {(() => void)[]} called when all lines are written */
  #waiting = []
  #size = 0
  #limit = 0
  /** Whether there is a file of the last run. */
  #found = false
  /** @type {() => Iterable<any[]>} */
  #content = () => []

  /** @param {string} path @param {LimitedLog} log */
  constructor(path, log) {
    this.#path = path
    this.#log = log
  }

  /**
   * Reads the file of the last run; call `begin` after it.
   * @param {() => Iterable<any[]>} content records that replace all lines
   * @returns {Promise<{occupied: Map<string, number>, events: StateEvent[]}>} `occupied`: channel -> interval
   */
  async open(content) {
    this.#content = content
    /** @type {Map<string, number>} */
    const occupied = new Map()
    /** @type {StateEvent[]} */
    const events = []
    /** @type {FileHandle | undefined} */
    let file
    try {
      file = await open(this.#path, 'r')
      this.#found = true
      let lines = 0
      for await (const line of file.readLines()) {
        if (lines++ === 0 && line !== HEAD) throw new Error('it is no journal of channels')
        if (lines > 1) apply(JSON.parse(line), occupied, events)
      }
    } catch (error) {
      if (error.code !== 'ENOENT') {
        const fields = { file: this.#path, reason: error.message, channels: occupied.size }
        this.#log.warn(fields, 'the journal of channels is damaged: its rest is ignored')
      }
    } finally {
      await file?.close()
    }
    return { occupied, events }
  }

  /** Replaces the file: from here on, lines are added. Without content, the first line creates it. */
  async begin() {
    const { done } = this.#content()[Symbol.iterator]().next()
    if (done && !this.#found) return
    this.#writing = true
    await this.#rewrite()
    this.#writing = false
  }

  /** @param {any[]} record */
  add(record) {
    this.#text += `${JSON.stringify(record)}\n`
    this.#write()
  }

  /** @param {() => void} then called when all lines so far are synced, or cannot be */
  written(then) {
    if (this.#text === '' && !this.#writing) return setImmediate(then)
    this.#waiting.push(then)
    this.#write()
  }

  async #write() {
    if (this.#writing) return
    this.#writing = true
    while (this.#text !== '' || this.#waiting.length > 0) {
      const text = this.#text
      const waiting = this.#waiting
      this.#text = ''
      this.#waiting = []
      try {
        if (this.#file === null || this.#size > this.#limit) await this.#rewrite()
        else {
          await this.#file.writeFile(text)
          await this.#file.datasync()
          this.#size += text.length
        }
      } catch (error) {
        await this.#failed(error)
      }
      for (const then of waiting) then()
    }
    this.#writing = false
  }

  /** @param {Error} error */
  async #failed(error) {
    await this.#file?.close().catch(() => {})
    // The next line replaces it.
    this.#file = null
    const fields = { file: this.#path, reason: error.message }
    this.#log.error(fields, 'the journal of channels is not written: a crash may lose channel events')
  }

  async #rewrite() {
    const path = `${this.#path}.new`
    /** @type {FileHandle | null} */
    let file = null
    try {
      // Without `await` until all is encoded: lines added later follow.
      const chunks = [...encode(this.#content())]
      this.#text = ''
      await rm(path, { force: true })
      file = await open(path, 'ax', 0o600)
      this.#size = 0
      for (const chunk of chunks) {
        await file.writeFile(chunk)
        this.#size += chunk.length
      }
      await file.sync()
      await rename(path, this.#path)
      const folder = await open(dirname(path), 'r')
      await folder.sync().finally(() => folder.close())
      await this.#file?.close()
      this.#file = file
      this.#limit = 2 * this.#size + MIN_GROWTH
    } catch (error) {
      if (this.#file !== file) await file?.close().catch(() => {})
      await this.#failed(error)
    }
  }

  async close() {
    await new Promise(resolve => this.written(() => resolve(null)))
    await this.#file?.close()
    this.#file = null
  }
}

/** @param {any[]} record @param {Map<string, number>} occupied @param {StateEvent[]} events */
function apply([kind, ...fields], occupied, events) {
  if (kind === 'c') occupied.set(String(fields[0]), Number(fields[1]) || 0)
  else if (kind === 'd') events.splice(0, Number(fields[0]))
  else if (kind === 'e' && (fields[2] === 'occupied' || fields[2] === 'vacated')) {
    const [id, channel, type, time_ms, interval] = fields
    events.push({ id: String(id), channel: String(channel), type, time_ms: Number(time_ms) || 0 })
    if (type === 'occupied') occupied.set(String(channel), Number(interval) || 0)
    else occupied.delete(String(channel))
  } else throw new Error('it has an unknown record')
}

/** @param {Iterable<any[]>} records @returns {Iterable<string>} */
function* encode(records) {
  let text = `${HEAD}\n`
  for (const record of records) {
    text += `${JSON.stringify(record)}\n`
    if (text.length < CHUNK) continue
    yield text
    text = ''
  }
  yield text
}
