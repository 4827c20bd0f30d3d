import { askView } from './cluster-view.js'
import { Line } from './line.js'

/**
 * @typedef {import('./cluster-view.js').ClusterServer} ClusterServer
 * @typedef {import('./cluster-view.js').ClusterView} ClusterView
 * @typedef {import('./partition.js').Partition} Partition
 *
 * @typedef {object} ClusterNodeEvents
 * @property {(node: ClusterNode) => void} lost
 * @property {(node: ClusterNode) => void} troubled it does not take commands now
 * @property {(node: ClusterNode, slot: number) => void} refused it says that it is not in charge of a slot; -1: of one that it does not name
 * @property {(node: ClusterNode, view: ClusterView) => void} answered what it says of the cluster
 * @property {(node: ClusterNode, topic: Buffer, message: Buffer) => void} message
 */

/** A master of a cluster that is, or may be, in charge of a partition. */
export class ClusterNode {
  /** When a server has named it as in charge of a partition (ms). */
  namedAt = 0
  /** @type {Set<Partition>} which it may still send messages of though it is not in charge any more */
  leftovers = new Set()
  /** @type {Set<Partition>} which wait for what has been asked of it */
  leaving = new Set()
  /** Whether it says that the cluster is up. */
  ok = false
  /** Whether it has refused something that it was thought to be in charge of, since it was asked. */
  doubted = false
  #events
  #asking = false
  #again = false

  /**
   * @param {ClusterServer} server
   * @param {import('ioredis').RedisOptions} options
   * @param {ClusterNodeEvents} events
   * @param {import('pino').Logger} log
   */
  constructor({ id, host, port }, options, events, log) {
    this.id = id
    this.host = host
    this.port = port
    this.#events = events
    this.line = new Line(
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
    this.line.connect()
  }

  #lost() {
    this.ok = false
    this.doubted = false
    this.leftovers.clear()
    this.#events.lost(this)
  }

  /** @param {string} reason */
  #misplaced(reason) {
    // A slot on its way to another server: nothing can be done but wait until it is there.
    if (/^(ASK|TRYAGAIN) /.test(reason)) return
    if (reason.startsWith('CLUSTERDOWN ')) return this.#events.troubled(this)
    this.#events.refused(this, Number(reason.match(/^MOVED (\d+) /)?.[1] ?? -1))
  }

  /** What it says itself: only that counts for what it is in charge of. */
  ask() {
    this.#again = this.#asking
    if (this.#asking || !this.line.up) return
    this.#asking = true
    const { line } = this
    askView(
      (name, args, done) => line.send(name, args, done),
      this.host,
      (error, view) => {
        this.#asking = false
        if (!error && line.up) {
          this.ok = view.ok
          this.#events.answered(this, view)
        }
        if (this.#again) this.ask()
      },
    )
  }
}
