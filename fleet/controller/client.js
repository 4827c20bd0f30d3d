// A command's side of the control socket: requests to a controller, started if necessary, and commands without a
// controller.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { open, rm } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { COMMAND } from '../../src/base/version.js'
import { PROVIDERS } from '../providers/index.js'
import { ControlConnection } from './control-connection.js'
import { lockOwner, logPath, prepareFolder, readState, socketPath, stateFile } from './folder.js'

/** @import { FleetSnapshot, Handle } from '../schema.js' */
/** @import { Source, SourceEvent } from '../status/index.js' */

const DAEMON = fileURLToPath(new URL('./daemon.js', import.meta.url))
const TIMEOUT = 15_000
const POLL = 50

export class NoFleetError extends Error {}

/** @param {string} dir @returns {Promise<import('node:net').Socket | null>} null: no controller */
async function dial(dir) {
  const socket = createConnection(socketPath(dir))
  try {
    await once(socket, 'connect')
    return socket
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ECONNREFUSED') return null
    if (error.code === 'ENOTDIR')
      throw new Error(`${dir} cannot be the fleet's folder: it is a file, or below one`)
    if (error.code === 'EACCES') throw new Error(`the controller of ${dir} belongs to another user`)
    throw error
  }
}

/** @param {string} dir @returns {Promise<void>} when it accepts commands @throws {Error} one line: its error */
async function startController(dir) {
  await prepareFolder(dir)
  const log = await open(logPath(dir), 'a', 0o600)
  try {
    const child = spawn(process.execPath, [DAEMON, dir], {
      cwd: dir,
      detached: true,
      stdio: ['ignore', log.fd, log.fd, 'ipc'],
    })
    const [message] = await Promise.race([
      once(child, 'message', { signal: AbortSignal.timeout(TIMEOUT) }),
      once(child, 'exit').then(([code]) => {
        throw new Error(`the controller exited with ${code}; see ${logPath(dir)}`)
      }),
    ]).catch(error => {
      throw error.name === 'AbortError'
        ? new Error(`the controller did not start; see ${logPath(dir)}`)
        : error
    })
    if (message.error !== undefined) throw new Error(message.error)
    if (child.connected) child.disconnect()
    child.unref()
  } finally {
    await log.close()
  }
}

/** @param {string} dir @param {{fresh?: boolean}} options see sendCommand() @returns {Promise<ControlConnection>} */
async function openConnection(dir, { fresh = false }) {
  const deadline = Date.now() + TIMEOUT
  for (;;) {
    const socket = await dial(dir)
    if (socket !== null) return new ControlConnection(socket)
    const pid = await lockOwner(dir)
    // It is starting or exiting.
    if (pid !== 0 && Date.now() > deadline)
      throw new Error(`the controller of ${dir} (process ${pid}) does not respond`)
    if (pid === 0) {
      if (!fresh && (await readState(dir)) === null)
        throw new NoFleetError(`no fleet in ${dir}; start one with \`${COMMAND} fleet start N\``)
      try {
        await startController(dir)
      } catch (error) {
        // Another command started it first.
        if ((await lockOwner(dir)) === 0) throw error
      }
    } else await sleep(POLL)
  }
}

/**
 * Sends a command to the controller of a folder. Restarts a missing controller if there is a fleet.
 * @param {string} dir @param {string} command @param {object} [params] @param {object} [options]
 * @param {boolean} [options.fresh] also start a controller without a fleet
 * @param {(text: string) => void} [options.onProgress]
 * @param {(plan: {lines: string[], price: any}) => Promise<boolean>} [options.onPlan]
 * @param {(snapshot: FleetSnapshot) => void} [options.onSnapshot]
 * @param {AbortSignal} [options.signal] cancels the command; the promise still waits for its result
 * @returns {Promise<any>} @throws {Error} one line; NoFleetError: no fleet
 */
export async function sendCommand(dir, command, params = {}, options = {}) {
  const { onProgress = () => {}, onPlan = async () => true, onSnapshot = () => {}, signal } = options
  const connection = await openConnection(dir, options)
  try {
    return await new Promise((resolve, reject) => {
      connection.onClose = () => reject(new Error('the controller exited without a reply'))
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

/** @param {string} dir @returns {Promise<void>} after the controller's exit, or TIMEOUT */
export async function controllerEnded(dir) {
  const deadline = Date.now() + TIMEOUT
  while ((await lockOwner(dir)) !== 0 && Date.now() < deadline) await sleep(POLL)
}

const AGAIN = 1000

/** Snapshots of the controller of a folder, across restarts of the controller. @implements {Source} */
export class ControllerSource {
  #dir
  #abort = new AbortController()

  /** @param {string} dir */
  constructor(dir) {
    this.#dir = dir
    this.name = dir
  }

  /** @param {(event: SourceEvent) => void} listener */
  async start(listener) {
    const { signal } = this.#abort
    while (!signal.aborted) {
      const reason = await sendCommand(
        this.#dir,
        'watch',
        {},
        { signal, onSnapshot: snapshot => listener({ type: 'snapshot', snapshot }) },
      ).then(
        () => 'the controller exited',
        error => error.message,
      )
      if (signal.aborted) return
      listener({ type: 'lost', reason })
      await sleep(AGAIN, undefined, { signal }).catch(() => {})
    }
  }

  /** @param {string} name `set`, `restart` @param {Record<string, any>} params */
  command(name, params) {
    return sendCommand(this.#dir, name, name === 'set' ? { settings: params } : params)
  }

  close() {
    this.#abort.abort()
  }
}

/**
 * Ends drones without a controller.
 * @param {object} options @param {string} options.dir
 * @param {string} options.provider `local`: drones of the folder
 * @param {string[]} [options.runs] default: all
 * @param {Record<string, any>} options.flags of the provider
 * @param {(text: string) => void} options.onProgress
 * @param {(handles: Handle[]) => Promise<boolean>} [options.confirm]
 */
export async function stopOrphans({ dir, provider: name, runs, flags, onProgress, confirm }) {
  const provider = await PROVIDERS[name].load()
  const found = await provider.find(runs ?? 'all', { dir, flags })
  const there = found.filter(({ state }) => state !== 'gone')
  if (there.length > 0 && confirm && !(await confirm(there))) return []
  // Also without drones: a finished run may have left other resources.
  if (found.length > 0 || name !== 'local') await provider.stop(found, { dir, flags }, onProgress)
  // A live controller manages its own state file.
  if (name === 'local' && (await lockOwner(dir)) === 0) {
    await rm(stateFile(dir), { force: true })
    await rm(socketPath(dir), { force: true })
  }
  return there
}
