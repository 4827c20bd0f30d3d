// Other servers under Halley's load: Socket.IO, nchan, and a server on the Go library of Centrifugo. None of them is a
// dependency of the project: `install` puts them into FOLDER, which npm does not pack and git ignores.

import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { findNchan, nchanCommand } from './nchan.js'

/** @typedef {typeof PEER_KINDS[number]} PeerKind */

export const PEER_KINDS = /** @type {const} */ (['socket.io', 'nchan', 'centrifuge'])

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const FOLDER = join(ROOT, 'node_modules/.cache/halley-peers')
const SOCKET_IO = '4.8.4'
/** Module and program: bench/centrifuge is a small server on the library. */
const CENTRIFUGE = join(ROOT, 'bench/centrifuge')
const CENTRIFUGE_PROGRAM = join(FOLDER, 'centrifuge')

const run = promisify(execFile)
/** ms in which an installation ends. */
const PATIENCE = 180_000

/** @param {string} file @returns {any} null: there is none */
function readJson(file) {
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : null
}

/**
 * @param {PeerKind} kind
 * @returns {string | null} its name with its version; null: it is not installed
 */
export function installedPeer(kind) {
  if (kind === 'nchan') {
    const nchan = findNchan()
    return nchan && `nchan (nginx ${nchan.version})`
  }
  if (kind === 'socket.io') {
    const manifest = readJson(join(FOLDER, 'node_modules/socket.io/package.json'))
    return manifest && `Socket.IO ${manifest.version}`
  }
  if (!existsSync(CENTRIFUGE_PROGRAM)) return null
  const [, version] =
    /centrifugal\/centrifuge v([\d.]+)/.exec(readFileSync(join(CENTRIFUGE, 'go.mod'), 'utf8')) ?? []
  return `centrifuge ${version} (Go)`
}

/**
 * Installs it below node_modules/.cache.
 * @param {PeerKind} kind
 * @throws {Error} one line: what is missing, or why it failed
 */
export async function installPeer(kind) {
  if (kind === 'nchan')
    throw new Error('nchan is not installed (Debian: apt-get install nginx-light libnginx-mod-nchan)')
  await mkdir(FOLDER, { recursive: true })
  if (kind === 'socket.io') {
    await writeFile(join(FOLDER, 'package.json'), '{ "private": true }\n')
    await install('npm', ['install', '--no-audit', '--no-fund', '--silent', `socket.io@${SOCKET_IO}`], FOLDER)
  } else await install('go', ['build', '-o', CENTRIFUGE_PROGRAM, '.'], CENTRIFUGE)
}

/** @param {string} program @param {string[]} args @param {string} cwd @throws {Error} one line */
async function install(program, args, cwd) {
  try {
    await run(program, args, { cwd, timeout: PATIENCE })
  } catch (error) {
    if (error.code === 'ENOENT') throw new Error(`${program} is not on the PATH`)
    const lines = `${error.stderr}`.trim().split('\n')
    throw new Error(`${program} ${args[0]} failed: ${lines.at(-1) || error.message}`)
  }
}

/**
 * @param {PeerKind} kind
 * @param {{folder: string, host: string, port: number, key: string, workers: number}} options `folder` for its files
 * @returns {Promise<import('../servers.js').Command>}
 * @throws {Error} it is not installed
 */
export async function peerCommand(kind, options) {
  if (installedPeer(kind) === null)
    throw new Error(`${kind} is not installed: npm run bench -- peers --peers ${kind} --install`)
  if (kind === 'socket.io')
    return { program: process.execPath, args: ['bench/peers/socket-io.js', String(options.port), FOLDER] }
  if (kind === 'nchan') return nchanCommand(/** @type {any} */ (findNchan()).module, options)
  const { host, port, key } = options
  return { program: CENTRIFUGE_PROGRAM, args: ['-address', `${host}:${port}`, '-api-key', key] }
}
