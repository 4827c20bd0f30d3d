// The lifecycle log: connects, subscribes, unsubscribes and disconnects of all clients, in a file, a Redis stream or a
// webhook. A worker sends them to its primary (recorder.js), which writes the log and keeps a journal of who is
// connected (journal.js): it logs the disconnects of a worker that dies. With Redis, another node logs those of a dead
// node (takeover.js). May import broker, config and log. Promises, as docs/lifecycle.md has them: every logged connect
// gets a logged disconnect, memory is bounded, dropped events are counted, and no sink disturbs clients or another
// sink.

import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises'
import { disconnects } from '../../base/errors.js'
import { LimitedLog } from '../../base/log.js'
import { openLifecycleStore } from '../../channels/broker/index.js'
import { lifecycleRedis, logsLifecycle } from '../../config/lifecycle.js'
import { FileDestination } from './file.js'
import { Journal, JournalClient, WorkerJournal } from './journal.js'
import { Sink } from './sink.js'
import { StreamDestination } from './stream.js'
import { Takeover } from './takeover.js'
import { WebhookDestination } from './webhook.js'

/** @import { Config } from '../../config/options.js' */
/** @import { Logger } from 'pino' */
/** @import { Readable } from 'node:stream' */
/** @import { NodeIdentity } from '../api/context.js' */
/** @import { LifecycleFigures } from '../../metrics/schema.js' */
/** @import { Destination } from './sink.js' */

/** Time for the sinks when the gateway ends, ms. */
const CLOSE_MS = 5000
/** Disconnects of a dead worker that are logged in one turn of the event loop. */
const SLICE = 200
/** Time between two looks whether the sinks have room, ms. */
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
  /** @type {Set<Promise<void>>} workers whose ends are being logged, or which live */
  #attached = new Set()
  /** @type {import('../../channels/broker/redis/lifecycle.js').LifecycleStore | null} */
  #store = null
  /** @type {Takeover | null} */
  #takeover = null
  #number = 0
  #workerDropped = 0
  #hurries = false
  #closed = false

  /**
   * @param {Config} config @param {NodeIdentity} node @param {Logger} log @param {() => number} clock unix ms
   */
  constructor({ lifecycle }, node, log, clock) {
    this.#node = node
    this.#clock = clock
    this.#log = new LimitedLog(log)
    this.#events = new Set(lifecycle.events)
    this.#journal = new Journal(lifecycle.journal_max_bytes)
  }

  /**
   * Opens the log, and begins it with a record of the start.
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
    if (webhook.url !== '') destinations.push(new WebhookDestination(webhook, this.#node.uid, this.#clock))
    if (redis.stream && this.#store !== null)
      destinations.push(new StreamDestination(this.#store, redis.max_length, () => this.#takeover?.flush()))
    this.#sinks = destinations.map(
      destination =>
        new Sink({
          destination,
          maxBytes: queue_max_bytes,
          makeDropped: (events, since, until, reason) =>
            this.#record('dropped', this.#clock(), { events, since, until, reason }),
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
        disconnected: (node, id, client) => this.#gone(id, client, client.worker, NODE_DIED, node),
        settled: () => this.#settled(),
        recorded: async () => this.#sinks.find(({ name }) => name === StreamDestination.NAME)?.settled(),
      })
    }
    this.#store?.connect()
    this.#write(this.#record('started', this.#clock(), {}))
  }

  *#allClients() {
    for (const worker of this.#workers) yield* worker.entries()
  }

  /** Resolves when the sinks have what they got until now. One that fails holds the others up only if all do. */
  async #settled() {
    const open = new Set(this.#sinks)
    const all = Promise.all(this.#sinks.map(sink => sink.settled().then(() => open.delete(sink))))
    const waits = () => open.size === this.#sinks.length || [...open].some(({ failure }) => failure === null)
    while (open.size > 0 && waits() && !this.#closed) await Promise.race([all, wait(ROOM_MS)])
  }

  /** A record of the log itself. @param {string} type @param {number} time @param {object} fields */
  #record(type, time, fields) {
    const { uid, name } = this.#node
    return JSON.stringify({
      id: `${uid}-${++this.#number}`,
      time,
      type,
      node: uid,
      node_name: name,
      ...fields,
    })
  }

  /** @param {string} record */
  #write(record) {
    for (const sink of this.#sinks) sink.add(record)
  }

  /**
   * An event of a client.
   * @param {string} type @param {string} suffix of its id: an end has the same id, whoever logs it
   * @param {number} time unix ms @param {number} worker index
   * @param {string} client id @param {string} user @param {object} fields
   */
  #event(type, suffix, time, worker, client, user, fields) {
    if (this.#events.size > 0 && !this.#events.has(type)) return
    const node = this.#node.uid
    this.#write(
      JSON.stringify({ id: `${client}-${suffix}`, time, type, node, worker, client, user, ...fields }),
    )
  }

  /**
   * The end of a client that nobody has reported.
   * @param {string} id @param {JournalClient} client @param {number} worker index
   * @param {{code: number, reason: string}} end @param {string} [node] that it was connected to
   */
  #gone(id, client, worker, { code, reason }, node = this.#node.uid) {
    const time = this.#clock()
    this.#event('disconnected', 'd', time, worker, id, client.user, {
      node,
      transport: client.transport,
      code,
      reason,
      duration: Math.max(0, time - client.time),
      channels: client.channelList,
      logged_by: this.#node.uid,
    })
  }

  /**
   * Reads the events of a worker.
   * @param {Readable} pipe from the worker @param {number} index of its slot
   * @param {Promise<{clean: boolean}>} ended when the process has ended
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
    // Its last events may be read after its end. What follows the last line feed was never finished.
    const closed = new Promise(resolve => pipe.once('close', resolve))
    const logged = Promise.all([ended, closed]).then(([{ clean }]) => this.#workerEnded(worker, index, clean))
    this.#attached.add(logged)
    logged.then(() => this.#attached.delete(logged))
  }

  /** @param {WorkerJournal} worker @param {number} index @param {any[]} event see recorder.js */
  #read(worker, index, [kind, time, id, user, ...more]) {
    const takeover = this.#takeover
    switch (kind) {
      case 'c': {
        const [transport] = more
        const client = new JournalClient(index, time, user, transport)
        if (worker.add(id, client)) takeover?.set(id, client)
        else this.#log.warn({}, 'lifecycle.journal_max_bytes is reached: clients are missing in the journal')
        return this.#event('connected', 'c', time, index, id, user, { transport })
      }
      case 's': {
        const [channel] = more
        const client = worker.get(id)
        if (client !== undefined) {
          worker.subscribe(client, channel)
          takeover?.set(id, client)
        }
        return this.#event('subscribed', this.#next(), time, index, id, user, { channel })
      }
      case 'u': {
        const [channel, code, reason] = more
        const client = worker.get(id)
        if (client !== undefined) {
          worker.unsubscribe(client, channel)
          takeover?.set(id, client)
        }
        return this.#event('unsubscribed', this.#next(), time, index, id, user, { channel, code, reason })
      }
      case 'd': {
        const [transport, code, reason, since, channels] = more
        const client = worker.remove(id)
        if (client !== undefined) takeover?.delete(id, client)
        const duration = Math.max(0, time - (client?.time ?? (since || time)))
        const fields = { transport, code, reason, duration, channels }
        return this.#event('disconnected', 'd', time, index, id, user, fields)
      }
      case 'x': {
        // Here the fields are: number, since, until.
        this.#workerDropped += time
        const fields = { events: time, since: id, until: user, reason: 'worker_behind', worker: index }
        this.#log.warn({ worker: index, events: time }, 'a worker has dropped lifecycle events')
        return this.#write(this.#record('dropped', this.#clock(), fields))
      }
    }
  }

  /** @returns {string} */
  #next() {
    return String(++this.#number)
  }

  /** @param {WorkerJournal} worker @param {number} index @param {boolean} clean */
  async #workerEnded(worker, index, clean) {
    const end = clean ? disconnects.shutdown : WORKER_DIED
    let count = 0
    for (const [id] of worker.entries()) {
      const client = /** @type {JournalClient} */ (worker.remove(id))
      this.#gone(id, client, index, end)
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

  /** Logs the rest after the end of all workers, and waits some seconds for the sinks. */
  async close() {
    const late = setTimeout(() => (this.#hurries = true), CLOSE_MS)
    await Promise.all(this.#attached)
    clearTimeout(late)
    this.#write(this.#record('stopped', this.#clock(), {}))
    await Promise.all(this.#sinks.map(sink => sink.close(CLOSE_MS)))
    this.#closed = true
    await this.#takeover?.close()
    this.#store?.close()
  }
}
