// Connections of a PostgreSQL consumer, limited by the pool size of its DSN.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tlsOptions } from '../../../config/pem.js'

/** @import { ClientTls } from '../../../config/options.js' */
/** @import { Dsn } from '../../../config/postgres-dsn.js' */

/** An optional peer, without types. @type {any} */
const { Client, types } = createRequire(import.meta.url)('pg')

const CONNECT_TIMEOUT_MS = 10_000
/** Longer than any statement, even if the server hangs for 30 s, ms. */
const QUERY_TIMEOUT_MS = 60_000
const KEEPALIVE_MS = 10_000
const BYTEA = 17
/** As text from the server: payloads keep their bytes, bigints their digits. */
const RAW = Object.freeze({
  getTypeParser: (/** @type {number} */ oid, /** @type {any} */ format) =>
    oid === BYTEA ? types.getTypeParser(oid, format) : (/** @type {any} */ value) => value,
})

/** @param {Dsn} dsn @returns {Record<string, any>} TLS options for a mode of libpq */
function sslOf({ sslmode, files }) {
  // libpq: with a CA file `require` equals `verify-ca`.
  const onlyCa = sslmode === 'verify-ca' || (sslmode === 'require' && files.ca !== '')
  const given = Object.entries(files).filter(([, file]) => file !== '')
  return {
    ...Object.fromEntries(given.map(([name, file]) => [name, readFileSync(file, 'utf8')])),
    ...(onlyCa && { checkServerIdentity: () => undefined }),
    rejectUnauthorized: onlyCa || sslmode === 'verify-full',
  }
}

/** One connection. Not reused after an error. */
export class Connection {
  /** null: usable. @type {Error | null} */
  error = null
  hasTable = false
  /** Whether the table has a column `created_at`. */
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

  /** @param {string} text statements, in one round trip @returns {Promise<any[]>} results, rows as arrays of texts */
  async query(text) {
    const answer = await this.client.query({ text, rowMode: 'array' })
    return Array.isArray(answer) ? answer : [answer]
  }

  destroy() {
    this.error ??= new Error('the connection was closed')
    this.client.connection.stream.destroy()
  }
}

/** @param {Dsn} dsn @param {ClientTls} tls the block of the consumer */
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
    // `pg` has no error code for it.
    if (!/does not support SSL/.test(error.message)) throw error
    return open(false)
  }
}

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

  /** Waits for a free one. @returns {Promise<Connection>} rejects if the server is unreachable */
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

  async close() {
    this.#closed = true
    for (const wake of this.#waiting.splice(0)) wake()
    for (const connection of this.#lent) connection.destroy()
    await Promise.all(this.#idle.splice(0).map(({ client }) => client.end().catch(() => {})))
  }
}
