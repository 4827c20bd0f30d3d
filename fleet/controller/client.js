// A command's side of the control socket: requests to a controller, which is started if necessary, and commands that
// need no controller.

import { spawn } from 'node:child_process'
import { open, rm } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { fileURLToPath } from 'node:url'
import { COMMAND } from '../../src/base/version.js'
import { PROVIDERS } from '../providers/index.js'
import { ControlConnection } from './control-connection.js'
import { lockOwner, logPath, prepareFolder, readState, socketPath, stateFile } from './folder.js'

const DAEMON = fileURLToPath(new URL('./daemon.js', import.meta.url))
/** ms for a controller to start or to end. */
const TIMEOUT = 15_000
const POLL = 50

/** The folder has no fleet. */
export class NoFleetError extends Error {}

/**
 * @param {string} dir @returns {Promise<import('node:net').Socket | null>} null: no answer @throws {Error} one line
 */
function dial(dir) {
  return new Promise((resolve, reject) => {
    const socket = createConnection(socketPath(dir))
    socket.once('connect', () => resolve(socket))
    socket.once('error', error => {
      const { code } = /** @type {NodeJS.ErrnoException} */ (error)
      if (code === 'ENOENT' || code === 'ECONNREFUSED') resolve(null)
      else if (code === 'ENOTDIR')
        reject(new Error(`${dir} cannot be the fleet's folder: it is a file, or below one`))
      else if (code === 'EACCES') reject(new Error(`the controller of ${dir} belongs to another user`))
      else reject(error)
    })
  })
}

/** @param {string} dir @returns {Promise<void>} when it accepts commands @throws {Error} one line: its own error */
async function startController(dir) {
  await prepareFolder(dir)
  const log = await open(logPath(dir), 'a', 0o600)
  try {
    const child = spawn(process.execPath, [DAEMON, dir], {
      cwd: dir,
      detached: true,
      stdio: ['ignore', log.fd, log.fd, 'ipc'],
    })
    await new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new Error(`the controller did not start; see ${logPath(dir)}`))
      }, TIMEOUT)
      const settle = (/** @type {() => void} */ then) => {
        clearTimeout(timer)
        then()
      }
      child.once('error', error => settle(() => reject(error)))
      child.once('exit', code =>
        settle(() => reject(new Error(`the controller ended with ${code}; see ${logPath(dir)}`))),
      )
      child.once('message', (/** @type {any} */ message) =>
        settle(() => (message.error === undefined ? resolve(undefined) : reject(new Error(message.error)))),
      )
    })
    child.removeAllListeners('exit')
    if (child.connected) child.disconnect()
    child.unref()
  } finally {
    await log.close()
  }
}

/**
 * @param {string} dir @param {object} options
 * @param {boolean} [options.fresh] start a controller also without a fleet
 * @returns {Promise<ControlConnection>}
 * @throws {Error} one line; NoFleetError: there is no fleet
 */
async function openConnection(dir, { fresh = false }) {
  const deadline = Date.now() + TIMEOUT
  for (;;) {
    const socket = await dial(dir)
    if (socket !== null) return new ControlConnection(socket)
    const pid = await lockOwner(dir)
    // One is starting or ending.
    if (pid !== 0 && Date.now() > deadline)
      throw new Error(`the controller of ${dir} (process ${pid}) does not answer`)
    if (pid === 0) {
      if (!fresh && (await readState(dir)) === null)
        throw new NoFleetError(`no fleet is in ${dir}; \`${COMMAND} fleet start N\` launches one`)
      try {
        await startController(dir)
      } catch (error) {
        // Another command started it first.
        if ((await lockOwner(dir)) === 0) throw error
      }
    } else await new Promise(resolve => setTimeout(resolve, POLL))
  }
}

/**
 * Sends a command to the controller of a folder. A missing controller is restarted if there is a fleet.
 * @param {string} dir @param {string} command @param {object} [params] @param {object} [options]
 * @param {boolean} [options.fresh] start a controller also without a fleet
 * @param {(text: string) => void} [options.onProgress]
 * @param {(plan: {lines: string[], price: any}) => Promise<boolean>} [options.onPlan]
 * @param {(snapshot: import('../schema.js').FleetSnapshot) => void} [options.onSnapshot]
 * @param {AbortSignal} [options.signal] cancels the command; the promise still waits for its result
 * @returns {Promise<any>} the result
 * @throws {Error} one line; NoFleetError: there is no fleet
 */
export async function sendCommand(dir, command, params = {}, options = {}) {
  const { onProgress = () => {}, onPlan = async () => true, onSnapshot = () => {}, signal } = options
  const connection = await openConnection(dir, options)
  try {
    return await new Promise((resolve, reject) => {
      connection.onClose = () => reject(new Error('the controller ended without a reply'))
      connection.onMessage = message => {
        if (message.progress !== undefined) onProgress(message.progress)
        else if (message.snapshot !== undefined) onSnapshot(message.snapshot)
        else if (message.plan !== undefined)
          onPlan(message.plan).then(
            go => connection.send({ go }),
            error => {
              connection.send({ go: false })
              reject(error)
            },
          )
        else if (message.error !== undefined) reject(new Error(message.error))
        else if (message.result !== undefined) resolve(message.result)
      }
      signal?.addEventListener('abort', () => connection.send({ cancel: true }))
      connection.send({ command, params })
      if (signal?.aborted) connection.send({ cancel: true })
    })
  } finally {
    connection.onClose = () => {}
    connection.destroy()
  }
}

/** @param {string} dir @returns {Promise<void>} when its controller has ended, or after TIMEOUT */
export async function controllerEnded(dir) {
  const deadline = Date.now() + TIMEOUT
  while ((await lockOwner(dir)) !== 0 && Date.now() < deadline)
    await new Promise(resolve => setTimeout(resolve, POLL))
}

/** ms between attempts to reach a lost controller. */
const AGAIN = 1000

/** @implements {Source} @typedef {import('../status/index.js').Source} Source */
export class ControllerSource {
  #dir
  /** @type {((snapshot: import('../schema.js').FleetSnapshot) => void)[]} */
  #listeners = []
  /** @type {((reason: string) => void)[]} */
  #lost = []
  #abort = new AbortController()
  #watching = false
  /** @type {NodeJS.Timeout | undefined} */
  #timer

  /** @param {string} dir */
  constructor(dir) {
    this.#dir = dir
    this.name = dir
  }

  /** @param {(snapshot: import('../schema.js').FleetSnapshot) => void} listener */
  onSnapshot(listener) {
    this.#listeners.push(listener)
    if (!this.#watching) void this.#watch()
  }

  /** @param {(reason: string) => void} listener */
  onLost(listener) {
    this.#lost.push(listener)
  }

  async #watch() {
    this.#watching = true
    let reason = 'the controller has ended'
    try {
      await sendCommand(
        this.#dir,
        'watch',
        {},
        {
          signal: this.#abort.signal,
          onSnapshot: snapshot => {
            for (const listener of this.#listeners) listener(snapshot)
          },
        },
      )
    } catch (error) {
      reason = error.message
    }
    if (this.#abort.signal.aborted) return
    for (const listener of this.#lost) listener(reason)
    this.#timer = setTimeout(() => void this.#watch(), AGAIN)
  }

  /** @param {string} name `set`, `restart` @param {Record<string, any>} params */
  command(name, params) {
    return sendCommand(this.#dir, name, name === 'set' ? { settings: params } : params)
  }

  close() {
    clearTimeout(this.#timer)
    this.#abort.abort()
  }
}

/**
 * Ends drones without a controller.
 * @param {object} options @param {string} options.dir
 * @param {string} options.provider of the drones; for `local`, those of the folder
 * @param {string[]} [options.runs] default: all
 * @param {Record<string, any>} options.flags of the provider
 * @param {(text: string) => void} options.onProgress
 * @param {(handles: import('../schema.js').Handle[]) => Promise<boolean>} [options.confirm]
 * @returns {Promise<import('../schema.js').Handle[]>} the ended drones
 * @throws {Error} one line
 */
export async function stopOrphans({
  dir,
  provider: name,
  runs,
  flags,
  onProgress,
  confirm = async () => true,
}) {
  const provider = await PROVIDERS[name].load()
  const found = await provider.find(runs ?? 'all', { dir, flags })
  const there = found.filter(({ state }) => state !== 'gone')
  if (there.length > 0 && !(await confirm(there))) return []
  // Also without drones: a finished run may have left other resources at the provider.
  if (found.length > 0 || name !== 'local') await provider.stop(found, { dir, flags }, onProgress)
  // A live controller manages its own state file.
  if (name === 'local' && (await lockOwner(dir)) === 0) {
    await rm(stateFile(dir), { force: true })
    await rm(socketPath(dir), { force: true })
  }
  return there
}
