// A real PostgreSQL for tests: a database of its own on a free port of loopback, with data in a temporary folder.

import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
// @ts-ignore: pg has no types of its own. Not @ts-expect-error: only the benchmarks' check is strict about that.
import pg from 'pg'
import { unless } from '../needs.js'
import { freePort } from '../ports.js'
import { ServerProcess } from './server-process.js'

const run = promisify(execFile)

/** Debian has a folder for each version, which is not on the PATH. */
const VERSIONS = '/usr/lib/postgresql'
const TRIES = 20
const RESTART_PAUSE_MS = 250
/** PostgreSQL refuses to run as root. */
const USERS = ['postgres', 'nobody']
const MISSING = `PostgreSQL is not installed in ${VERSIONS} (Debian: apt-get install postgresql; POSTGRES_BIN may name the folder of its programs)`

/** @returns {string} folder of the newest version, '' without one */
function programs() {
  if (process.env.POSTGRES_BIN) return process.env.POSTGRES_BIN
  if (!existsSync(VERSIONS)) return ''
  const folders = readdirSync(VERSIONS)
    .sort((a, b) => Number(b) - Number(a))
    .map(version => join(VERSIONS, version, 'bin'))
  return folders.find(folder => existsSync(join(folder, 'initdb'))) ?? ''
}

/** For the option `skip` of a test. */
export const withoutPostgres = () => unless(programs() !== '', MISSING)

/** @returns {{uid?: number, gid?: number}} an ordinary user when this one is root */
function ordinaryUser() {
  if (process.getuid?.() !== 0) return {}
  for (const line of readFileSync('/etc/passwd', 'utf8').split('\n')) {
    const [name, , uid, gid] = line.split(':')
    if (USERS.includes(name)) return { uid: Number(uid), gid: Number(gid) }
  }
  throw new Error('PostgreSQL does not run as root, and there is no user postgres or nobody')
}

/** One server with the database `postgres` and the superuser `postgres`, who needs no password. */
export class PostgresServer extends ServerProcess {
  /** @type {pg.Client | null} */
  #client = null

  /** @param {import('./server-process.js').Run} run @param {number} port @param {string} folder */
  constructor(run, port, folder) {
    super(run)
    this.port = port
    this.folder = folder
  }

  /** @param {number} [port] of a proxy before it @returns {string} for the option `dsn` */
  dsn(port = this.port) {
    return `postgres://postgres@127.0.0.1:${port}/postgres`
  }

  /** @returns {Promise<pg.Client>} a connection of its own; its owner ends it */
  async connect() {
    const client = new pg.Client({ connectionString: this.dsn() })
    client.on('error', () => {})
    await client.connect()
    return client
  }

  /** @param {string} text @param {any[]} [values] @returns {Promise<any[]>} rows, over a connection that stays */
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

  /** @override A process that was just forked when its server was killed may still have the memory of that one. */
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

  /** Ends it for good, and its data. */
  async stop() {
    await this.#client?.end().catch(() => {})
    await this.kill()
    await rm(this.folder, { recursive: true, force: true })
  }
}

/**
 * @param {any} t ends with this test
 * @param {object} [options]
 * @param {Record<string, string>} [options.settings] of its configuration, over these
 * @param {Record<string, string>} [options.files] name -> text, in the folder of its data, which only its user may read
 * @returns {Promise<PostgresServer>} running
 */
export async function startPostgres(t, { settings = {}, files = {} } = {}) {
  const bin = programs()
  if (bin === '') throw new Error(MISSING)
  const user = ordinaryUser()
  const folder = await mkdtemp(join(tmpdir(), 'halley-postgres-'))
  if (user.uid !== undefined) await chown(folder, user.uid, /** @type {number} */ (user.gid))
  const data = join(folder, 'data')
  await run(
    join(bin, 'initdb'),
    ['-D', data, '-U', 'postgres', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync'],
    { ...user, cwd: folder, env: { ...process.env, LC_ALL: 'C' } },
  )
  for (const [name, text] of Object.entries(files)) {
    await writeFile(join(data, name), text, { mode: 0o600 })
    if (user.uid !== undefined) await chown(join(data, name), user.uid, /** @type {number} */ (user.gid))
  }
  for (let tried = 1; ; tried++) {
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
    const args = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    const server = new PostgresServer(
      {
        command: join(bin, 'postgres'),
        args: ['-D', data, ...args],
        ready: /ready to accept connections/,
        missing: MISSING,
        env: { LC_ALL: 'C' },
        cwd: folder,
        ...user,
      },
      port,
      folder,
    )
    try {
      await server.start()
      t.teardown(() => server.stop())
      return server
    } catch (error) {
      const taken = server.log.some(line => line.includes('Address already in use'))
      if (taken && tried < TRIES) continue
      await server.stop()
      throw error
    }
  }
}
