// One more connection to the database of an outbox table: it hears notifications, counts the rows that wait, and finds
// those that no loop will ever take.

import { pause } from '../timing.js'

/** @import { ConsumerContext } from '../contract.js' */
/** @import { Connection } from './connections.js' */

const RECONNECT_MS = 1000
const CHECK_MS = 5000
/** Rows counted at most: the count shall cost little, however many wait. */
const MAX_COUNTED = 100_000
const PARTITION = /^\d{1,9}$/

/** @typedef {{connect: () => Promise<Connection>, notified: (partition: number) => void}} Parts */

export class TableWatch {
  #context
  #options
  #parts
  #stopping = new AbortController()
  /** @type {Connection | null} */
  #connection = null
  /** @type {Promise<void>} */
  #running = Promise.resolve()
  /** Partition that was warned of last. */
  #warned = ''

  /** @param {ConsumerContext} context @param {Parts} parts */
  constructor(context, parts) {
    this.#context = context
    this.#options = context.options
    this.#parts = parts
  }

  start() {
    this.#running = this.#run()
  }

  async stop() {
    this.#stopping.abort()
    this.#connection?.destroy()
    await this.#running
  }

  async #run() {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      try {
        await this.#watch()
      } catch (error) {
        if (signal.aborted) return
        this.#context.failed(error)
      }
      await pause(RECONNECT_MS, signal)
    }
  }

  /** Rejects when the connection is lost. */
  async #watch() {
    const connection = await this.#parts.connect()
    if (this.#stopping.signal.aborted) return connection.destroy()
    this.#connection = connection
    const lost = new AbortController()
    connection.client.on('end', () => lost.abort())
    const signal = AbortSignal.any([this.#stopping.signal, lost.signal])
    try {
      await this.#listen(connection)
      while (connection.error === null && !signal.aborted) {
        await this.#check(connection)
        await pause(CHECK_MS, signal)
      }
      if (connection.error !== null) throw connection.error
    } finally {
      this.#connection = null
      connection.destroy()
    }
  }

  /** @param {Connection} connection */
  async #listen(connection) {
    const { partition_notification_channel: channel, num_partitions: partitions } = this.#options
    if (channel === '') return
    connection.client.on('notification', (/** @type {{payload?: string}} */ { payload = '' }) => {
      if (PARTITION.test(payload) && Number(payload) < partitions)
        return this.#parts.notified(Number(payload))
      const fields = { channel, payload: payload.slice(0, 100), partitions }
      this.#context.log.error(fields, 'notification names no partition of this consumer')
    })
    await connection.query(`LISTEN "${channel.replaceAll('"', '""')}"`)
    // What was notified while nobody listened is not repeated.
    for (let i = 0; i < partitions; i++) this.#parts.notified(i)
  }

  /** @param {Connection} connection */
  async #check(connection) {
    const { outbox_table_name: table, num_partitions: partitions } = this.#options
    let results
    try {
      results = await connection.query(
        `SELECT count(*) FROM (SELECT 1 FROM ${table} LIMIT ${MAX_COUNTED}) AS counted;
         SELECT partition FROM ${table} WHERE partition < 0 LIMIT 1;
         SELECT partition FROM ${table} WHERE partition >= ${partitions} LIMIT 1`,
      )
    } catch (error) {
      if (connection.error !== null) throw error
      // The loops report a missing table. The user of a DSN for notifications may not be allowed to read it.
      this.#context.log.debug({ err: error }, 'rows of the outbox table cannot be counted')
      return
    }
    const [counted, below, beyond] = results
    this.#context.lag(Number(counted.rows[0][0]))
    const [stray = ''] = [...below.rows, ...beyond.rows].map(row => row[0])
    if (stray !== '' && stray !== this.#warned)
      this.#context.log.warn(
        { table, partition: Number(stray), num_partitions: partitions },
        'rows wait in a partition that no node works on: raise num_partitions or correct the rows',
      )
    this.#warned = stray
  }
}
