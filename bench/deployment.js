import { setTimeout as sleep } from 'node:timers/promises'
import { PEER_KINDS } from './peers/index.js'
import { cpuOf, memoryOf, processTree } from './proc.js'
import { capacityOf, Server } from './servers.js'

/**
 * @typedef {import('./servers.js').ServerKind} ServerKind
 * @typedef {object} DeploymentOptions
 * @property {number} workers of each node of Halley, and of nchan; all others are one process each
 * @property {string} driver of Halley
 * @property {string} transport of Halley's clients: one of TRANSPORTS; bare libraries always use WebSocket
 * @property {'memory' | 'redis'} engine of Halley
 * @property {string[]} redis addresses of an existing Redis; none: start one
 * @property {number} nodes of Halley
 * @property {boolean} history whether all channels of Halley keep history, and all subscriptions recover
 * @typedef {object} RunOptions
 * @property {number} subscriptions minimum limit of a client
 * @property {Record<string, string | undefined>} env
 */

/** Kept publications of each channel with history. */
const HISTORY_SIZE = 10

/** ms between two readings of memory; the least of several counts, because garbage waits for its collection. */
const LOOK_EVERY = 500

/** Halley, bare libraries, Halley without Redis as a control for Halley with it, and other servers. */
export const KINDS = /** @type {const} */ (['halley', 'uws', 'ws', 'embedded', ...PEER_KINDS])

/** @typedef {typeof KINDS[number]} Kind */

/**
 * @param {Kind} kind @param {DeploymentOptions} options
 * @returns {{kind: ServerKind, nodes: number, workers: number, engine: 'memory' | 'redis'}}
 */
function shapeOf(kind, { nodes, workers, engine }) {
  if (kind === 'halley') return { kind, nodes, workers, engine }
  // As many workers as all nodes together.
  if (kind === 'embedded') return { kind: 'halley', nodes: 1, workers: workers * nodes, engine: 'memory' }
  return { kind, nodes: 1, workers: kind === 'nchan' ? workers : 1, engine: 'memory' }
}

/** @param {Kind} kind @param {DeploymentOptions} options @returns {number} maximum connections on this machine */
export function maxConnectionsOf(kind, options) {
  const { kind: server, nodes, workers } = shapeOf(kind, options)
  return capacityOf(server, workers) * nodes
}

/** @param {Kind} kind @param {DeploymentOptions} options @returns {string} for people */
export function nameOf(kind, options) {
  const { nodes, engine } = shapeOf(kind, options)
  return [kind, engine === 'redis' ? 'redis' : '', nodes > 1 ? `x${nodes}` : ''].filter(Boolean).join(' ')
}

/** The servers under test: one, or several gateways and their Redis. */
export class Deployment {
  /** @type {Server[]} */
  #servers = []
  /** @type {import('./redis.js').SharedRedis | null} */
  redis = null
  #processes = ''

  /**
   * @param {Kind} kind @param {DeploymentOptions & RunOptions} options
   * @throws {Error} a part does not answer; the caller still has to call stop()
   */
  async start(kind, options) {
    const shape = shapeOf(kind, options)
    const { driver, transport, env, history, subscriptions } = options
    if (shape.engine === 'redis') {
      // Its imports take longer to load than everything else.
      const { SharedRedis } = await import('./redis.js')
      this.redis = await SharedRedis.open(options.redis)
    }
    for (let node = 0; node < shape.nodes; node++) {
      this.#servers.push(
        await Server.spawn(shape.kind, {
          workers: shape.workers,
          driver,
          transport,
          env,
          redis: this.redis?.config ?? null,
          history: history ? HISTORY_SIZE : 0,
          subscriptions,
        }),
      )
    }
    await Promise.all(this.#servers.map(server => server.answers()))
    this.#processes = this.#tree()
  }

  /** Targets of clients and publishers, one for each node. */
  get targets() {
    return this.#servers.map(({ target }) => target)
  }

  get apis() {
    return this.#servers.map(({ api }) => api)
  }

  #tree() {
    return this.#servers.map(({ pid }) => processTree(pid).join()).join()
  }

  /** Whether all initial processes still run: the usage of an ended process is unknown. */
  get whole() {
    return this.#tree() === this.#processes
  }

  /** @returns {number} bytes of user space of all its processes, without Redis */
  memory() {
    return this.#servers.reduce((sum, { pid }) => sum + memoryOf(pid), 0)
  }

  /** @param {number} seconds @returns {Promise<number>} the least bytes of that time */
  async leastMemory(seconds) {
    let least = Infinity
    for (let waited = 0; waited < seconds * 1e3; waited += LOOK_EVERY) {
      await sleep(LOOK_EVERY)
      least = Math.min(least, this.memory())
    }
    return least
  }

  /** @returns {number} seconds of processor time of all its processes, without Redis */
  cpu() {
    return this.#servers.reduce((sum, { pid }) => sum + cpuOf(pid), 0)
  }

  /** Ends all processes, by force if necessary. */
  async stop() {
    await Promise.all(this.#servers.map(server => server.stop()))
    await this.redis?.stop()
  }
}
