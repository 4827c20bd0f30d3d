import { createHash } from 'node:crypto'
import { hostname } from 'node:os'

/**
 * The name of the cluster in `halley-origin`, the same on each of its nodes and after each start.
 * @param {any} config @returns {string}
 */
export function clusterOrigin({ cluster_name: name, engine, node, http_server: { port } }) {
  if (name !== '') return name
  if (engine.type !== 'redis') return node.name || `${hostname()}_${port}`
  const { address, cluster_address, sentinel_address, prefix } = engine.redis
  // Addresses may hold passwords, and each node may list them in its own order.
  const all = [...address, ...cluster_address, ...sentinel_address].sort()
  return createHash('sha256')
    .update(JSON.stringify([all, prefix]))
    .digest('hex')
    .slice(0, 16)
}
