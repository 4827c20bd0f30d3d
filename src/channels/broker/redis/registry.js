import { encode, Kind } from './inboxes.js'
import { registryJoin, registryRemove } from './scripts.js'

/** @import { Done } from './connection.js' */
/** @import { ControlParts } from './control.js' */

const BEAT_TICKS = 2
/** Ticks to retry the removal of an exited worker, until its lease expires. */
const REMOVE_TICKS = 3

/**
 * @typedef {{uid: string, missedAt: number}} Member `missedAt`: when first missing in the registry, ms; 0: present
 *
 * @typedef {object} RegistryEvents
 * @property {(uid: string) => void} workerUp a new or previously unreachable worker is reachable
 * @property {(uid: string) => void} workerGone a worker exited, or its lease expired
 * @property {() => void} joined this worker was announced, or that failed
 * @property {(head: string, now: number, sent: number) => void} beaten heartbeat reply: head of the orders, Redis
 *   clock, local send time; ms
 * @property {() => void} removed this running worker was removed
 */

/** @param {string} node @param {number} worker */
const placeOf = (node, worker) => `${worker} ${node}`

/**
 * The registry of all workers. Each worker has a place (node and number) with a lease; a later one in the same place
 * replaces it. Changes are announced in the same atomic step: all workers see them in one order.
 * If Redis returns without data, missing workers count as unreachable for one lease, in which they can reconnect.
 */
export class Registry {
  ready = false
  /** Whether this worker was announced since it subscribed: earlier surveys are sent again. */
  announced = false
  /** @type {Map<string, Member>} place -> worker */
  #members = new Map()
  #parts
  #place
  #announcement
  #events
  #listening = false
  #since = 0
  #ticks = 0
  #first = true
  #left = false
  #superseded = false
  #differs = false
  /** @type {Map<string, {place: string, ticks: number}>} exited workers of this node, reported by the primary */
  #ended = new Map()

  /**
   * @param {ControlParts & {lease: number, orders: {head: {key: string, fresh: string, life: number}}}} parts lease: ms
   * @param {RegistryEvents} events
   */
  constructor(parts, events) {
    const { uid, node, worker } = parts
    this.#parts = parts
    this.#place = placeOf(node, worker)
    this.#announcement = encode(Kind.WORKER_UP, [uid, worker], node)
    this.#events = events
  }

  /** @param {string} node @param {number} worker @returns {string | undefined} uid of the worker in that place */
  find(node, worker) {
    return this.#members.get(placeOf(node, worker))?.uid
  }

  uids() {
    return Array.from(this.#members.values(), ({ uid }) => uid)
  }

  /** @returns {number} nodes with workers, including this one; 0: unknown */
  nodes() {
    const nodes = new Set()
    for (const place of this.#members.keys()) nodes.add(place.slice(place.indexOf(' ') + 1))
    return nodes.size
  }

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

  tick() {
    if (!this.#listening) return
    if (++this.#ticks % BEAT_TICKS === 0) this.beat()
    for (const [uid, ended] of this.#ended) if (++ended.ticks > REMOVE_TICKS) this.#ended.delete(uid)
    this.#removeEnded()
  }

  #keys() {
    const { partition } = this.#parts
    return [partition.key('registry', 'places'), partition.key('registry', 'leases')]
  }

  beat() {
    if (this.#left || !this.#listening) return
    let flags = this.#first ? 'f' : ''
    if (!this.ready) flags += 'a'
    if (!this.ready || this.#differs) flags += 'l'
    const { partition, inboxes, uid, lease, orders } = this.#parts
    if (performance.now() - this.#since >= lease) flags += 'p'
    const { key, fresh, life } = orders.head
    const own = [this.#place, uid, lease, flags, this.#announcement]
    const args = [...own, inboxes.all, partition.publishCommand, fresh, life]
    const sent = performance.now()
    partition.run(registryJoin, [...this.#keys(), key], args, (error, reply) => {
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
        this.#parts.log.error({ worker: this.#place }, 'another worker has the same node id and number')
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
      else if (now - member.missedAt >= this.#parts.lease) this.workerGone(member.uid)
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
    if (uid !== this.#parts.uid || this.#left) return
    // This worker was blocked longer than its lease, or another one has its place.
    this.ready = false
    this.#events.removed()
    if (this.#listening) this.beat()
  }

  /** A worker of this node exited. @param {number} worker */
  workerEnded(worker) {
    const place = placeOf(this.#parts.node, worker)
    const uid = this.#members.get(place)?.uid
    if (uid === undefined || uid === this.#parts.uid) return
    this.#ended.set(uid, { place, ticks: 0 })
    this.#removeEnded()
  }

  /** Removes exited workers unless still subscribed. */
  #removeEnded() {
    if (!this.#listening) return
    for (const [uid, { place }] of this.#ended) {
      this.#remove(place, uid, this.#parts.inboxes.topicOf(uid), (error, removed) => {
        if (!error && removed === 1) this.#ended.delete(uid)
      })
    }
  }

  /** @param {string} place @param {string} uid @param {string} topic @param {Done} done */
  #remove(place, uid, topic, done) {
    const { partition, inboxes } = this.#parts
    const args = [place, uid, topic, inboxes.all, partition.publishCommand]
    partition.run(registryRemove, this.#keys(), args, done)
  }

  /** @returns {Promise<void>} resolves when this worker has left the registry, or Redis is unreachable */
  leave() {
    this.#left = true
    return new Promise(resolve => this.#remove(this.#place, this.#parts.uid, '', () => resolve()))
  }
}
