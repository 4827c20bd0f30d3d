// What a controller knows of its fleet, on disk: one that was killed finds its drones again.

import { randomUUID } from 'node:crypto'
import { chmod, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { makeFolder } from '../../src/doctor/index.js'
import { defaultSettings } from '../settings.js'

/** @typedef {import('../schema.js').Handle} Handle */
/** @typedef {import('../schema.js').LaunchConfig} LaunchConfig */

/**
 * @typedef {object} DroneState
 * @property {string} id
 * @property {Handle | null} handle null: its launch is under way
 * @property {boolean} member it takes part in the shares: its launch is through
 * @property {number} capacity connections; 0: not heard of yet
 * @property {string} [listen] host:port at which it is dialled
 * @property {string} start of the drone, as it said last
 * @property {import('./merge.js').Tally} tally of this start
 * @property {number} restarts
 *
 * @typedef {object} FleetState
 * @property {1} version of this format
 * @property {string} run
 * @property {string} secret
 * @property {string} host that drones dial in
 * @property {number} port
 * @property {string} advertise host or host:port that they dial; '': as above
 * @property {string} provider
 * @property {Record<string, any>} flags of the provider
 * @property {number} began
 * @property {number} next number of the next drone
 * @property {DroneState[]} drones
 * @property {import('../schema.js').FleetSettings} settings
 * @property {number} base connections that the drones' numbers are laid out for
 * @property {number} publishFrom
 * @property {number} revision
 * @property {{from: number, to: number, began: number, ends: number} | null} ramp
 * @property {import('./merge.js').Tally} past of starts and drones that are no more
 */

/** A state that cannot be read; the message is one line. */
class StateError extends Error {}

const VERSION = 1

const REASONS = /** @type {Record<string, string>} */ ({
  ENOENT: 'no folder can be made there',
  ENOTDIR: 'part of the path is a file',
  EEXIST: 'it is a file',
  EACCES: 'this user may not write there',
  EROFS: 'it is read-only',
})

/** @param {string} dir */
export const stateFile = dir => join(dir, 'state.json')

/**
 * @param {string} dir made if it is not there; only its user may look into it then
 * @throws {Error} one line: others could put something into it
 */
export async function prepareFolder(dir) {
  try {
    await makeFolder(dir, 0o700)
    // Somebody's home or /tmp is not ours to close.
    if ((await readdir(dir)).length === 0) await chmod(dir, 0o700)
  } catch (error) {
    throw new Error(`${dir} cannot be the fleet's folder: ${REASONS[error.code] ?? error.message}`)
  }
  const { mode, uid } = await stat(dir)
  if ((mode & 0o022) !== 0 || uid !== process.getuid?.())
    throw new Error(`${dir} cannot be the fleet's folder: other users can write into it`)
}

/**
 * @param {string} dir
 * @returns {Promise<FleetState | null>} null: there is none
 * @throws {StateError}
 */
export async function readState(dir) {
  const file = stateFile(dir)
  let text
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'ENOENT') return null
    throw new StateError(`${file} cannot be read: ${error.message}`)
  }
  const damaged = (/** @type {string} */ why) =>
    new StateError(`${file} is damaged (${why}); \`halley fleet stop all\` ends its drones all the same`)
  let state
  try {
    state = JSON.parse(text)
  } catch {
    throw damaged(text.trim() === '' ? 'it is empty' : 'it is no JSON')
  }
  if (state?.version !== VERSION) throw damaged(`version ${state?.version} instead of ${VERSION}`)
  const whole =
    typeof state.run === 'string' &&
    /^[0-9a-f]{64}$/.test(state.secret) &&
    Number.isInteger(state.port) &&
    typeof state.provider === 'string' &&
    Array.isArray(state.drones) &&
    state.drones.every((/** @type {any} */ drone) => typeof drone?.id === 'string' && drone.tally) &&
    typeof state.settings === 'object' &&
    typeof state.past === 'object'
  if (!whole) throw damaged('parts of it are missing')
  state.settings = { ...defaultSettings(), ...state.settings }
  return state
}

/**
 * Writes a fleet's state: the latest one only, one write at a time, the file whole or not at all.
 */
export class Store {
  #dir
  #onFault
  /** @type {FleetState | null} waiting to be written */
  #next = null
  /** @type {Promise<void> | null} */
  #writing = null
  #failing = false

  /**
   * @param {string} dir
   * @param {(text: string) => void} onFault the disk is full, or the like; said once until a write succeeds
   */
  constructor(dir, onFault) {
    this.#dir = dir
    this.#onFault = onFault
  }

  /**
   * @param {FleetState} state not changed by the caller until this one's promise has settled, or a later one's: it is read when its turn
   *   has come
   * @returns {Promise<void>} when it is on disk, or was tried: a fleet goes on in memory
   */
  save(state) {
    this.#next = state
    this.#writing ??= this.#drain()
    return this.#writing
  }

  async #drain() {
    try {
      while (this.#next !== null) {
        const text = JSON.stringify(this.#next)
        this.#next = null
        await this.#write(text)
      }
    } finally {
      this.#writing = null
    }
  }

  /** @param {string} text */
  async #write(text) {
    const file = stateFile(this.#dir)
    const draft = `${file}.${randomUUID()}`
    try {
      const handle = await open(draft, 'wx', 0o600)
      try {
        await handle.writeFile(text)
        await handle.datasync()
      } finally {
        await handle.close()
      }
      await rename(draft, file)
      if (this.#failing) this.#onFault('the state is written again')
      this.#failing = false
    } catch (error) {
      await rm(draft, { force: true }).catch(() => {})
      if (!this.#failing)
        this.#onFault(
          `the state cannot be written (${error.message}): the fleet goes on, but a controller that starts anew will not know of it`,
        )
      this.#failing = true
    }
  }

  /** Takes the file away, when the fleet is no more. */
  async remove() {
    this.#next = null
    await this.#writing
    await rm(stateFile(this.#dir), { force: true })
  }
}
