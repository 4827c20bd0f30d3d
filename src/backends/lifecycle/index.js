// The lifecycle log (docs/lifecycle.md): connects, subscribes, unsubscribes and disconnects of all clients. Workers
// send events to the primary (recorder.js). It writes the log and keeps a journal of connected clients (journal.js) to
// log the disconnects of a dead worker. With Redis, another node logs those of a dead node (takeover.js).

import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises'
import { disconnects } from '../../base/errors.js'
import { LimitedLog } from '../../base/log.js'
import { openLifecycleStore } from '../../channels/broker/index.js'
import { lifecycleRedis, logsLifecycle } from '../../config/lifecycle.js'
import { FileDestination, streamDestination, webhookDestination } from './destinations.js'
import { Journal, JournalClient, WorkerJournal } from './journal.js'
import { Sink } from './sink.js'
import { Takeover } from './takeover.js'

/** @import { StateEvent } from '../../channels/broker/contract.js' */
/** @import { Config } from '../../config/options.js' */
/** @import { Logger } from 'pino' */
/** @import { Readable } from 'node:stream' */
/** @import { NodeIdentity } from '../api/context.js' */
/** @import { LifecycleFigures } from '../../metrics/schema.js' */
/** @import { Destination } from './sink.js' */

const CLOSE_MS = 5000
/** Disconnects of a dead worker logged per event-loop turn. */
const SLICE = 200
const ROOM_MS = 20

const WORKER_DIED = Object.freeze({ code: 0, reason: 'worker died' })
const NODE_DIED = Object.freeze({ code: 0, reason: 'node died' })

export class LifecycleLog {
  #node
  #clock
  #events
  #log
  #journal
  /** @type {Sink[]} */
  #sinks = []
  /** @type {Set<WorkerJournal>} */
  #workers = new Set()
  /** Running workers, and those whose disconnects are being logged. @type {Set<Promise<void>>} */
  #attached = new Set()
  /** @type {import('../../channels/broker/redis/lifecycle.js').LifecycleStore | null} */
  #store = null
  /** @type {Takeover | null} */
  #takeover = null
  #number = 0
  #workerDropped = 0
  #hurries = false
  #closed = false

  /** @param {Config} config @param {NodeIdentity} node @param {Logger} log @param {() => number} clock unix ms */
  constructor({ lifecycle }, node, log, clock) {
    this.#node = node
    this.#clock = clock
    this.#log = new LimitedLog(log)
    this.#events = new Set(lifecycle.events)
    this.#journal = new Journal(lifecycle.journal_max_bytes)
  }

  /**
   * @param {Config} config @param {NodeIdentity} node @param {Logger} log @param {() => number} [clock] unix ms
   * @returns {Promise<LifecycleLog | null>} null: no sink is configured
   */
  static async open(config, node, log, clock = Date.now) {
    if (!logsLifecycle(config)) return null
    const lifecycle = new LifecycleLog(config, node, log, clock)
    await lifecycle.#open(config, log)
    return lifecycle
  }

  /** @param {Config} config @param {Logger} log */
  async #open(config, log) {
    const { file, webhook, redis, queue_max_bytes } = config.lifecycle
    const server = lifecycleRedis(config)
    if (server !== null && (redis.stream || redis.takeover)) {
      this.#store = await openLifecycleStore({
        redis: server,
        node: this.#node.uid,
        onChange: up => this.#takeover?.changed(up),
        log,
      })
    }
    /** @type {Destination[]} */
    const destinations = []
    if (file.path !== '') destinations.push(new FileDestination(file.path))
    if (webhook.url !== '') destinations.push(webhookDestination(webhook, this.#node.uid, this.#clock))
    if (redis.stream && this.#store !== null)
      destinations.push(streamDestination(this.#store, redis.max_length, () => this.#takeover?.flush()))
    this.#sinks = destinations.map(
      destination =>
        new Sink({
          destination,
          maxBytes: queue_max_bytes,
          makeDropped: (events, since, until, reason) =>
            this.#record('dropped', { events, since, until, reason }),
          log: this.#log,
          clock: this.#clock,
        }),
    )
    if (this.#store !== null && redis.takeover) {
      this.#takeover = new Takeover({
        store: this.#store,
        delay: redis.takeover_delay,
        log: this.#log,
        readAll: () => this.#allClients(),
        disconnected: (node, id, client) => this.#logDisconnect(id, client, NODE_DIED, node),
        settled: () => this.#settled(),
        recorded: async () => this.#sinks.find(({ name }) => name === 'redis')?.settled(),
      })
    }
    this.#store?.connect()
    this.#write(this.#record('started', {}))
  }

  *#allClients() {
    for (const worker of this.#workers) yield* worker.entries()
  }

  /** Resolves when the sinks have written all records so far. Ignores failing sinks unless all fail. */
  async #settled() {
    const open = new Set(this.#sinks)
    const all = Promise.all(this.#sinks.map(sink => sink.settled().then(() => open.delete(sink))))
    const waits = () => open.size === this.#sinks.length || [...open].some(({ failure }) => failure === null)
    while (open.size > 0 && waits() && !this.#closed) await Promise.race([all, wait(ROOM_MS)])
  }

  /** A record of the log itself. @param {string} type @param {object} fields */
  #record(type, fields) {
    const time = this.#clock()
    const { uid: node, name: node_name } = this.#node
    return JSON.stringify({ id: `${node}-${++this.#number}`, time, type, node, node_name, ...fields })
  }

  /** @param {string} record */
  #write(record) {
    for (const sink of this.#sinks) sink.add(record)
  }

  /**
   * @param {Config['lifecycle']['events'][number]} type
   * @param {string | number} suffix of its id; equal if two nodes log a disconnect
   * @param {{time: number, worker: number, client: string, user: string} & Record<string, any>} fields time in unix ms
   */
  #event(type, suffix, { time, ...fields }) {
    if (this.#events.size > 0 && !this.#events.has(type)) return
    this.#write(
      JSON.stringify({ id: `${fields.client}-${suffix}`, time, type, node: this.#node.uid, ...fields }),
    )
  }

  /** A channel got its first client, or has lost its last one. @param {StateEvent} event */
  channelState({ id, type, channel, time_ms: time }) {
    if (this.#events.size > 0 && !this.#events.has(type)) return
    this.#write(JSON.stringify({ id, time, type, node: this.#node.uid, channel }))
  }

  /**
   * Logs a disconnect not reported by the worker; `node`: the one of the connection.
   * @param {string} id @param {JournalClient} client
   * @param {{code: number, reason: string}} end @param {string} [node]
   */
  #logDisconnect(id, client, { code, reason }, node = this.#node.uid) {
    const { user, worker, transport } = client
    const time = this.#clock()
    const duration = Math.max(0, time - client.time)
    const end = { transport, code, reason, duration, channels: client.channelList, logged_by: this.#node.uid }
    this.#event('disconnected', 'd', { time, worker, client: id, user, node, ...end })
  }

  /**
   * @param {Readable} pipe from the worker @param {number} index of its slot
   * @param {Promise<{clean: boolean}>} ended when the process has exited
   */
  attach(pipe, index, ended) {
    const worker = new WorkerJournal(this.#journal)
    this.#workers.add(worker)
    let rest = ''
    pipe.setEncoding('utf8')
    pipe.on('data', (/** @type {string} */ text) => {
      const lines = (rest + text).split('\n')
      rest = /** @type {string} */ (lines.pop())
      for (const line of lines) this.#read(worker, index, JSON.parse(line))
    })
    pipe.on('error', () => {})
    // The last events may be read after the exit. An incomplete last line is ignored.
    const closed = new Promise(resolve => pipe.once('close', resolve))
    const logged = Promise.all([ended, closed]).then(([{ clean }]) => this.#workerEnded(worker, clean))
    this.#attached.add(logged)
    logged.then(() => this.#attached.delete(logged))
  }

  /** @param {WorkerJournal} journal @param {number} worker index @param {any[]} event see recorder.js */
  #read(journal, worker, [kind, time, id, user, ...more]) {
    const takeover = this.#takeover
    const head = { time, worker, client: id, user }
    if (kind === 'c') {
      const [transport] = more
      const client = new JournalClient(worker, time, user, transport)
      if (journal.add(id, client)) takeover?.set(id, client)
      else this.#log.warn({}, 'lifecycle.journal_max_bytes reached: the journal is incomplete')
      this.#event('connected', 'c', { ...head, transport })
    } else if (kind === 's' || kind === 'u') {
      const [channel, code, reason] = more
      const client = journal.get(id)
      if (client !== undefined) {
        if (kind === 's') journal.subscribe(client, channel)
        else journal.unsubscribe(client, channel)
        takeover?.set(id, client)
      }
      const type = kind === 's' ? 'subscribed' : 'unsubscribed'
      // JSON omits undefined `code` and `reason` of a subscribe.
      this.#event(type, ++this.#number, { ...head, channel, code, reason })
    } else if (kind === 'd') {
      const [transport, code, reason, since, channels] = more
      const client = journal.remove(id)
      if (client !== undefined) takeover?.delete(id, client)
      const duration = Math.max(0, time - (client?.time ?? (since || time)))
      this.#event('disconnected', 'd', { ...head, transport, code, reason, duration, channels })
    } else if (kind === 'o') {
      this.channelState(time)
    } else if (kind === 'x') {
      // Fields: number of events, since, until.
      const [events, since, until] = [time, id, user]
      this.#workerDropped += events
      this.#log.warn({ worker, events }, 'worker dropped lifecycle events')
      this.#write(this.#record('dropped', { events, since, until, reason: 'worker_behind', worker }))
    }
  }

  /** @param {WorkerJournal} worker @param {boolean} clean */
  async #workerEnded(worker, clean) {
    const end = clean ? disconnects.shutdown : WORKER_DIED
    let count = 0
    for (const [id] of worker.entries()) {
      const client = /** @type {JournalClient} */ (worker.remove(id))
      this.#logDisconnect(id, client, end)
      this.#takeover?.delete(id, client)
      if (++count % SLICE > 0) continue
      await turn()
      while (!this.#hurries && !this.#sinks.every(({ ready }) => ready)) await wait(ROOM_MS)
    }
    this.#workers.delete(worker)
  }

  /** @returns {LifecycleFigures} */
  get figures() {
    const { clients, bytes, refused } = this.#journal
    const sinks = this.#sinks.map(({ name, written, dropped, bytes: queue_bytes, failure }) => [
      name,
      { written, dropped: { ...dropped }, queue_bytes, failing: failure !== null },
    ])
    return {
      journal: { clients, bytes, refused },
      worker_dropped: this.#workerDropped,
      taken_over: this.#takeover?.taken ?? 0,
      sinks: Object.fromEntries(sinks),
    }
  }

  /** Logs remaining events after all workers exit; waits some seconds for the sinks. */
  async close() {
    const late = setTimeout(() => (this.#hurries = true), CLOSE_MS)
    await Promise.all(this.#attached)
    clearTimeout(late)
    this.#write(this.#record('stopped', {}))
    await Promise.all(this.#sinks.map(sink => sink.close(CLOSE_MS)))
    this.#closed = true
    await this.#takeover?.close()
    this.#store?.close()
  }
}
