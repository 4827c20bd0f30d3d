import { carryOut, checkCommand } from './stats-commands.js'

/**
 * A worker, as it is spoken to.
 * @typedef {object} Peer
 * @property {(message: object, done?: (error: Error | null) => void) => unknown} send
 * @property {() => boolean} isConnected
 */

/** Snapshots that a worker may leave unread. */
const MAX_UNREAD = 3
/** Snapshots of the history that one turn sends. */
const PART = 20
/** Watches of workers have no log: lines of several machines meet there. */
const NO_LOG = 'log lines are told at the Unix socket only'

/**
 * The primary's half of what workers know of the node: see StatsView.
 */
export class StatsRelay {
  #monitor
  #actions
  /** @type {Map<Peer, {unread: number}>} workers that watch */
  #watching = new Map()
  /** @type {(() => void) | null} */
  #off = null

  /**
   * @param {import('./monitor.js').Monitor} monitor
   * @param {import('./stats-commands.js').StatsActions} actions
   */
  constructor(monitor, actions) {
    this.#monitor = monitor
    this.#actions = actions
  }

  /**
   * @param {Peer} peer
   * @param {any} message of type `stats`
   */
  take(peer, message) {
    switch (message.op) {
      case 'latest':
        this.#latest(peer, message.id)
        break
      case 'watch':
        this.#greet(peer, message.id, 0)
        break
      case 'unwatch':
        this.gone(peer)
        break
      case 'command':
        this.#command(peer, message)
    }
  }

  /**
   * Sends the history, a part at a time, and the first message at the end.
   * @param {Peer} peer
   * @param {number} id
   * @param {number} seq of the last snapshot that it has
   */
  #greet(peer, id, seq) {
    if (!peer.isConnected()) return
    const part = this.#monitor.history.after(seq, PART)
    if (part.length > 0) {
      this.#send(peer, { id, part })
      return void setImmediate(() => this.#greet(peer, id, part[part.length - 1].seq))
    }
    this.#send(peer, { id, hello: this.#monitor.hello() })
    if (!this.#watching.has(peer)) this.#watching.set(peer, { unread: 0 })
    this.#off ??= this.#monitor.on(update => this.#tell(update))
  }

  /** @param {Peer} peer that watches no more */
  gone(peer) {
    this.#watching.delete(peer)
    if (this.#watching.size > 0) return
    this.#off?.()
    this.#off = null
  }

  /**
   * @param {Peer} peer
   * @param {number} id
   */
  #latest(peer, id) {
    const { latest } = this.#monitor
    if (latest) return this.#send(peer, { id, snapshot: latest })
    const off = this.#monitor.on(({ snapshot }) => {
      off()
      this.#send(peer, { id, snapshot })
    })
  }

  /**
   * @param {Peer} peer
   * @param {{id: number, command: any}} message
   */
  async #command(peer, { id, command: given }) {
    let error = null
    try {
      const command = checkCommand(given, this.#monitor.places)
      if (command.type === 'log') throw new Error(NO_LOG)
      await carryOut(command, this.#actions)
    } catch (thrown) {
      error = String(thrown?.message ?? thrown)
    }
    this.#send(peer, { id, error })
  }

  /** @param {import('./monitor.js').Update} update */
  #tell({ snapshot }) {
    for (const [peer, watch] of this.#watching) {
      // A worker that hangs reads later: what it misses would only pile up here.
      if (watch.unread >= MAX_UNREAD) continue
      watch.unread++
      this.#send(peer, { snapshot }, () => watch.unread--)
    }
  }

  /**
   * @param {Peer} peer
   * @param {object} message
   * @param {() => void} [done]
   */
  #send(peer, message, done) {
    if (peer.isConnected()) peer.send({ type: 'stats', ...message }, () => done?.())
  }
}
