import { join } from 'node:path'
import { tempDir } from '../../kit/folders.js'
import { startGateway } from '../../kit/gateway.js'
import { Watcher } from '../../kit/watcher.js'

/** A gateway, and somebody who watches it. */
export async function watched(t, config = {}, options = {}) {
  // A socket's path must be short.
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
export const majors = (/** @type {any} */ { sample }) => sample?.gc.major.count ?? 0
