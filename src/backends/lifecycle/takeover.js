import { setTimeout as wait } from 'node:timers/promises'
import { JournalClient } from './journal.js'

/** @import { LifecycleStore } from '../../channels/broker/redis/lifecycle.js' */
/** @import { Log } from '../../base/log.js' */

/** Changes of this time are sent together, ms. */
const GATHER_MS = 50
/** Clients of one command. */
const MAX_CLIENTS = 500
/** Clients that have gone, and wait for the stream. */
const MAX_GONE = 100_000
/** Beats within `lifecycle.redis.takeover_delay`. */
const BEATS = 5
/** Time for Redis when the gateway ends, ms. */
const LEAVE_MS = 1000

/**
 * Copies the journal of this node to Redis and logs the disconnects of nodes that have died. A node counts as dead when
 * it has sent no heartbeat for the delay, and this node has reached Redis for that long: after an outage of Redis all
 * nodes get the time to send one.
 *
 *   journal --change--> changes --50 ms, or the next batch of the stream--> Redis
 */
export class Takeover {
  #store
  #delay
  #log
  #readAll
  #disconnected
  #settled
  #recorded
  /** Changes that Redis does not have yet; null: gone. @type {Map<string, JournalClient | null>} */
  #changes = new Map()
  /** Clients that have gone; Redis keeps them until the stream has their ends. @type {string[]} */
  #gone = []
  #forgetting = false
  /** @type {NodeJS.Timeout | undefined} */
  #flushTimer
  #beatTimer
  #upSince = 0
  #beaten = false
  #taking = false
  #closed = false
  /** Disconnects of other nodes' clients logged since the start. */
  taken = 0

  /**
   * @param {object} parts @param {LifecycleStore} parts.store @param {number} parts.delay ms @param {Log} parts.log
   * @param {() => Iterable<[string, JournalClient]>} parts.readAll the journal
   * @param {(node: string, id: string, client: JournalClient) => void} parts.disconnected
   * @param {() => Promise<void>} parts.settled resolves when the sinks have what they got until now
   * @param {() => Promise<void>} parts.recorded the same of the sink of the stream
   */
  constructor({ store, delay, log, readAll, disconnected, settled, recorded }) {
    this.#store = store
    this.#delay = delay
    this.#log = log
    this.#readAll = readAll
    this.#disconnected = disconnected
    this.#settled = settled
    this.#recorded = recorded
    this.#beatTimer = setInterval(() => this.#beat(), delay / BEATS)
  }

  /** Whether Redis is within reach has changed. @param {boolean} up */
  changed(up) {
    if (!up) {
      this.#upSince = 0
      return
    }
    this.#upSince = performance.now()
    this.#beat()
    this.flush()
  }

  /** A client has connected, or its channels have changed. @param {string} id @param {JournalClient} client */
  set(id, client) {
    this.#changes.set(id, client)
    this.#flushSoon()
  }

  /** A client has gone. @param {string} id @param {JournalClient} client */
  delete(id, client) {
    this.#changes.delete(id)
    if (!client.stored) return
    // The stream has failed for long.
    if (this.#gone.length >= MAX_GONE) this.#forget(this.#gone.splice(0))
    this.#gone.push(id)
    if (!this.#forgetting) this.#forgetSoon()
  }

  async #forgetSoon() {
    this.#forgetting = true
    while (this.#gone.length > 0) {
      await wait(GATHER_MS)
      const ids = this.#gone.splice(0)
      await this.#recorded()
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

  /** Sends all changes now. */
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
      // Later changes of the same clients are newer.
      for (const [id, client] of changes) if (!this.#changes.has(id)) this.#changes.set(id, client)
      if (this.#closed) return
      this.#log.warn({ clients: changes.length }, 'the journal of clients could not be written to redis')
      // Nothing is retried at once: Redis may be full.
      this.#flushTimer ??= setTimeout(() => this.flush(), this.#delay / BEATS)
    }
  }

  async #beat() {
    if (!this.#store.up || this.#closed) return
    try {
      const { alive, dead } = await this.#store.beat(this.#delay)
      if (!alive && this.#beaten) {
        this.#log.warn(
          {},
          'another node may have logged disconnects of clients of this node: it was silent for too long',
        )
        for (const [id, client] of this.#readAll()) this.#changes.set(id, client)
        this.flush()
      }
      this.#beaten = true
      const patient = this.#upSince > 0 && performance.now() - this.#upSince > this.#delay
      if (dead.length > 0 && patient && !this.#taking) await this.#takeAll(dead)
    } catch {
      // The next beat tries again.
    }
  }

  /** @param {string[]} dead ids of nodes */
  async #takeAll(dead) {
    this.#taking = true
    try {
      for (const node of dead) await this.#take(node)
    } finally {
      this.#taking = false
    }
  }

  /** @param {string} node */
  async #take(node) {
    let count = 0
    let cursor = '0'
    for (;;) {
      const taken = await this.#store.take(node, this.#delay, MAX_CLIENTS, cursor)
      if (taken === null || taken.clients.length === 0 || this.#closed) break
      const { clients } = taken
      cursor = taken.cursor
      for (const [id, text] of clients) this.#disconnected(node, id, JournalClient.fromText(text))
      // Not before the sinks have them: if this node dies, too, the next one finds them.
      await this.#settled()
      if (this.#closed) break
      await this.#store.forget(
        node,
        clients.map(([id]) => id),
      )
      count += clients.length
    }
    this.taken += count
    if (count > 0) this.#log.info({ node, clients: count }, 'disconnects of a dead node were logged')
  }

  /** This node ends without clients. */
  async close() {
    this.#closed = true
    clearInterval(this.#beatTimer)
    clearTimeout(this.#flushTimer)
    if (!this.#store.up) return
    const late = new AbortController()
    const patience = wait(LEAVE_MS, undefined, { signal: late.signal }).catch(() => {})
    await Promise.race([this.#store.leave().catch(() => {}), patience])
    late.abort()
  }
}
