// Rows of an outbox table in PostgreSQL. A partition has one loop: a turn is a transaction that takes the lock of the
// partition, reads rows, runs their commands and deletes those that are finished. So the nodes of a cluster, those of
// Centrifugo too, work on a partition one at a time, and a row whose command had no effect stays.

import { parseDsn } from '../../../config/postgres-dsn.js'
import { runInOrder } from '../messages.js'
import { limited } from '../timing.js'
import { Connections, connect } from './connections.js'
import { TableWatch } from './watch.js'

/** @import { Consumer, ConsumerContext, Message } from '../contract.js' */
/** @import { Connection } from './connections.js' */
/** @import { Dsn } from '../../../config/postgres-dsn.js' */

/** @typedef {Message & {id: string, since: number | undefined}} Row */
/** @typedef {'more' | 'idle' | 'retry'} TurnEnd more: there may be further rows; retry: a command failed */

const START_TIMEOUT_MS = 10_000
/** A node that waits for the lock of another one looks up that often, ms. */
const LOCK_TIMEOUT_MS = 5000
/** A node that stands still within its transaction loses it, and with it the lock, ms. */
const STILL_TIMEOUT_MS = 60_000
/** No command begins later in a turn, ms: well below STILL_TIMEOUT_MS. */
const TURN_MS = 10_000
/** Payloads of a turn, bytes; one more row may go beyond. */
const MAX_TURN_BYTES = 16 * 1024 * 1024
/** A payload that is larger is no command: those of the server API end there, bytes. */
const MAX_PAYLOAD_BYTES = 16 * 1024 * 1024
/** Time for the turns under way at the end, ms. */
const STOP_TIMEOUT_MS = 10_000
/** Connections of a DSN without `pool_max_conns`. */
const DEFAULT_POOL = 4
const LOCK_NOT_AVAILABLE = '55P03'

/** @param {string} text @returns {string} literal of SQL */
const literal = text => `'${text.replaceAll("'", "''")}'`

/** @param {string[]} ids as the server wrote them @returns {string} literal of an array */
const arrayOf = ids => {
  const items = ids.map(id => (/^-?\d+$/.test(id) ? id : `"${id.replaceAll(/["\\]/g, '\\$&')}"`))
  return literal(`{${items.join(',')}}`)
}

/**
 * Reads rows of a partition by their ids: at most as many as the limit, and as many bytes as a turn may have.
 * @param {string} table @param {number} partition @param {number} limit rows @param {boolean} hasTime
 */
function selectRows(table, partition, limit, hasTime) {
  const time = hasTime ? 'extract(epoch FROM created_at)::float8' : 'NULL'
  return `SELECT id, method, CASE WHEN size <= ${MAX_PAYLOAD_BYTES} THEN payload END, time, size FROM (
    SELECT *, sum(size) OVER (ORDER BY id) - size AS before FROM (
      SELECT id, method, payload, ${time} AS time, coalesce(octet_length(payload::text), 0) AS size
      FROM ${table} WHERE partition = ${partition} ORDER BY id LIMIT ${limit}) AS found) AS counted
    WHERE before < ${MAX_TURN_BYTES} ORDER BY id`
}

/** Wakes the loop of a partition. */
class Alarm {
  #rung = false
  /** @type {(() => void) | null} */
  #wake = null

  ring() {
    this.#rung = true
    this.#wake?.()
  }

  /** From now on only later calls count. */
  reset() {
    this.#rung = false
  }

  /** @param {number} ms @returns {Promise<void>} when it rings, or has rung since it was reset; then at the latest */
  async wait(ms) {
    if (this.#rung) return
    await new Promise(resolve => {
      const timer = setTimeout(resolve, ms)
      this.#wake = () => {
        clearTimeout(timer)
        resolve(undefined)
      }
    })
    this.#wake = null
  }
}

/** @implements {Consumer} */
class PostgresConsumer {
  #context
  #options
  /** @type {Dsn} */
  #dsn
  #connections
  #watch
  /** @type {Alarm[]} of each partition */
  #alarms
  #stopping = new AbortController()
  /** Connections whose turn has not got its rows yet. @type {Set<Connection>} */
  #reading = new Set()
  /** @type {Promise<void>[]} */
  #loops = []

  /** @param {ConsumerContext} context */
  constructor(context) {
    this.#context = context
    const { options } = context
    this.#options = options
    this.#dsn = parseDsn(options.dsn)
    this.#connections = new Connections(() => this.#connect(), this.#dsn.poolMax || DEFAULT_POOL)
    this.#alarms = Array.from({ length: options.num_partitions }, () => new Alarm())
    const watchDsn = options.partition_notification_dsn || options.dsn
    this.#watch = new TableWatch(context, {
      connect: () => connect(parseDsn(watchDsn), options.tls),
      notified: partition => this.#alarms[partition].ring(),
    })
  }

  /** @returns {Promise<Connection>} */
  async #connect() {
    const connection = await connect(this.#dsn, this.#options.tls)
    try {
      const table = `to_regclass(${literal(this.#options.outbox_table_name)})`
      const [{ rows }] = await connection.query(
        `SELECT ${table} IS NOT NULL, EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = ${table}
         AND attname = 'created_at' AND atttypid = 'timestamptz'::regtype AND NOT attisdropped)`,
      )
      connection.hasTable = rows[0][0] === 't'
      connection.hasTime = rows[0][1] === 't'
      return connection
    } catch (error) {
      connection.destroy()
      throw error
    }
  }

  async start() {
    const late = `PostgreSQL did not answer within ${START_TIMEOUT_MS / 1000} s`
    try {
      const connection = await limited(this.#connections.lend(), START_TIMEOUT_MS, late)
      const { outbox_table_name } = this.#options
      if (!connection.hasTable)
        this.#context.log.warn(
          { outbox_table_name },
          'the database has no table of this name: create it, or correct outbox_table_name',
        )
      this.#connections.giveBack(connection, true)
    } catch (error) {
      await this.#connections.close()
      throw error
    }
    this.#watch.start()
    this.#loops = this.#alarms.map((_, partition) => this.#loop(partition))
  }

  async stop() {
    this.#stopping.abort()
    for (const alarm of this.#alarms) alarm.ring()
    // No message of theirs is in work: what they wait for may be the lock of another node.
    for (const connection of this.#reading) connection.destroy()
    const late = setTimeout(() => void this.#connections.close(), STOP_TIMEOUT_MS)
    await Promise.all([...this.#loops, this.#watch.stop()])
    clearTimeout(late)
    await this.#connections.close()
  }

  /** @param {number} partition */
  async #loop(partition) {
    const { signal } = this.#stopping
    const alarm = this.#alarms[partition]
    let tries = 0
    while (!signal.aborted) {
      alarm.reset()
      /** @type {TurnEnd} */
      let end = 'retry'
      try {
        end = await this.#turn(partition)
      } catch (error) {
        if (signal.aborted) return
        this.#context.failed(error)
      }
      if (signal.aborted) return
      tries = end === 'retry' ? tries + 1 : 0
      if (end === 'retry') await this.#context.backoff(tries, signal)
      else if (end === 'idle') await alarm.wait(this.#options.partition_poll_interval)
    }
  }

  /**
   * @param {number} partition
   * @returns {Promise<TurnEnd>} rejects when the server fails; what was deleted is unknown then
   */
  async #turn(partition) {
    const connection = await this.#connections.lend()
    let ended = false
    try {
      const rows = await this.#begin(connection, partition)
      if (rows === null) {
        await connection.query('ROLLBACK')
        ended = true
        return this.#options.use_try_lock ? 'idle' : 'more'
      }
      const limit = performance.now() + TURN_MS
      const { finished, failed } = await runInOrder(
        rows,
        row => this.#context.handle(row, row.since),
        () => this.#stopping.signal.aborted || performance.now() > limit,
      )
      const { outbox_table_name: table, partition_select_limit: most } = this.#options
      const ids = arrayOf(finished.map(({ id }) => id))
      const remove = `DELETE FROM ${table} WHERE partition = ${partition} AND id = ANY(${ids});`
      await connection.query(`${finished.length > 0 ? remove : ''}COMMIT`)
      ended = true
      if (failed) return 'retry'
      return rows.length === most || rows.cut || finished.length < rows.length ? 'more' : 'idle'
    } finally {
      this.#connections.giveBack(connection, ended)
    }
  }

  /**
   * @param {Connection} connection @param {number} partition
   * @returns {Promise<(Row[] & {cut: boolean}) | null>} null: another node has the lock. cut: bytes ended the list
   */
  async #begin(connection, partition) {
    const { outbox_table_name: table, partition_select_limit: limit, use_try_lock: trial } = this.#options
    const { name } = this.#context
    const key = `hashtext(${literal(`centrifugo_partition_lock_${name}${partition}`)})`
    const select = selectRows(table, partition, limit, connection.hasTime)
    const begin = `BEGIN; SET LOCAL idle_in_transaction_session_timeout = ${STILL_TIMEOUT_MS};`
    this.#reading.add(connection)
    try {
      // The rows are read by a statement of its own: one with the lock would see the table as it was before the lock.
      if (!trial) {
        const lock = `SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}; SELECT pg_advisory_xact_lock(${key})`
        const results = await connection.query(
          `${begin} ${lock}; SET LOCAL lock_timeout TO DEFAULT; ${select}`,
        )
        return this.#rowsOf(results[results.length - 1].rows)
      }
      const results = await connection.query(`${begin} SELECT pg_try_advisory_xact_lock(${key})`)
      if (results[results.length - 1].rows[0][0] !== 't') return null
      const [{ rows }] = await connection.query(select)
      return this.#rowsOf(rows)
    } catch (error) {
      if (error.code === LOCK_NOT_AVAILABLE && connection.error === null) return null
      throw error
    } finally {
      this.#reading.delete(connection)
    }
  }

  /** @param {any[][]} found @returns {Row[] & {cut: boolean}} */
  #rowsOf(found) {
    let bytes = 0
    const rows = found.map(([id, method, payload, time, size]) => {
      bytes += Number(size)
      if (payload === null && Number(size) > 0)
        this.#context.log.warn({ id, bytes: Number(size), max: MAX_PAYLOAD_BYTES }, 'row is too large')
      const since = time === null ? Number.NaN : Number(time) * 1000
      return {
        id,
        method: method ?? '',
        payload,
        headers: Object.create(null),
        since: Number.isFinite(since) ? since : undefined,
      }
    })
    return Object.assign(rows, { cut: bytes >= MAX_TURN_BYTES })
  }
}

/** @param {ConsumerContext} context @returns {Consumer} */
export const create = context => new PostgresConsumer(context)
