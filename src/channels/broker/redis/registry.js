import { encode, Kind } from './inboxes.js'
import { registryJoin, registryRemove } from './scripts.js'

/** Ticks between two heartbeats. */
const BEAT_TICKS = 2
/** Ticks in which the removal of an ended worker is retried; then its lease expires. */
const REMOVE_TICKS = 3

/**
 * @typedef {{uid: string, missedAt: number}} Member `missedAt`: ms, when first missing in the registry; 0: present
 *
 * @typedef {object} RegistryEvents
 * @property {(uid: string) => void} workerUp a new worker, or one that was out of reach, can be reached from now on
 * @property {(uid: string) => void} workerGone a worker has ended, or was silent for a lease
 * @property {() => void} joined this worker has been announced, or could not be
 * @property {(head: string, now: number, sent: number) => void} beaten the reply to a heartbeat: head of the orders,
 *   clock of Redis, own time when it was sent; ms
 * @property {() => void} removed this worker counted as ended, but lives
 */

/** @param {string} node @param {number} worker */
const placeOf = (node, worker) => `${worker} ${node}`

/**
 * The registry of all workers of all nodes. Each worker has a place (node and number) with a lease; a later worker in
 * the same place replaces the earlier one. Every change is announced in the same atomic step, so all workers see the
 * same changes in one order.
 *
 * When Redis comes back with lost data, missing workers count as out of reach for one lease, not as gone: they
 * reconnect like this one. For the same reason none is removed from the registry before that.
 */
export class Registry {
  /** Whether this worker is in the registry and has read it. */
  ready = false
  /** Whether this worker was announced since it is subscribed: earlier questions are sent again. */
  announced = false
  /** @type {Map<string, Member>} place -> its worker */
  #members = new Map()
  #partition
  #inboxes
  #uid
  #node
  #place
  #announcement
  #orders
  #ttl
  #events
  #log
  /** Whether this worker receives announcements. */
  #listening = false
  #since = 0
  #ticks = 0
  #first = true
  #left = false
  #superseded = false
  /** Whether the registry lacks some of #members. */
  #differs = false
  /**
   * @type {Map<string, {place: string, ticks: number}>} workers of this node that have ended, according to the primary
   */
  #ended = new Map()

  /**
   * @param {object} parts @param {import('./partition.js').Partition} parts.partition
   * @param {import('./inboxes.js').Inboxes} parts.inboxes @param {string} parts.uid
   * @param {string} parts.node @param {number} parts.worker @param {number} parts.ttl of a lease, ms
   * @param {{head: {key: string, fresh: string, life: number}}} parts.orders
   * @param {RegistryEvents} parts.events @param {import('pino').Logger} parts.log
   */
  constructor({ partition, inboxes, uid, node, worker, ttl, orders, events, log }) {
    this.#orders = orders
    this.#partition = partition
    this.#inboxes = inboxes
    this.#uid = uid
    this.#node = node
    this.#place = placeOf(node, worker)
    this.#announcement = encode(Kind.WORKER_UP, [uid, worker], node)
    this.#ttl = ttl
    this.#events = events
    this.#log = log
  }

  /** @param {string} node @param {number} worker @returns {string | undefined} uid of the worker in that place */
  find(node, worker) {
    return this.#members.get(placeOf(node, worker))?.uid
  }

  /** @returns {string[]} all workers, this one included */
  uids() {
    return Array.from(this.#members.values(), ({ uid }) => uid)
  }

  /** @returns {number} nodes with workers, this one included; 0: not known yet */
  nodes() {
    const nodes = new Set()
    for (const place of this.#members.keys()) nodes.add(place.slice(place.indexOf(' ') + 1))
    return nodes.size
  }

  /** Called when this worker is subscribed to the announcements. */
  up() {
    this.#listening = true
    this.#since = performance.now()
    this.#ticks = 0
    this.beat()
    this.#removeEnded()
  }

  down() {
    this.#listening = false
    this.ready = false
    this.announced = false
  }

  /** Called once a second. */
  tick() {
    if (!this.#listening) return
    if (++this.#ticks % BEAT_TICKS === 0) this.beat()
    for (const [uid, ended] of this.#ended) if (++ended.ticks > REMOVE_TICKS) this.#ended.delete(uid)
    this.#removeEnded()
  }

  #keys() {
    return [this.#partition.key('registry', 'places'), this.#partition.key('registry', 'leases')]
  }

  /** Renews the lease. */
  beat() {
    if (this.#left || !this.#listening) return
    let flags = this.#first ? 'f' : ''
    if (!this.ready) flags += 'a'
    if (!this.ready || this.#differs) flags += 'l'
    if (performance.now() - this.#since >= this.#ttl) flags += 'p'
    const { publishCommand } = this.#partition
    const { key, fresh, life } = this.#orders.head
    const args = [
      this.#place,
      this.#uid,
      this.#ttl,
      flags,
      this.#announcement,
      this.#inboxes.all,
      publishCommand,
      fresh,
      life,
    ]
    const sent = performance.now()
    this.#partition.run(registryJoin, [...this.#keys(), key], args, (error, reply) => {
      const joins = !this.ready
      if (!error) {
        const [head, now, members] = reply
        this.#beaten(members)
        this.#events.beaten(String(head), now, sent)
      }
      if (joins && this.#listening) this.#events.joined()
    })
  }

  /** @param {number | Buffer[]} reply of registryJoin */
  #beaten(reply) {
    this.announced = true
    if (reply === 0) {
      this.ready = false
      if (!this.#superseded)
        this.#log.error({ worker: this.#place }, 'another worker has the same node id and number')
      this.#superseded = true
      return
    }
    this.#first = false
    this.#superseded = false
    if (typeof reply === 'number') this.#differs = reply !== this.#members.size
    else this.#compare(reply)
    this.ready = true
  }

  /** @param {Buffer[]} list place, uid, place, uid ... */
  #compare(list) {
    const listed = new Set()
    for (let i = 0; i < list.length; i += 2) {
      const place = String(list[i])
      listed.add(place)
      this.#setMember(place, String(list[i + 1]))
    }
    const now = performance.now()
    for (const [place, member] of this.#members) {
      if (listed.has(place)) continue
      if (member.missedAt === 0) member.missedAt = now
      else if (now - member.missedAt >= this.#ttl) this.workerGone(member.uid)
    }
    this.#differs = this.#members.size !== listed.size
  }

  /** @param {string} place @param {string} uid */
  #setMember(place, uid) {
    const before = this.#members.get(place)
    this.#members.set(place, { uid, missedAt: 0 })
    if (before && before.uid !== uid) this.#events.workerGone(before.uid)
  }

  /** A worker has announced itself. @param {string} uid @param {number} worker @param {string} node */
  workerUp(uid, worker, node) {
    this.#setMember(placeOf(node, worker), uid)
    this.#ended.delete(uid)
    this.#events.workerUp(uid)
  }

  /** A worker was announced as gone. @param {string} uid */
  workerGone(uid) {
    for (const [place, member] of this.#members) if (member.uid === uid) this.#members.delete(place)
    this.#ended.delete(uid)
    this.#events.workerGone(uid)
    if (uid !== this.#uid || this.#left) return
    // This worker was blocked for longer than its lease, or another one has its place now.
    this.ready = false
    this.#events.removed()
    if (this.#listening) this.beat()
  }

  /** A worker of this node has ended. @param {number} worker */
  workerEnded(worker) {
    const place = placeOf(this.#node, worker)
    const uid = this.#members.get(place)?.uid
    if (uid === undefined || uid === this.#uid) return
    this.#ended.set(uid, { place, ticks: 0 })
    this.#removeEnded()
  }

  /** Spares workers that still listen: only its uid tells a worker from another one in its place. */
  #removeEnded() {
    if (!this.#listening) return
    for (const [uid, { place }] of this.#ended) {
      this.#remove(place, uid, this.#inboxes.topicOf(uid), (error, removed) => {
        if (!error && removed === 1) this.#ended.delete(uid)
      })
    }
  }

  /** @param {string} place @param {string} uid @param {string} topic @param {import('./connection.js').Done} done */
  #remove(place, uid, topic, done) {
    const { publishCommand } = this.#partition
    const args = [place, uid, topic, this.#inboxes.all, publishCommand]
    this.#partition.run(registryRemove, this.#keys(), args, done)
  }

  /** @returns {Promise<void>} resolves when this worker has left the registry, or Redis is out of reach */
  leave() {
    this.#left = true
    return new Promise(resolve => this.#remove(this.#place, this.#uid, '', () => resolve()))
  }
}
