// Successive gateways with the same port and snapshot file.

import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { config, kept, open } from '../../kit/fleet.js'
import { tempDir } from '../../kit/folders.js'
import { startGateway } from '../../kit/gateway.js'
import { freePort } from '../../kit/ports.js'

/** @param {any} t @param {object} [more] additional configuration */
export async function runs(t, more = {}) {
  const folder = tempDir(t)
  const port = await freePort()
  const snapshot_file = join(folder, 'state', 'snapshot')
  await mkdir(join(folder, 'state'))
  return {
    folder: join(folder, 'state'),
    file: snapshot_file,
    start: () =>
      startGateway(t, {
        ...config,
        ...more,
        channel: { without_namespace: { ...open, ...kept, history_ttl: '600s' } },
        http_server: { port },
        engine: { memory: { snapshot_file } },
      }),
  }
}

export const publish = async (gateway, data, options = {}) =>
  (await gateway.api('publish', { channel: 'news', data, ...options })).result
