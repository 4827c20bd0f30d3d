import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { packageVersion } from '../../base/version.js'

/** @import { NodeIdentity } from '../../backends/api/context.js' */

/** @param {any} config @returns {NodeIdentity} a new one for each start */
export const newNodeIdentity = ({ http_server, node }) => ({
  uid: randomUUID(),
  name: node.name || `${hostname()}_${http_server.port}`,
  version: packageVersion(),
  startedAt: Date.now(),
})
