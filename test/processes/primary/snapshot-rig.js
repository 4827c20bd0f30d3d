// Gateways one after another, with the same port and snapshot file.

import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { config, kept, open } from '../../kit/fleet.js'
import { freePort, startGateway } from '../../kit/gateway.js'

/** @param {any} t @param {object} [more] configuration */
export async function runs(t, more = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'halley-runs-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
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
