// Rows of an outbox table in PostgreSQL. A turn is a transaction that locks a partition, reads rows, runs their
// commands and deletes finished rows. Only one node, Halley or Centrifugo, processes a partition at a time.

import { parseDsn } from '../../../config/postgres-dsn.js'
import { runInOrder } from '../messages.js'
import { limited, pause } from '../timing.js'
import { Connections, connect } from './connections.js'

/** @import { Dsn } from '../../../config/postgres-dsn.js' */
/** @import { Consumer, ConsumerContext, Message } from '../contract.js' */
/** @import { Connection } from './connections.js' */

const RECONNECT_MS = 1000
const CHECK_MS = 5000
/** Maximum count of rows, to keep counting cheap. */
const MAX_COUNTED = 100_000
const PARTITION = /^\d{1,9}$/

/**
 * A separate connection: receives notifications, counts pending rows and finds rows outside all partitions.
 * @param {ConsumerContext<'postgresql'>} context @param {() => Promise<Connection>} open
 * @param {(partition: number) => void} notified
 */
function createWatch({ options, log, lag, failed }, open, notified) {
  const { outbox_table_name: table, partition_notification_channel: channel } = options
  const { num_partitions: partitions } = options
  const stopping = new AbortController()
  /** @type {Connection | null} */
  let current = null
  /** @type {Promise<void>} */
  let running = Promise.resolve()
  let warned = ''

  async function run() {
    while (!stopping.signal.aborted) {
      try {
        await watch()
      } catch (error) {
        if (stopping.signal.aborted) return
        failed(error)
      }
      await pause(RECONNECT_MS, stopping.signal)
    }
  }

  async function watch() {
    const connection = await open()
    if (stopping.signal.aborted) return connection.destroy()
    current = connection
    const lost = new AbortController()
    connection.client.on('end', () => lost.abort())
    const signal = AbortSignal.any([stopping.signal, lost.signal])
    try {
      if (channel !== '') await listen(connection)
      while (connection.error === null && !signal.aborted) {
        await check(connection)
        await pause(CHECK_MS, signal)
      }
      if (connection.error !== null) throw connection.error
    } finally {
      current = null
      connection.destroy()
    }
  }

  /** @param {Connection} connection */
  async function listen(connection) {
    connection.client.on('notification', (/** @type {{payload?: string}} */ { payload = '' }) => {
      if (PARTITION.test(payload) && Number(payload) < partitions) return notified(Number(payload))
      const fields = { channel, payload: payload.slice(0, 100), partitions }
      log.error(fields, 'notification for an unknown partition')
    })
    await connection.query(`LISTEN "${channel.replaceAll('"', '""')}"`)
    // Earlier notifications are lost.
    for (let i = 0; i < partitions; i++) notified(i)
  }

  /** @param {Connection} connection */
  async function check(connection) {
    let results
    try {
      results = await connection.query(
        `SELECT count(*) FROM (SELECT 1 FROM ${table} LIMIT ${MAX_COUNTED}) AS counted;
         SELECT partition FROM ${table} WHERE partition < 0 LIMIT 1;
         SELECT partition FROM ${table} WHERE partition >= ${partitions} LIMIT 1`,
      )
    } catch (error) {
      if (connection.error !== null) throw error
      // The loops report a missing table. The user of a notification DSN may lack read permission.
      log.debug({ err: error }, 'counting the rows of the outbox table failed')
      return
    }
    const [counted, below, beyond] = results
    lag(Number(counted.rows[0][0]))
    const [stray = ''] = [...below.rows, ...beyond.rows].map(row => row[0])
    if (stray !== '' && stray !== warned)
      log.warn(
        { table, partition: Number(stray), num_partitions: partitions },
        'rows in a partition that no node processes: increase num_partitions or correct the rows',
      )
    warned = stray
  }

  return {
    start() {
      running = run()
    },
    async stop() {
      stopping.abort()
      current?.destroy()
      await running
    },
  }
}

/** @typedef {Message & {id: string, since: number | undefined}} Row */
/** @typedef {'more' | 'idle' | 'retry'} TurnEnd more: rows may remain; retry: a command failed */

const START_TIMEOUT_MS = 10_000
/** Timeout for the partition lock, ms. */
const LOCK_TIMEOUT_MS = 5000
/** Idle timeout after which a hung node loses its transaction and lock, ms. */
const STILL_TIMEOUT_MS = 60_000
/** Latest start of a command in a turn, ms: well below STILL_TIMEOUT_MS. */
const TURN_MS = 10_000
/** Payloads of a turn, bytes; the last row may exceed it. */
const MAX_TURN_BYTES = 16 * 1024 * 1024
/** Maximum payload, as in the server API, bytes. */
const MAX_PAYLOAD_BYTES = 16 * 1024 * 1024
const STOP_TIMEOUT_MS = 10_000
const DEFAULT_POOL = 4
const LOCK_NOT_AVAILABLE = '55P03'

/** @param {string} text @returns {string} SQL literal */
const literal = text => `'${text.replaceAll("'", "''")}'`

/** @param {string[]} ids as the server wrote them @returns {string} array literal */
const arrayOf = ids => {
  const items = ids.map(id => (/^-?\d+$/.test(id) ? id : `"${id.replaceAll(/["\\]/g, '\\$&')}"`))
  return literal(`{${items.join(',')}}`)
}

/**
 * Query for rows of a partition by id, within the limits of a turn.
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

class Alarm {
  #rung = new AbortController()

  ring() {
    this.#rung.abort()
  }

  /** Discards earlier calls of `ring`. */
  reset() {
    if (this.#rung.signal.aborted) this.#rung = new AbortController()
  }

  /** @param {number} ms @returns {Promise<void>} when it rings or has rung since `reset`, or on timeout */
  wait(ms) {
    return pause(ms, this.#rung.signal)
  }
}

/** @param {ConsumerContext<'postgresql'>} context @returns {Consumer} */
export function create(context) {
  const { options } = context
  const { outbox_table_name: table, partition_select_limit: limit } = options
  const dsn = parseDsn(options.dsn)
  const connections = new Connections(openConnection, dsn.poolMax || DEFAULT_POOL)
  const alarms = Array.from({ length: options.num_partitions }, () => new Alarm())
  const watchDsn = parseDsn(options.partition_notification_dsn || options.dsn)
  const openWatch = () => connect(watchDsn, options.tls)
  const watch = createWatch(context, openWatch, partition => alarms[partition].ring())
  const stopping = new AbortController()
  const { signal } = stopping
  /** Connections of turns without rows yet. @type {Set<Connection>} */
  const reading = new Set()
  /** @type {Promise<void>[]} */
  let loops = []

  async function openConnection() {
    const connection = await connect(dsn, options.tls)
    try {
      const name = `to_regclass(${literal(table)})`
      const [{ rows }] = await connection.query(
        `SELECT ${name} IS NOT NULL, EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = ${name}
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

  /** @param {number} partition */
  async function loop(partition) {
    const alarm = alarms[partition]
    let tries = 0
    while (!signal.aborted) {
      alarm.reset()
      /** @type {TurnEnd} */
      let end = 'retry'
      try {
        end = await turn(partition)
      } catch (error) {
        if (signal.aborted) return
        context.failed(error)
      }
      if (signal.aborted) return
      tries = end === 'retry' ? tries + 1 : 0
      if (end === 'retry') await context.backoff(tries, signal)
      else if (end === 'idle') await alarm.wait(options.partition_poll_interval)
    }
  }

  /** @param {number} partition @returns {Promise<TurnEnd>} rejects when the server fails: rows may have been deleted */
  async function turn(partition) {
    const connection = await connections.lend()
    let ended = false
    try {
      const rows = await begin(connection, partition)
      if (rows === null) {
        await connection.query('ROLLBACK')
        ended = true
        return options.use_try_lock ? 'idle' : 'more'
      }
      const deadline = performance.now() + TURN_MS
      const { finished, failed } = await runInOrder(
        rows,
        row => context.handle(row, row.since),
        () => signal.aborted || performance.now() > deadline,
      )
      const ids = arrayOf(finished.map(({ id }) => id))
      const remove = `DELETE FROM ${table} WHERE partition = ${partition} AND id = ANY(${ids});`
      await connection.query(`${finished.length > 0 ? remove : ''}COMMIT`)
      ended = true
      if (failed) return 'retry'
      return rows.length === limit || rows.cut || finished.length < rows.length ? 'more' : 'idle'
    } finally {
      connections.giveBack(connection, ended)
    }
  }

  /**
   * @param {Connection} connection @param {number} partition
   * @returns {Promise<(Row[] & {cut: boolean}) | null>} null: locked by another node. cut: by the byte limit
   */
  async function begin(connection, partition) {
    const key = `hashtext(${literal(`centrifugo_partition_lock_${context.name}${partition}`)})`
    const select = selectRows(table, partition, limit, connection.hasTime)
    const begin = `BEGIN; SET LOCAL idle_in_transaction_session_timeout = ${STILL_TIMEOUT_MS};`
    reading.add(connection)
    try {
      // The rows need a separate statement: the snapshot of the locking one predates the lock.
      if (!options.use_try_lock) {
        const lock = `SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}; SELECT pg_advisory_xact_lock(${key})`
        const results = await connection.query(
          `${begin} ${lock}; SET LOCAL lock_timeout TO DEFAULT; ${select}`,
        )
        return rowsOf(results[results.length - 1].rows)
      }
      const results = await connection.query(`${begin} SELECT pg_try_advisory_xact_lock(${key})`)
      if (results[results.length - 1].rows[0][0] !== 't') return null
      const [{ rows }] = await connection.query(select)
      return rowsOf(rows)
    } catch (error) {
      if (error.code === LOCK_NOT_AVAILABLE && connection.error === null) return null
      throw error
    } finally {
      reading.delete(connection)
    }
  }

  /** @param {any[][]} found @returns {Row[] & {cut: boolean}} */
  function rowsOf(found) {
    let bytes = 0
    const rows = found.map(([id, method, payload, time, size]) => {
      bytes += Number(size)
      if (payload === null && Number(size) > 0)
        context.log.warn({ id, bytes: Number(size), max: MAX_PAYLOAD_BYTES }, 'row is too large')
      const written = time === null ? Number.NaN : Number(time) * 1000
      const since = Number.isFinite(written) ? written : undefined
      return { id, method: method ?? '', payload, headers: Object.create(null), since }
    })
    return Object.assign(rows, { cut: bytes >= MAX_TURN_BYTES })
  }

  return {
    async start() {
      const late = `no response from PostgreSQL within ${START_TIMEOUT_MS / 1000} s`
      try {
        const connection = await limited(connections.lend(), START_TIMEOUT_MS, late)
        if (!connection.hasTable)
          context.log.warn(
            { outbox_table_name: table },
            'the outbox table does not exist: create it or correct outbox_table_name',
          )
        connections.giveBack(connection, true)
      } catch (error) {
        await connections.close()
        throw error
      }
      watch.start()
      loops = alarms.map((_, partition) => loop(partition))
    },
    async stop() {
      stopping.abort()
      for (const alarm of alarms) alarm.ring()
      // No messages in progress; they may be waiting for a lock.
      for (const connection of reading) connection.destroy()
      const late = setTimeout(() => void connections.close(), STOP_TIMEOUT_MS)
      await Promise.all([...loops, watch.stop()])
      clearTimeout(late)
      await connections.close()
    },
  }
}
