// Well-known path of the stats socket.

import { lstatSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Longest path of a Unix socket on Linux, without its final zero. */
const MAX_PATH_BYTES = 107
const FOLDER_MODE = 0o700
const OTHERS = 0o077
const CONNECT_TIMEOUT_MS = 1000

/** @typedef {{runtimeDir?: string, temporary?: string}} Place $XDG_RUNTIME_DIR, and its fallback */

const uid = () => process.getuid?.() ?? -1

/** Whether it is a folder of this user, and not a link. @param {string} folder */
function isOwnFolder(folder) {
  try {
    const stat = lstatSync(folder)
    return stat.isDirectory() && (stat.uid === uid() || uid() === -1)
  } catch {
    // Missing, not accessible, or no folder.
    return false
  }
}

/** @param {Place} place */
const temporaryFolder = ({ temporary = tmpdir() }) => join(temporary, `halley-${uid()}`)

/** @param {Place} place */
export function socketFolder(place) {
  const { runtimeDir } = place
  // After `su`, another user's.
  return runtimeDir && isOwnFolder(runtimeDir) ? join(runtimeDir, 'halley') : temporaryFolder(place)
}

/** @param {string} setting a path, `auto` or `none` @param {number} port @param {Place} place */
export function socketPath(setting, port, place) {
  if (setting === 'none' || (setting === 'auto' && process.platform === 'win32')) return null
  return setting === 'auto' ? join(socketFolder(place), `${port}.sock`) : setting
}

/** @param {string} folder @throws {Error} if other users can access it */
export function makeOwnFolder(folder) {
  mkdirSync(folder, { recursive: true, mode: FOLDER_MODE })
  if (!isOwnFolder(folder)) throw new Error(`${folder} is not a folder of this user`)
  if ((lstatSync(folder).mode & OTHERS) !== 0)
    throw new Error(`${folder} is accessible to other users: run chmod 700 ${folder}`)
}

/** @param {string} path @throws {Error} */
export function checkLength(path) {
  const bytes = Buffer.byteLength(path)
  if (bytes > MAX_PATH_BYTES)
    throw new Error(`${path}: a socket path has at most ${MAX_PATH_BYTES} bytes, not ${bytes}`)
}

/** Whether a process listens on the socket. @param {string} path @returns {Promise<boolean>} */
export function isAlive(path) {
  return new Promise(resolve => {
    const socket = connect(path)
    const done = (/** @type {boolean} */ alive) => {
      socket.destroy()
      resolve(alive)
    }
    socket.on('connect', () => done(true))
    // After other errors the socket may be in use.
    socket.on('error', (/** @type {NodeJS.ErrnoException} */ { code }) =>
      done(code !== 'ECONNREFUSED' && code !== 'ENOENT' && code !== 'ENOTSOCK'),
    )
    socket.setTimeout(CONNECT_TIMEOUT_MS, () => done(true))
  })
}

/** Running gateways of this user, by port. @param {Place} place */
export async function listSockets(place) {
  /** @type {{path: string, port: number}[]} */
  const found = []
  for (const folder of new Set([socketFolder(place), temporaryFolder(place)])) {
    if (!isOwnFolder(folder)) continue
    for (const name of readdirSync(folder)) {
      const port = Number(/^(\d+)\.sock$/.exec(name)?.[1] ?? Number.NaN)
      const path = join(folder, name)
      if (Number.isNaN(port) || !statSync(path, { throwIfNoEntry: false })?.isSocket()) continue
      found.push({ path, port })
    }
  }
  const alive = await Promise.all(found.map(({ path }) => isAlive(path)))
  return found.filter((_, index) => alive[index]).sort((a, b) => a.port - b.port)
}
