import { Redis } from 'ioredis'
import { Connection } from './connection.js'

/**
 * @typedef {{id: string, host: string, port: number}} ClusterServer
 * @typedef {{first: number, last: number, master: ClusterServer}} SlotRange slots of one master
 *
 * @typedef {object} ClusterView one server's view of its cluster
 * @property {boolean} ok it accepts commands: it sees most of the masters, and all slots are served
 * @property {boolean} sharded it supports sharded pub/sub
 * @property {SlotRange[]} ranges
 * @property {{host: string, port: number}[]} servers all known ones, replicas included
 * @typedef {import('./connection.js').Done} Done
 */

const SLOTS = 16_384

/** CRC16 (XMODEM), Redis Cluster spec. @param {string} tag between the braces of a key @returns {number} hash slot */
export function slotOf(tag) {
  let crc = 0
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : crc << 1
  }
  return crc % SLOTS
}

/**
 * Asks a server of a cluster for its view.
 * @param {(name: string, args: string[], done: Done) => void} send
 * @param {string} host its reachable address, which a server may not know itself
 * @param {(error: Error | null, view: ClusterView) => void} done
 */
export function askView(send, host, done) {
  /** @type {ClusterView} */
  const view = { ok: false, sharded: false, ranges: [], servers: [] }
  /** @type {Error | null} */
  let failed = null
  let left = 3
  /** @param {string} name @param {string[]} args @param {(reply: any) => void} read */
  const issue = (name, args, read) =>
    send(name, args, (error, reply) => {
      if (error) failed ??= error
      else read(reply)
      if (--left === 0) done(failed, view)
    })
  issue('cluster', ['info'], reply => (view.ok = /^cluster_state:ok\b/m.test(String(reply))))
  issue('command', ['info', 'spublish'], reply => (view.sharded = Array.isArray(reply?.[0])))
  issue('cluster', ['slots'], reply => readSlots(reply, host, view))
}

/**
 * @param {any} reply of CLUSTER SLOTS: first, last, master, replicas; each server as host, port, id, more names
 * @param {string} host that was asked
 * @param {ClusterView} view receives the ranges and servers
 */
function readSlots(reply, host, view) {
  /** @type {Map<string, ClusterServer>} */
  const servers = new Map()
  for (const [first, last, ...serving] of reply) {
    for (const [i, entry] of serving.entries()) {
      const server = readServer(entry, host)
      if (server.port > 0) servers.set(server.id, server)
      if (i === 0) view.ranges.push({ first: Number(first), last: Number(last), master: server })
    }
  }
  view.servers = [...servers.values()]
}

/** @param {any[]} entry @param {string} asked @returns {ClusterServer} */
function readServer([endpoint, port, id, names], asked) {
  let host = String(endpoint ?? '')
  if (host === '?') {
    // The server announces a host name that it lacks: its address is among the other names.
    const at = Array.isArray(names) ? names.findIndex((name, i) => i % 2 === 0 && String(name) === 'ip') : -1
    host = at < 0 ? '' : String(names[at + 1])
  }
  host ||= asked
  return { id: String(id ?? `${host}:${port}`), host, port: Number(port) }
}

/** Time limit (ms) of a server that accepts connections. */
const TIMEOUT = 2000

/**
 * Asks a server for its view of the cluster, over a separate connection.
 * @param {{host: string, port: number}} server @param {import('ioredis').RedisOptions} options
 * @param {(error: Error | null, view: ClusterView | null) => void} done
 * @returns {() => void} gives up without calling `done`
 */
export function queryServer({ host, port }, options, done) {
  const redis = new Redis({
    ...options,
    host,
    port,
    lazyConnect: true,
    enableReadyCheck: false,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    disableClientInfo: true,
    retryStrategy: null,
    connectTimeout: Math.min(options.connectTimeout ?? TIMEOUT, TIMEOUT),
  })
  /** @type {Error | null} why there is no connection */
  let reason = null
  let ended = false
  const timer = setTimeout(() => end(new Error('it does not answer'), null), TIMEOUT)
  const stop = () => {
    ended = true
    clearTimeout(timer)
    redis.disconnect()
  }
  /** @type {typeof done} */
  const end = (error, view) => {
    if (ended) return
    stop()
    done(error && (reason ?? error), view)
  }
  redis.on('error', error => {
    reason = error
  })
  redis.connect().then(
    () =>
      askView(
        (name, args, done) =>
          redis.callBuffer(name, ...args).then(
            reply => done(null, reply),
            error => done(error, null),
          ),
        host,
        (error, view) => end(error, error ? null : view),
      ),
    error => end(error, null),
  )
  return stop
}

/**
 * @typedef {import('./partition.js').Partition} Partition
 *
 * @typedef {object} ClusterNodeEvents
 * @property {(node: ClusterNode) => void} lost
 * @property {(node: ClusterNode) => void} clusterDown it accepts no commands now
 * @property {(node: ClusterNode, slot: number) => void} refused it does not own the slot; -1: unknown slot
 * @property {(node: ClusterNode, view: ClusterView) => void} answered its view of the cluster
 * @property {(node: ClusterNode, topic: Buffer, message: Buffer) => void} message
 */

/** A master of a cluster that owns, or may own, a partition. */
export class ClusterNode {
  /** When a server last named it as the owner of a partition (ms). */
  lastSeenAt = 0
  /** @type {Set<Partition>} not owned any more, but it may still send messages of them */
  unsubscribing = new Set()
  /** @type {Set<Partition>} waiting for its last replies */
  leaving = new Set()
  /** Whether it reports the cluster as up. */
  ok = false
  /** Whether it has refused an owned slot since its last view. */
  refusedSlot = false
  #events
  #asking = false
  #again = false

  /**
   * @param {ClusterServer} server @param {import('ioredis').RedisOptions} options @param {ClusterNodeEvents} events
   * @param {import('pino').Logger} log
   */
  constructor({ id, host, port }, options, events, log) {
    this.id = id
    this.host = host
    this.port = port
    this.#events = events
    this.connection = new Connection(
      `${host}:${port}`,
      { ...options, host, port },
      {
        up: () => this.ask(),
        down: () => this.#lost(),
        message: (topic, message) => events.message(this, topic, message),
        misplaced: (_line, reason) => this.#misplaced(reason),
      },
      log,
    )
    this.connection.connect()
  }

  #lost() {
    this.ok = false
    this.refusedSlot = false
    this.unsubscribing.clear()
    this.#events.lost(this)
  }

  /** @param {string} reason */
  #misplaced(reason) {
    // The slot is moving: wait.
    if (/^(ASK|TRYAGAIN) /.test(reason)) return
    if (reason.startsWith('CLUSTERDOWN ')) return this.#events.clusterDown(this)
    this.#events.refused(this, Number(reason.match(/^MOVED (\d+) /)?.[1] ?? -1))
  }

  /** Asks for its view: only its own view decides which slots it owns. */
  ask() {
    this.#again = this.#asking
    if (this.#asking || !this.connection.up) return
    this.#asking = true
    const { connection } = this
    askView(
      (name, args, done) => connection.send(name, args, done),
      this.host,
      (error, view) => {
        this.#asking = false
        if (!error && connection.up) {
          this.ok = view.ok
          this.#events.answered(this, view)
        }
        if (this.#again) this.ask()
      },
    )
  }
}
