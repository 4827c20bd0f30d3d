import { setTimeout as wait } from 'node:timers/promises'
import { JournalClient } from './journal.js'
import { within } from './sink.js'

/** @import { LifecycleStore } from '../../channels/broker/redis/lifecycle.js' */
/** @import { Log } from '../../base/log.js' */

const GATHER_MS = 50
const MAX_CLIENTS = 500
/** Disconnected clients waiting for the stream. */
const MAX_DISCONNECTED = 100_000
/** Beats within `lifecycle.redis.takeover_delay`. */
const BEATS = 5
const LEAVE_MS = 1000

/**
 * `delay`: ms; `readAll`: the journal; `settled` resolves when the sinks have written all records so far; `recorded`:
 * when the stream has.
 * @typedef {{store: LifecycleStore, delay: number, log: Log, readAll: () => Iterable<[string, JournalClient]>,
 *   disconnected: (node: string, id: string, client: JournalClient) => void,
 *   settled: () => Promise<void>, recorded: () => Promise<void>}} TakeoverParts
 */

/**
 * Copies the journal of this node to Redis and logs the disconnects of dead nodes: without a heartbeat for the delay,
 * while this node was connected to Redis throughout.
 *
 *   journal --change--> changes --50 ms, or the next batch of the stream--> Redis
 */
export class Takeover {
  #parts
  #store
  /** Changes not in Redis yet; null: disconnected. @type {Map<string, JournalClient | null>} */
  #changes = new Map()
  /** Disconnected clients; kept in Redis until the stream has the disconnect. @type {string[]} */
  #disconnected = []
  #forgetting = false
  /** @type {NodeJS.Timeout | undefined} */
  #flushTimer
  #beatTimer
  #upSince = 0
  #hadHeartbeat = false
  #taking = false
  #closed = false
  taken = 0

  /** @param {TakeoverParts} parts */
  constructor(parts) {
    this.#parts = parts
    this.#store = parts.store
    this.#beatTimer = setInterval(() => this.#beat(), parts.delay / BEATS)
  }

  /** Redis has become reachable or unreachable. @param {boolean} up */
  changed(up) {
    this.#upSince = up ? performance.now() : 0
    if (!up) return
    this.#beat()
    this.flush()
  }

  /** A client has connected, or its channels have changed. @param {string} id @param {JournalClient} client */
  set(id, client) {
    this.#changes.set(id, client)
    this.#flushSoon()
  }

  /** A client has disconnected. @param {string} id @param {JournalClient} client */
  delete(id, client) {
    this.#changes.delete(id)
    if (!client.stored) return
    // The stream has been failing.
    if (this.#disconnected.length >= MAX_DISCONNECTED) this.#forget(this.#disconnected.splice(0))
    this.#disconnected.push(id)
    if (!this.#forgetting) this.#forgetSoon()
  }

  async #forgetSoon() {
    this.#forgetting = true
    while (this.#disconnected.length > 0) {
      await wait(GATHER_MS)
      const ids = this.#disconnected.splice(0)
      await this.#parts.recorded()
      this.#forget(ids)
    }
    this.#forgetting = false
  }

  /** @param {string[]} ids */
  #forget(ids) {
    if (this.#closed) return
    for (const id of ids) this.#changes.set(id, null)
    this.#flushSoon()
  }

  #flushSoon() {
    this.#flushTimer ??= setTimeout(() => this.flush(), GATHER_MS)
  }

  flush() {
    clearTimeout(this.#flushTimer)
    this.#flushTimer = undefined
    if (this.#changes.size === 0 || !this.#store.up) return
    const changes = [...this.#changes]
    this.#changes = new Map()
    for (let at = 0; at < changes.length; at += MAX_CLIENTS) this.#send(changes.slice(at, at + MAX_CLIENTS))
  }

  /** @param {[string, JournalClient | null][]} changes */
  async #send(changes) {
    const texts = new Map()
    for (const [id, client] of changes) {
      if (client !== null) client.stored = true
      texts.set(id, client?.toText() ?? '')
    }
    try {
      await this.#store.change(texts)
    } catch {
      for (const [id, client] of changes) if (!this.#changes.has(id)) this.#changes.set(id, client)
      if (this.#closed) return
      this.#parts.log.warn({ clients: changes.length }, 'writing the client journal to redis failed')
      // Delay the retry: Redis may be full.
      this.#flushTimer ??= setTimeout(() => this.flush(), this.#parts.delay / BEATS)
    }
  }

  async #beat() {
    if (!this.#store.up || this.#closed) return
    try {
      const { alive, dead } = await this.#store.beat(this.#parts.delay)
      if (!alive && this.#hadHeartbeat) {
        this.#parts.log.warn(
          {},
          'heartbeat too late: another node may have logged disconnects of clients of this node',
        )
        for (const [id, client] of this.#parts.readAll()) this.#changes.set(id, client)
        this.flush()
      }
      this.#hadHeartbeat = true
      const patient = this.#upSince > 0 && performance.now() - this.#upSince > this.#parts.delay
      if (!patient || this.#taking) return
      this.#taking = true
      try {
        for (const node of dead) await this.#take(node)
      } finally {
        this.#taking = false
      }
    } catch {
      // The next beat retries.
    }
  }

  /** @param {string} node */
  async #take(node) {
    let count = 0
    let cursor = '0'
    for (;;) {
      const part = await this.#store.take(node, this.#parts.delay, MAX_CLIENTS, cursor)
      if (part === null || part.clients.length === 0 || this.#closed) break
      for (const [id, text] of part.clients) this.#parts.disconnected(node, id, JournalClient.fromText(text))
      // Only after the sinks: if this node dies too, the next one finds them.
      await this.#parts.settled()
      if (this.#closed) break
      const ids = part.clients.map(([id]) => id)
      await this.#store.forget(node, ids)
      cursor = part.cursor
      count += ids.length
    }
    this.taken += count
    if (count > 0) this.#parts.log.info({ node, clients: count }, 'logged the disconnects of a dead node')
  }

  async close() {
    this.#closed = true
    clearInterval(this.#beatTimer)
    clearTimeout(this.#flushTimer)
    if (!this.#store.up) return
    await within(
      this.#store.leave().catch(() => {}),
      LEAVE_MS,
    )
  }
}
