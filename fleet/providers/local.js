// Drones as processes of this machine: the default, which needs no account.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:fs'
import { access, open, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { makeFolder } from '../../src/metrics/doctor/index.js'
import { LaunchError, ProviderError } from './contract.js'
import { findDrones, handleOf, isAlive, killOrphans, signal } from './processes.js'

/** @import { Handle, LaunchConfig } from '../schema.js' */

/** s without a controller until a drone exits, so that none is left on this machine. */
const EXIT_AFTER = 120
const GRACE = 5000
const POLL = 25
/** Bytes at the end of a log to search for its last line. */
const TAIL = 2000

const PROGRAM = fileURLToPath(new URL('../drone/main.js', import.meta.url))

/** @param {string} dir of the fleet */
const folderOf = dir => join(dir, 'drones')
/** @param {string} dir @param {string} id */
const configOf = (dir, id) => join(folderOf(dir), `${id}.json`)
/** @param {string} dir @param {string} id */
const handleFile = (dir, id) => join(folderOf(dir), `${id}.process`)
/** @param {string} dir @param {string} id */
const logOf = (dir, id) => join(folderOf(dir), `${id}.log`)

/** @param {Record<string, any>} flags */
const nodeOf = flags => flags.node ?? process.execPath

/** Writes a new file that only this user can read. @param {string} file @param {string} text */
async function writePrivate(file, text) {
  await rm(file, { force: true })
  await writeFile(file, text, { flag: 'wx', mode: 0o600 })
}

/**
 * Starts a detached drone from its configuration file.
 * @param {string} dir @param {string} id @param {string} run @param {Record<string, any>} flags
 * @returns {Promise<Handle>} @throws {ProviderError}
 */
async function startDrone(dir, id, run, flags) {
  const log = await open(logOf(dir, id), 'a', 0o600)
  try {
    const child = spawn(nodeOf(flags), [PROGRAM, configOf(dir, id)], {
      cwd: folderOf(dir),
      detached: true,
      stdio: ['ignore', log.fd, log.fd],
    })
    await once(child, 'spawn')
    child.on('error', () => {})
    child.unref()
    const handle = await handleOf(/** @type {number} */ (child.pid))
    await writePrivate(handleFile(dir, id), handle)
    return { id, provider: 'local', where: 'local', handle, run, launched: Date.now(), state: 'running' }
  } catch (error) {
    throw new ProviderError(`${id} cannot be started with ${nodeOf(flags)}: ${error.code ?? error.message}`)
  } finally {
    await log.close()
  }
}

/** Why the drone ended, from its log; ordinary lines begin with a time. @param {string} dir @param {string} id */
async function lastWords(dir, id) {
  const log = await open(logOf(dir, id), 'r').catch(() => null)
  if (log === null) return ''
  try {
    const { size } = await log.stat()
    const { buffer, bytesRead } = await log.read({
      buffer: Buffer.alloc(TAIL),
      position: Math.max(0, size - TAIL),
    })
    const line = buffer.toString('utf8', 0, bytesRead).trim().split('\n').at(-1) ?? ''
    if (/^\d{4}-\d\d-\d\dT/.test(line)) return ''
    return line.length > 200 ? `${line.slice(0, 200)}...` : line
  } finally {
    await log.close()
  }
}

/** @param {string} file @returns {Promise<LaunchConfig | null>} */
async function readConfig(file) {
  try {
    return JSON.parse(await readFile(file, 'utf8'))
  } catch {
    return null
  }
}

/** @param {string} dir */
async function idsIn(dir) {
  const files = await readdir(folderOf(dir)).catch(() => /** @type {string[]} */ ([]))
  return files.filter(file => file.endsWith('.json')).map(file => file.slice(0, -'.json'.length))
}

/** @type {import('./contract.js').Provider} */
export const local = Object.freeze({
  name: 'local',
  autoRelaunch: true,
  sharedHost: true,
  help: `      --node FILE            Node.js that the drones run on; default: the one that runs this`,
  flags: { node: { type: /** @type {const} */ ('string') } },

  /** @param {import('./contract.js').LaunchOptions} options */
  async plan({ drones, flags, dir }) {
    const configs = drones.map(config => ({ exitAfter: EXIT_AFTER, ...config }))
    const lines = [
      `${configs.length} ${configs.length === 1 ? 'process' : 'processes'} on this machine, with their files in ${folderOf(dir)}`,
    ]
    for (const { id, secret, apiKey, tokenSecret, ...rest } of configs) {
      lines.push(`${id}: ${nodeOf(flags)} ${PROGRAM} ${configOf(dir, id)}`)
      const hidden = { id, ...rest, secret: '***' }
      if (apiKey) Object.assign(hidden, { apiKey: '***' })
      if (tokenSecret) Object.assign(hidden, { tokenSecret: '***' })
      lines.push(`    ${JSON.stringify(hidden)}`)
    }
    return { lines, price: null, details: { configs, flags, dir } }
  },

  async launch({ details: { configs, flags, dir } }, onProgress) {
    /** @type {Handle[]} */
    const launched = []
    try {
      await access(nodeOf(flags), constants.X_OK).catch(() => {
        if (nodeOf(flags).includes('/'))
          throw new ProviderError(`--node ${flags.node} is not an executable program`)
      })
      await makeFolder(folderOf(dir), 0o700)
      for (const config of configs) {
        await writePrivate(configOf(dir, config.id), `${JSON.stringify(config)}\n`)
        launched.push(await startDrone(dir, config.id, config.run, flags))
        if (configs.length > 1) onProgress(`${launched.length} of ${configs.length} drones started`)
      }
    } catch (error) {
      throw new LaunchError(error.message, launched)
    }
    return launched
  },

  async find(runs, { dir }) {
    const alive = await findDrones(folderOf(dir))
    const ids = [...new Set([...(await idsIn(dir)), ...alive.keys()])]
    const handles = ids.map(async id => {
      const config = await readConfig(configOf(dir, id))
      const noted = await readFile(handleFile(dir, id), 'utf8').catch(() => '')
      const running = noted !== '' && (await isAlive(noted))
      const handle = running ? noted : (alive.get(id) ?? '')
      const state = handle === '' ? 'gone' : 'running'
      return {
        id,
        provider: 'local',
        where: 'local',
        handle: handle || noted,
        // A drone without its file belongs to no run.
        run: config?.run ?? '',
        launched: 0,
        state,
        ...(state === 'gone' ? { note: await lastWords(dir, id) } : {}),
      }
    })
    const found = await Promise.all(handles)
    return runs === 'all' ? found : found.filter(({ run }) => run === '' || runs.includes(run))
  },

  async stop(handles, { dir }, onProgress) {
    const known = handles.filter(({ handle }) => handle !== '')
    /** @param {NodeJS.Signals} name */
    const endAll = async name => {
      const there = []
      for (const { handle } of known) if (await signal(handle, name)) there.push(handle)
      for (const until = Date.now() + GRACE; there.length > 0 && Date.now() < until; ) {
        const alive = await Promise.all(there.map(isAlive))
        if (!alive.includes(true)) return true
        await sleep(POLL)
      }
      return there.length === 0
    }
    if (!(await endAll('SIGTERM'))) {
      onProgress('killing drones that do not exit')
      if (!(await endAll('SIGKILL'))) throw new ProviderError('some drones cannot be killed')
    }
    // A process group may outlive its leader.
    for (const { handle } of known) await killOrphans(handle)
    for (const { id } of handles) {
      for (const file of [configOf(dir, id), handleFile(dir, id), logOf(dir, id)])
        await rm(file, { force: true })
    }
    if ((await idsIn(dir)).length === 0) await rm(folderOf(dir), { recursive: true, force: true })
  },

  async restart({ id, handle, run }, { dir, flags }) {
    if (handle !== '' && (await isAlive(handle))) await signal(handle, 'SIGKILL')
    const config = await readConfig(configOf(dir, id))
    if (config === null) throw new ProviderError(`${id} cannot be started: ${configOf(dir, id)} is gone`)
    return await startDrone(dir, id, run, flags)
  },

  async listen(count) {
    const servers = await Promise.all(
      Array.from({ length: count }, async () => {
        const server = createServer().listen(0, '127.0.0.1')
        await once(server, 'listening')
        return server
      }),
    )
    return servers.map(server => {
      const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
      server.close()
      return `127.0.0.1:${port}`
    })
  },
})
