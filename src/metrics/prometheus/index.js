// Metrics for Prometheus, at `prometheus.handler_prefix` of every worker. A slow or hanging worker delays no scrape.

import { setTimeout as sleep } from 'node:timers/promises'
import { CONTENT_TYPE, expose } from './exposition.js'
import { families } from './families.js'

/** @import { Config } from '../../config/options.js' */
/** @import { SocketServer } from '../../clients/server/contract.js' */
/** @import { Snapshot } from '../schema.js' */

const SNAPSHOT_TIMEOUT_MS = 2000
/** Time limit for counting users and channels: a blocked worker must not prevent the scrape. */
const COUNT_TIMEOUT_MS = 1000
/** Scrapes in this time share a result: figures change once a second, and a scrape costs the primary time. */
const FRESH_MS = 500
/** Maximum clients, and channels, for counting users: workers exchange lists for it. */
const MAX_COUNTED = 50_000

/** @template T @param {Promise<T>} promise @param {number} timeout ms */
const withTimeout = (promise, timeout) =>
  Promise.race([promise.catch(() => null), sleep(timeout, null, { ref: false })])

/** @param {Snapshot} snapshot */
function isCountable({ totals, workers }) {
  const channels = workers.reduce((sum, { sample }) => sum + (sample?.channels ?? 0), 0)
  return totals.connections.connected <= MAX_COUNTED && channels <= MAX_COUNTED
}

/**
 * @param {object} parts
 * @param {SocketServer} parts.server not listening yet
 * @param {Config} parts.config
 * @param {{latest: () => Promise<Snapshot>}} parts.view
 * @param {{uid: string}} parts.node
 * @param {{read: () => Promise<string>}} [parts.nodeInfo] users and channels of this node
 * @param {() => number | null} [parts.nodes] of the cluster
 * @param {{error: (fields: object, message: string) => void}} [parts.log]
 */
export function mountMetrics({ server, config, view, node, nodeInfo, nodes, log }) {
  if (!config.prometheus.enabled) return
  /** @type {Promise<string | null> | null} */
  let scrape = null
  let scrapedAt = 0

  /** @param {Snapshot} snapshot */
  const count = async snapshot => {
    const info =
      nodeInfo && isCountable(snapshot) ? await withTimeout(nodeInfo.read(), COUNT_TIMEOUT_MS) : null
    const all = info === null ? [] : JSON.parse(info).nodes
    const own = all.find((/** @type {{uid: string}} */ { uid }) => uid === node.uid)
    return { users: own?.num_users ?? null, channels: own?.num_channels ?? null }
  }

  const make = async () => {
    const snapshot = await withTimeout(view.latest(), SNAPSHOT_TIMEOUT_MS)
    if (snapshot === null) return null
    const known = snapshot.node.engine === 'memory' ? 1 : (nodes?.() ?? null)
    return expose(families, { snapshot, ...(await count(snapshot)), nodes: known })
  }

  server.route('*', config.prometheus.handler_prefix, async exchange => {
    if (exchange.method !== 'GET' && exchange.method !== 'HEAD')
      return exchange.reply(405, { Allow: 'GET, HEAD' }, 'Method Not Allowed')
    const now = performance.now()
    if (scrape === null || now - scrapedAt >= FRESH_MS) {
      scrapedAt = now
      scrape = make()
    }
    try {
      const text = await scrape
      if (text === null)
        exchange.reply(503, { 'Content-Type': 'text/plain' }, 'The primary process does not respond.\n')
      else exchange.reply(200, { 'Content-Type': CONTENT_TYPE, 'Cache-Control': 'no-store' }, text)
    } catch (error) {
      log?.error({ err: error }, 'metrics request failed')
      exchange.reply(500, null, '')
    }
  })
}
