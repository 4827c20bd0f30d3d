// Gateways joined by Redis, for tests.

import { startGateway } from '../../../kit/gateway.js'

export const open = { allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true, presence: true }
const LONG = 200_000

/** Namespaces: `kept` has history for everything, `short` for 10 publications, `live` has none. */
export const namespaces = [
  { name: 'kept', ...open, history_size: LONG, history_ttl: '300s', force_recovery: true },
  { name: 'short', ...open, history_size: 10, history_ttl: '300s', force_recovery: true },
  { name: 'live', ...open },
]

/**
 * Starts one gateway. A process that starts on a busy machine may need seconds to see that it is connected: without
 * Redis it would end.
 * @param {any} t ends with this test @param {string | string[]} address of Redis
 * @param {{redis?: Record<string, unknown>, workers?: number, config?: any, host?: {address: string, prefix:
 *   string[]}}} [options] `redis`: more of `engine.redis`; `config`: more of the configuration; `host`: as of
 *   startGateway
 */
export function startNode(t, address, { redis = {}, workers = 2, config = {}, host = undefined } = {}) {
  const whole = {
    ...config,
    workers,
    engine: { type: 'redis', redis: { address, connect_timeout: '10s', ...redis } },
    client: {
      allow_anonymous_connect_without_token: true,
      recovery_max_publication_limit: LONG,
      history_max_publication_limit: LONG,
      ...config.client,
    },
    channel: { namespaces, ...config.channel },
  }
  return startGateway(t, whole, { host })
}

/** @param {string} namespace @param {number} count */
export const channels = (namespace, count) => Array.from({ length: count }, (_, i) => `${namespace}:${i}`)
