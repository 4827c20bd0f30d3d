// The metrics of a node for Prometheus, at `prometheus.handler_prefix` of every worker. families.js has the metrics;
// exposition.js writes them as text. Promises: names and labels of Centrifugo keep their meaning; a slow or hanging
// worker delays no scrape; scrapes within half a second share a result.

import { CONTENT_TYPE, expose } from './exposition.js'
import { families } from './families.js'

/** @import { Config } from '../../config/options.js' */
/** @import { Exchange, SocketServer } from '../../clients/server/contract.js' */
/** @import { Snapshot } from '../schema.js' */

/** Time limit for the primary's snapshot, ms. */
const SNAPSHOT_TIMEOUT_MS = 2000
/** Time limit for counting users and channels in all workers, ms: a blocked worker must not prevent the scrape. */
const COUNT_TIMEOUT_MS = 1000
/** Scrapes within this time share a result, ms: figures change once a second, and a scrape costs the primary time. */
const FRESH_MS = 500
/** Maximum clients, and channels, for counting users: workers exchange lists of users and channels for it. */
const MAX_COUNTED = 50_000

/**
 * @template T
 * @param {Promise<T>} promise @param {number} timeout ms
 * @returns {Promise<T | null>} null after a failure or timeout
 */
function withTimeout(promise, timeout) {
  return new Promise(resolve => {
    const timer = setTimeout(resolve, timeout, null)
    promise
      .catch(() => null)
      .then(value => {
        clearTimeout(timer)
        resolve(value)
      })
  })
}

/** @param {Snapshot} snapshot */
function isCountable({ totals, workers }) {
  const channels = workers.reduce((sum, { sample }) => sum + (sample?.channels ?? 0), 0)
  return totals.connections.connected <= MAX_COUNTED && channels <= MAX_COUNTED
}

class Scrape {
  /** @type {Promise<string | null> | null} */
  #text = null
  #madeAt = 0
  #view
  #uid
  #nodeInfo
  #nodes

  /**
   * @param {object} parts @param {{latest: () => Promise<Snapshot>}} parts.view @param {{uid: string}} parts.node
   * @param {{read: () => Promise<string>} | null} parts.nodeInfo @param {(() => number | null) | null} parts.nodes
   */
  constructor({ view, node, nodeInfo, nodes }) {
    this.#view = view
    this.#uid = node.uid
    this.#nodeInfo = nodeInfo
    this.#nodes = nodes
  }

  /** @param {Exchange} exchange */
  async answer(exchange) {
    const text = await this.#read()
    if (text !== null)
      exchange.reply(200, { 'Content-Type': CONTENT_TYPE, 'Cache-Control': 'no-store' }, text)
    else exchange.reply(503, { 'Content-Type': 'text/plain' }, 'The primary does not answer.\n')
  }

  /** @returns {Promise<string | null>} null: the primary does not reply */
  #read() {
    const now = performance.now()
    if (this.#text !== null && now - this.#madeAt < FRESH_MS) return this.#text
    this.#madeAt = now
    return (this.#text = this.#make())
  }

  /** @returns {Promise<string | null>} */
  async #make() {
    const snapshot = await withTimeout(this.#view.latest(), SNAPSHOT_TIMEOUT_MS)
    if (snapshot === null) return null
    const { users, channels } = await this.#count(snapshot)
    const nodes = snapshot.node.engine === 'memory' ? 1 : (this.#nodes?.() ?? null)
    return expose(families, { snapshot, users, channels, nodes })
  }

  /** @param {Snapshot} snapshot @returns {Promise<{users: number | null, channels: number | null}>} */
  async #count(snapshot) {
    const unknown = { users: null, channels: null }
    if (this.#nodeInfo === null || !isCountable(snapshot)) return unknown
    const info = await withTimeout(this.#nodeInfo.read(), COUNT_TIMEOUT_MS)
    if (info === null) return unknown
    const own = JSON.parse(info).nodes.find((/** @type {any} */ { uid }) => uid === this.#uid)
    return own ? { users: own.num_users, channels: own.num_channels } : unknown
  }
}

/**
 * Serves the metrics at `prometheus.handler_prefix`.
 * @param {object} parts @param {SocketServer} parts.server not listening yet
 * @param {Config} parts.config @param {{latest: () => Promise<Snapshot>}} parts.view of the whole node
 * @param {{uid: string}} parts.node
 * @param {{read: () => Promise<string>}} [parts.nodeInfo] counts users and channels of this node
 * @param {() => number | null} [parts.nodes] number of nodes, for engines with several
 * @param {{error: (fields: object, message: string) => void}} [parts.log]
 */
export function mountMetrics({ server, config, view, node, nodeInfo, nodes, log }) {
  if (!config.prometheus.enabled) return
  const scrape = new Scrape({ view, node, nodeInfo: nodeInfo ?? null, nodes: nodes ?? null })
  server.route('*', config.prometheus.handler_prefix, exchange => {
    const { method } = exchange
    if (method !== 'GET' && method !== 'HEAD') {
      exchange.reply(405, { Allow: 'GET, HEAD' }, 'Method Not Allowed')
      return
    }
    scrape.answer(exchange).catch(error => {
      log?.error({ err: error }, 'metrics failed')
      exchange.reply(500, null, '')
    })
  })
}
