// Connections of a consumer of PostgreSQL: as many as the pool of its DSN may have, each lent to one turn at a time.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tlsOptions } from '../../../config/pem.js'

/** @import { ClientTls } from '../../../config/options.js' */
/** @import { Dsn } from '../../../config/postgres-dsn.js' */

/** An optional peer, without types. @type {any} */
const { Client, types } = createRequire(import.meta.url)('pg')

const CONNECT_TIMEOUT_MS = 10_000
/** No statement takes that long, not even while the server stands still for half a minute, ms. */
const QUERY_TIMEOUT_MS = 60_000
const KEEPALIVE_MS = 10_000
const BYTEA = 17
/** As the text that the server sent: a payload keeps its bytes, a bigint its digits. */
const RAW = Object.freeze({
  getTypeParser: (/** @type {number} */ oid, /** @type {any} */ format) =>
    oid === BYTEA ? types.getTypeParser(oid, format) : (/** @type {any} */ value) => value,
})

/** @param {Dsn} dsn @returns {Record<string, any>} options of TLS that a mode of libpq stands for */
function sslOf({ sslmode, files }) {
  const read = (/** @type {string} */ file) => readFileSync(file, 'utf8')
  return {
    ...(files.ca !== '' && { ca: read(files.ca) }),
    ...(files.cert !== '' && { cert: read(files.cert) }),
    ...(files.key !== '' && { key: read(files.key) }),
    ...(sslmode === 'verify-ca' && { checkServerIdentity: () => undefined }),
    // libpq: a file of CAs makes `require` the same as `verify-ca`.
    ...(sslmode === 'require' && files.ca !== '' && { checkServerIdentity: () => undefined }),
    rejectUnauthorized: sslmode.startsWith('verify') || (sslmode === 'require' && files.ca !== ''),
  }
}

/** One connection. After an error it is not used again. */
export class Connection {
  /** null: it can be used. @type {Error | null} */
  error = null
  /** Whether the table was there when it was made. */
  hasTable = false
  /** Whether the table has a column `created_at` with the time of its rows. */
  hasTime = false

  /** @param {any} client of `pg`, connected */
  constructor(client) {
    this.client = client
    client.on('error', (/** @type {Error} */ error) => {
      this.error ??= error
    })
    client.on('end', () => {
      this.error ??= new Error('the server has closed the connection')
    })
  }

  /**
   * @param {string} text statements, in one round trip
   * @returns {Promise<any[]>} a result for each of them, with rows as arrays of texts
   */
  async query(text) {
    const answer = await this.client.query({ text, rowMode: 'array' })
    return Array.isArray(answer) ? answer : [answer]
  }

  /** Ends it at once, whatever it waits for. */
  destroy() {
    this.error ??= new Error('the connection was ended')
    this.client.connection.stream.destroy()
  }

  /** @returns {Promise<void>} */
  async end() {
    await this.client.end().catch(() => {})
  }
}

/**
 * @param {Dsn} dsn @param {ClientTls} tls the block of the consumer
 * @returns {Promise<Connection>}
 */
export async function connect(dsn, tls) {
  const common = {
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    ...dsn.client,
    query_timeout: QUERY_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEPALIVE_MS,
    types: RAW,
  }
  const open = async (/** @type {any} */ ssl) => {
    const client = new Client({ ...common, ssl })
    const connection = new Connection(client)
    try {
      await client.connect()
      for (const [name, value] of Object.entries(dsn.settings))
        await client.query('SELECT set_config($1, $2, false)', [name, value])
      return connection
    } catch (error) {
      connection.destroy()
      throw error
    }
  }
  if (tls.enabled) return open(tlsOptions(tls))
  if (dsn.sslmode === 'disable' || dsn.sslmode === 'allow') return open(false)
  if (dsn.sslmode !== 'prefer') return open(sslOf(dsn))
  try {
    return await open(sslOf(dsn))
  } catch (error) {
    // The message of `pg` is all that tells it.
    if (!/does not support SSL/.test(error.message)) throw error
    return open(false)
  }
}

/** A bounded number of connections. They are opened when they are needed, and stay. */
export class Connections {
  #open
  #max
  /** @type {Connection[]} */
  #idle = []
  /** @type {Set<Connection>} */
  #lent = new Set()
  #count = 0
  /** @type {(() => void)[]} */
  #waiting = []
  #closed = false

  /** @param {() => Promise<Connection>} open @param {number} max */
  constructor(open, max) {
    this.#open = open
    this.#max = max
  }

  /** Waits for one that is free. @returns {Promise<Connection>} rejects when the server is out of reach */
  async lend() {
    while (this.#idle.length === 0 && this.#count >= this.#max && !this.#closed)
      await new Promise(resolve => this.#waiting.push(() => resolve(undefined)))
    if (this.#closed) throw new Error('the consumer has stopped')
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      if (idle.error === null) {
        this.#lent.add(idle)
        return idle
      }
      this.#count--
    }
    this.#count++
    try {
      const connection = await this.#open()
      if (this.#closed) {
        connection.destroy()
        throw new Error('the consumer has stopped')
      }
      this.#lent.add(connection)
      return connection
    } catch (error) {
      this.#count--
      this.#waiting.shift()?.()
      throw error
    }
  }

  /** @param {Connection} connection @param {boolean} usable false: its transaction has not ended */
  giveBack(connection, usable) {
    this.#lent.delete(connection)
    if (usable && connection.error === null && !this.#closed) this.#idle.push(connection)
    else {
      this.#count--
      connection.destroy()
    }
    this.#waiting.shift()?.()
  }

  /** Ends all of them, also those that are lent. */
  async close() {
    this.#closed = true
    for (const wake of this.#waiting.splice(0)) wake()
    for (const connection of this.#lent) connection.destroy()
    await Promise.all(this.#idle.splice(0).map(connection => connection.end()))
  }
}
