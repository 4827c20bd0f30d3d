import { join } from 'node:path'
import { tempDir } from '../../kit/folders.js'
import { startGateway } from '../../kit/gateway.js'
import { Watcher } from '../../kit/watcher.js'

/** A gateway with a stats client. */
export async function watched(t, config = {}, options = {}) {
  // Socket paths are limited to about 100 bytes.
  const folder = tempDir(t)
  const socket = join(folder, 's')
  const gateway = await startGateway(
    t,
    { client: { insecure: true }, log: { level: 'info' }, ...config, stats: { socket, ...config.stats } },
    options,
  )
  return { gateway, watcher: await Watcher.at(t, socket) }
}

/** Full collections of a worker within a second. */
export const majors = ({ sample }) => sample?.gc.major.count ?? 0
