import { checkCommand, runCommand } from './stats-commands.js'

/** @import { Monitor, Update } from './monitor.js' */
/** @import { StatsActions } from './stats-commands.js' */
/** @import { StatsAnswer } from './stats-view.js' */

/**
 * @typedef {{send: (message: object, done?: (error: Error | null) => void) => unknown, isConnected: () => boolean}}
 *   Peer
 */

/** Maximum unread snapshots; more are skipped. */
const MAX_UNREAD = 3
/** Snapshots of the history sent in one turn. */
const PART = 20
const NO_LOG = 'log lines are available on the Unix socket only'

/** In the primary; stats-view.js draws the protocol. */
export class StatsRelay {
  #monitor
  #actions
  /** Watching workers. @type {Map<Peer, {unread: number}>} */
  #watching = new Map()
  /** @type {(() => void) | null} */
  #off = null

  /** @param {Monitor} monitor @param {StatsActions} actions */
  constructor(monitor, actions) {
    this.#monitor = monitor
    this.#actions = actions
  }

  /** @param {Peer} peer @param {any} message of type `stats` */
  onMessage(peer, message) {
    switch (message.op) {
      case 'latest':
        this.#sendLatest(peer, message.id)
        break
      case 'watch':
        this.#sendHistory(peer, message.id, 0)
        break
      case 'unwatch':
        this.remove(peer)
        break
      case 'command':
        this.#runCommand(peer, message)
    }
  }

  /** In parts, then `hello`. @param {Peer} peer @param {number} id @param {number} seq last one sent */
  #sendHistory(peer, id, seq) {
    if (!peer.isConnected()) return
    const part = this.#monitor.history.after(seq, PART)
    if (part.length > 0) {
      this.#send(peer, { id, part })
      return void setImmediate(() => this.#sendHistory(peer, id, part[part.length - 1].seq))
    }
    this.#send(peer, { id, hello: this.#monitor.hello() })
    if (!this.#watching.has(peer)) this.#watching.set(peer, { unread: 0 })
    this.#off ??= this.#monitor.on(update => this.#broadcast(update))
  }

  /** @param {Peer} peer */
  remove(peer) {
    this.#watching.delete(peer)
    if (this.#watching.size > 0) return
    this.#off?.()
    this.#off = null
  }

  /** @param {Peer} peer @param {number} id */
  #sendLatest(peer, id) {
    const { latest } = this.#monitor
    if (latest) return this.#send(peer, { id, snapshot: latest })
    const off = this.#monitor.on(({ snapshot }) => {
      off()
      this.#send(peer, { id, snapshot })
    })
  }

  /** @param {Peer} peer @param {{id: number, command: any}} message */
  async #runCommand(peer, { id, command: given }) {
    let error = null
    let text
    try {
      const command = checkCommand(given, this.#monitor.slots)
      if (command.type === 'log') throw new Error(NO_LOG)
      text = await runCommand(command, this.#actions)
    } catch (thrown) {
      error = String(thrown?.message ?? thrown)
    }
    this.#send(peer, { id, error, text })
  }

  /** @param {Update} update */
  #broadcast({ snapshot }) {
    for (const [peer, watch] of this.#watching) {
      // A hanging worker would accumulate them.
      if (watch.unread >= MAX_UNREAD) continue
      watch.unread++
      this.#send(peer, { snapshot }, () => watch.unread--)
    }
  }

  /** @param {Peer} peer @param {StatsAnswer} message @param {() => void} [done] */
  #send(peer, message, done) {
    if (peer.isConnected()) peer.send({ type: 'stats', ...message }, () => done?.())
  }
}
