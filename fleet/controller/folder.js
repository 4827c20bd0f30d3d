// A fleet's folder: paths, the lock against a second controller, and the state for a new controller after a
// crash.

import { randomUUID } from 'node:crypto'
import { chmod, link, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { COMMAND } from '../../src/base/version.js'
import { makeFolder } from '../../src/metrics/doctor/index.js'
import { reasonOf, replaceFile } from '../files.js'
import { handleOf, isAlive } from '../providers/processes.js'
import { defaultSettings } from '../settings.js'

/** @import { FleetSettings, FleetSnapshot, Handle } from '../schema.js' */
/** @import { Tally } from './snapshot.js' */

/** Maximum bytes of a Unix socket path, without its terminating zero. */
const LONGEST_SOCKET_PATH = 107

/** @param {string} dir @returns {string} of the controller's Unix socket */
export function socketPath(dir) {
  const path = join(dir, 'control.sock')
  if (Buffer.byteLength(path) > LONGEST_SOCKET_PATH)
    throw new Error(`${dir}: this path is too long for the controller's socket; use a shorter --dir`)
  return path
}

/** @param {string} dir */
export const logPath = dir => join(dir, 'controller.log')

const LOCK_TRIES = 20

/** @param {string} dir */
const lockFile = dir => join(dir, 'controller.lock')

/** @param {string} dir @returns {Promise<number>} process id of the live controller; 0: none */
export async function lockOwner(dir) {
  const owner = await readFile(lockFile(dir), 'utf8').catch(() => '')
  return owner !== '' && (await isAlive(owner)) ? Number.parseInt(owner, 10) : 0
}

/** @param {string} dir @returns {Promise<() => Promise<void>>} releases it @throws {Error} one line: already held */
export async function takeLock(dir) {
  const own = await handleOf(process.pid)
  const file = lockFile(dir)
  const draft = `${file}.${randomUUID()}`
  await writeFile(draft, own, { flag: 'wx', mode: 0o600 })
  try {
    for (let i = 0; i < LOCK_TRIES; i++) {
      // A link is created atomically and never replaces another.
      const taken = await link(draft, file).then(
        () => true,
        error => {
          if (error.code === 'EEXIST') return false
          throw error
        },
      )
      if (taken) {
        return async () => {
          if ((await readFile(file, 'utf8').catch(() => '')) === own) await rm(file, { force: true })
        }
      }
      const owner = await readFile(file, 'utf8').catch(() => '')
      if (owner !== '' && (await isAlive(owner)))
        throw new Error(`another controller (process ${Number.parseInt(owner, 10)}) uses ${dir}`)
      await clearLock(file, owner)
    }
    throw new Error(`${file} cannot be locked`)
  } finally {
    await rm(draft, { force: true })
  }
}

/** Removes the lock of a dead owner, if no other process has replaced it. @param {string} file @param {string} owner */
async function clearLock(file, owner) {
  const aside = `${file}.${randomUUID()}`
  try {
    await rename(file, aside)
  } catch {
    return
  }
  if ((await readFile(aside, 'utf8')) !== owner) await link(aside, file).catch(() => {})
  await rm(aside, { force: true })
}

/**
 * `handle`, null: during its launch; `member`: its launch is complete; `capacity`, 0: unknown; `listen`: host:port
 * to dial; `start`: from its last hello; `tally`: of this start.
 * @typedef {{id: string, handle: Handle | null, member: boolean, capacity: number, listen?: string, start: string,
 *   tally: Tally, restarts: number}} DroneState
 */

/**
 * `host`: that the controller listens on; `advertise`: host or host:port that drones dial, '': `host`; `next`: number of
 * the next drone; `base`: connections for which drones have numbers; `past`: of ended starts and drones.
 * @typedef {Record<'run' | 'secret' | 'host' | 'advertise' | 'provider', string> & Record<'port' | 'began' | 'next' |
 *   'base' | 'publishFrom' | 'revision', number> & {version: 1, flags: Record<string, any>, drones: DroneState[],
 *   settings: FleetSettings, ramp: FleetSnapshot['ramp'], past: Tally}} FleetState
 */

const VERSION = 1

const REASONS = /** @type {Record<string, string>} */ ({
  ENOENT: 'the folder cannot be created',
  ENOTDIR: 'part of the path is a file',
  EEXIST: 'it is a file',
  EACCES: 'permission denied',
  EROFS: 'the file system is read-only',
})

/** @param {string} dir */
export const stateFile = dir => join(dir, 'state.json')

/** @param {string} dir created for this user only, if missing @throws {Error} one line: others can write to it */
export async function prepareFolder(dir) {
  try {
    await makeFolder(dir, 0o700)
    // Only a new folder: keep permissions of a home folder or /tmp.
    if ((await readdir(dir)).length === 0) await chmod(dir, 0o700)
  } catch (error) {
    throw new Error(`${dir} cannot be the fleet's folder: ${REASONS[error.code] ?? error.message}`)
  }
  const { mode, uid } = await stat(dir)
  if ((mode & 0o022) !== 0 || uid !== process.getuid?.())
    throw new Error(`${dir} cannot be the fleet's folder: other users can write into it`)
}

/** @param {string} dir @returns {Promise<FleetState | null>} null: none */
export async function readState(dir) {
  const file = stateFile(dir)
  let text
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    if (error.code === 'ENOENT') return null
    throw new Error(`${file} cannot be read: ${error.message}`)
  }
  const damaged = (/** @type {string} */ why) =>
    new Error(`${file} is damaged (${why}); \`${COMMAND} fleet stop all\` still stops its drones`)
  let state
  try {
    state = JSON.parse(text)
  } catch {
    throw damaged(text.trim() === '' ? 'it is empty' : 'it is not JSON')
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
  if (!whole) throw damaged('fields are missing')
  state.settings = { ...defaultSettings(), ...state.settings }
  return state
}

/** Writes a fleet's state: only the latest one, one write at a time, atomically. */
export class Store {
  #dir
  #onFault
  /** The next one to write. @type {FleetState | null} */
  #next = null
  /** @type {Promise<void> | null} */
  #writing = null
  #failing = false

  /** @param {string} dir @param {(text: string) => void} onFault e.g. a full disk; once until a write succeeds */
  constructor(dir, onFault) {
    this.#dir = dir
    this.#onFault = onFault
  }

  /** @param {FleetState} state must not change until the returned promise settles; it also resolves after a failure */
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
    try {
      await replaceFile(file, text, { mode: 0o600, sync: true })
      if (this.#failing) this.#onFault('the state can be written again')
      this.#failing = false
    } catch (error) {
      if (!this.#failing)
        this.#onFault(
          `the state cannot be written (${reasonOf(error)}): the fleet continues, but a restarted controller will not know later changes`,
        )
      this.#failing = true
    }
  }

  async remove() {
    this.#next = null
    await this.#writing
    await rm(stateFile(this.#dir), { force: true })
  }
}
