// `info`: metrics of all nodes.

/** @import { Control } from '../../channels/broker/contract.js' */
/** @import { Method, NodeIdentity } from './context.js' */

/** Cache lifetime of a result, ms: counting queries every worker. */
const FRESH_FOR = 3000

class Counts {
  clients = 0
  subscriptions = 0
  uptime = 0
  users = new Set()
  channels = new Set()
  /** @type {Map<string, number>} */
  metrics = new Map()

  /** @param {{uid: string, name: string, version: string}} node */
  constructor({ uid, name, version }) {
    this.node = { uid, name, version }
  }

  /** @param {any} answer of one worker */
  add({ clients, subscriptions, uptime, users, channels, metrics }) {
    this.clients += clients
    this.subscriptions += subscriptions
    this.uptime = Math.max(this.uptime, uptime)
    for (const user of users) this.users.add(user)
    for (const channel of channels) this.channels.add(channel)
    // Metrics of the last complete window; initially none.
    for (const [name, value] of Object.entries(metrics ?? {})) {
      this.metrics.set(name, (this.metrics.get(name) ?? 0) + value)
    }
  }

  /** @param {number} interval s covered by the metrics */
  result(interval) {
    return {
      ...this.node,
      uptime: Math.floor(this.uptime / 1000),
      num_clients: this.clients,
      num_users: this.users.size,
      num_channels: this.channels.size,
      num_subs: this.subscriptions,
      ...(this.metrics.size > 0 ? { metrics: { interval, items: Object.fromEntries(this.metrics) } } : null),
    }
  }
}

export class NodeInfo {
  #node
  #control
  #interval
  #clock
  /** @type {Promise<string> | null} */
  #counted = null
  #countedAt = 0

  /**
   * @param {NodeIdentity} node this one @param {Control} control @param {number} interval ms covered by the metrics
   * @param {() => number} clock
   */
  constructor(node, control, interval, clock) {
    this.#node = node
    this.#control = control
    this.#interval = interval
    this.#clock = clock
  }

  /** @returns {Promise<string>} the result as JSON text */
  read() {
    const now = this.#clock()
    if (this.#counted !== null && now - this.#countedAt < FRESH_FOR) return this.#counted
    const counted = this.#count()
    this.#counted = counted
    this.#countedAt = now
    counted.catch(() => {
      if (this.#counted === counted) this.#counted = null
    })
    return counted
  }

  async #count() {
    const nodes = new Map([[this.#node.uid, new Counts(this.#node)]])
    for (const answer of await this.#control.survey('info', {})) {
      const { node } = answer
      let counts = nodes.get(node.uid)
      if (!counts) nodes.set(node.uid, (counts = new Counts(node)))
      counts.add(answer)
    }
    return JSON.stringify({ nodes: [...nodes.values()].map(counts => counts.result(this.#interval / 1000)) })
  }
}

/** @type {Method} */
export const info = {
  fields: {},
  run: (_params, { nodeInfo }) => nodeInfo.read(),
}
