// A real PostgreSQL for tests, with its own data.

import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { chown, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
// biome-ignore lint/suspicious/noTsIgnore: pg has no types, which is an error only where bench/ is checked strictly.
// @ts-ignore
import pg from 'pg'
import { unless } from '../needs.js'
import { freePort } from '../ports.js'
import { ServerProcess, startServer } from './server-process.js'

const run = promisify(execFile)

/** One folder for each version, not on the PATH. */
const VERSIONS = '/usr/lib/postgresql'
const TRIES = 20
const RESTART_PAUSE_MS = 250
/** PostgreSQL refuses to run as root. */
const USERS = ['postgres', 'nobody']
const MISSING = `PostgreSQL is not installed in ${VERSIONS} (Debian: apt-get install postgresql; POSTGRES_BIN may name the folder of its programs)`

/** @returns {string} folder of the newest version; '': not installed */
function programs() {
  if (process.env.POSTGRES_BIN) return process.env.POSTGRES_BIN
  if (!existsSync(VERSIONS)) return ''
  const folders = readdirSync(VERSIONS)
    .sort((a, b) => Number(b) - Number(a))
    .map(version => join(VERSIONS, version, 'bin'))
  return folders.find(folder => existsSync(join(folder, 'initdb'))) ?? ''
}

/** For the `skip` option of a test. */
export const withoutPostgres = () => unless(programs() !== '', MISSING)

/** @returns {{uid?: number, gid?: number}} an ordinary user, if this one is root */
function ordinaryUser() {
  if (process.getuid?.() !== 0) return {}
  for (const line of readFileSync('/etc/passwd', 'utf8').split('\n')) {
    const [name, , uid, gid] = line.split(':')
    if (USERS.includes(name)) return { uid: Number(uid), gid: Number(gid) }
  }
  throw new Error('PostgreSQL does not run as root, and there is no user postgres or nobody')
}

/** One server with the database `postgres` and the superuser `postgres`, without a password. */
export class PostgresServer extends ServerProcess {
  /** @type {pg.Client | null} */
  #client = null

  /** @param {number} [port] of a proxy @returns {string} for the `dsn` option */
  dsn(port = this.port) {
    return `postgres://postgres@127.0.0.1:${port}/postgres`
  }

  async connect() {
    const client = new pg.Client({ connectionString: this.dsn() })
    client.on('error', () => {})
    await client.connect()
    return client
  }

  /** @param {string} text @param {any[]} [values] @returns {Promise<any[]>} rows, over one connection */
  async query(text, values) {
    if (this.#client === null) {
      const client = await this.connect()
      client.on('end', () => {
        if (this.#client === client) this.#client = null
      })
      this.#client = client
    }
    const result = await this.#client.query(text, values)
    return result.rows ?? []
  }

  /** @override Child processes of a killed server may still hold its shared memory. */
  async start() {
    for (let tried = 1; ; tried++) {
      try {
        return await super.start()
      } catch (error) {
        if (tried === TRIES || !/pre-existing shared memory/.test(error.message)) throw error
        await pause(RESTART_PAUSE_MS)
      }
    }
  }

  /** @override */
  async stop() {
    await this.#client?.end().catch(() => {})
    await super.stop()
  }
}

/**
 * @param {any} t ends with this test
 * @param {{settings?: Record<string, string>, files?: Record<string, string>}} [options] `files`: name -> text, in
 *   its data folder, readable only by its user
 */
export async function startPostgres(t, { settings = {}, files = {} } = {}) {
  const bin = programs()
  if (bin === '') throw new Error(MISSING)
  const user = ordinaryUser()
  const own = async (/** @type {string} */ path) => {
    if (user.uid !== undefined) await chown(path, user.uid, /** @type {number} */ (user.gid))
  }
  return startServer(t, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'halley-postgres-'))
    await own(folder)
    const data = join(folder, 'data')
    await run(
      join(bin, 'initdb'),
      ['-D', data, '-U', 'postgres', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync'],
      { ...user, cwd: folder, env: { ...process.env, LC_ALL: 'C' } },
    )
    for (const [name, text] of Object.entries(files)) {
      await writeFile(join(data, name), text, { mode: 0o600 })
      await own(join(data, name))
    }
    const port = await freePort()
    const all = {
      listen_addresses: '127.0.0.1',
      port: String(port),
      unix_socket_directories: '',
      fsync: 'off',
      full_page_writes: 'off',
      shared_buffers: '32MB',
      ...settings,
    }
    const server = {
      command: join(bin, 'postgres'),
      args: ['-D', data, ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
      ready: /ready to accept connections/,
      missing: MISSING,
      env: { LC_ALL: 'C' },
      cwd: folder,
      ...user,
    }
    return new PostgresServer(server, port, folder)
  })
}
