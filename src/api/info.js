// What `info` tells of the node.

/** Counting asks every worker, so callers within this time share an answer. ms */
const FRESH_FOR = 3000

export class NodeInfo {
  #node
  #broker
  #interval
  #clock
  /** @type {Promise<string> | null} */
  #counted = null
  #countedAt = 0

  /**
   * @param {import('./context.js').NodeIdentity} node
   * @param {import('../broker/contract.js').Broker} broker
   * @param {number} interval ms that the metrics are summed over
   * @param {() => number} clock
   */
  constructor(node, broker, interval, clock) {
    this.#node = node
    this.#broker = broker
    this.#interval = interval
    this.#clock = clock
  }

  /** @returns {Promise<string>} the result as JSON text */
  async read() {
    const now = this.#clock()
    if (this.#counted === null || now - this.#countedAt >= FRESH_FOR) {
      const counted = this.#count()
      this.#counted = counted
      this.#countedAt = now
      counted.catch(() => {
        if (this.#counted === counted) this.#counted = null
      })
    }
    const { uid, name, version, startedAt } = this.#node
    const uptime = Math.max(0, Math.floor((now - startedAt) / 1000))
    const head = JSON.stringify({ uid, name, version }).slice(0, -1)
    return `{"nodes":[${head},"uptime":${uptime},${await this.#counted}}]}`
  }

  /** @returns {Promise<string>} members of the node's object */
  async #count() {
    let clients = 0
    let subscriptions = 0
    const users = new Set()
    const channels = new Set()
    /** @type {Map<string, number>} */
    const metrics = new Map()
    // A worker tells of its last whole window; there is none at first.
    for (const answer of await this.#broker.survey('info', {})) {
      clients += answer.clients
      subscriptions += answer.subscriptions
      for (const user of answer.users) users.add(user)
      for (const channel of answer.channels) channels.add(channel)
      for (const [name, value] of Object.entries(answer.metrics ?? {})) {
        metrics.set(name, (metrics.get(name) ?? 0) + value)
      }
    }
    const counters = `"num_clients":${clients},"num_users":${users.size},"num_channels":${channels.size},"num_subs":${subscriptions}`
    if (metrics.size === 0) return counters
    const items = JSON.stringify(Object.fromEntries(metrics))
    return `${counters},"metrics":{"interval":${this.#interval / 1000},"items":${items}}`
  }
}

/** @type {import('./context.js').Method} */
export const info = {
  fields: {},
  run: (_params, { nodeInfo }) => nodeInfo.read(),
}
