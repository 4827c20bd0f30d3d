// Ends drones that no controller knows of any more.

import { rm } from 'node:fs/promises'
import { PROVIDERS } from '../providers/index.js'
import { holder } from './lock.js'
import { socketPath } from './paths.js'
import { stateFile } from './store.js'

/**
 * @param {object} options
 * @param {string} options.dir
 * @param {string} options.provider whose drones are found; of `local`, those of the folder
 * @param {string[]} [options.runs] default: all
 * @param {Record<string, any>} options.flags of the provider
 * @param {(text: string) => void} options.onProgress
 * @param {(handles: import('../schema.js').Handle[]) => Promise<boolean>} [options.confirm]
 * @returns {Promise<import('../schema.js').Handle[]>} those that were ended
 * @throws {Error} one line
 */
export async function endLeftovers({
  dir,
  provider: name,
  runs,
  flags,
  onProgress,
  confirm = async () => true,
}) {
  const provider = await PROVIDERS[name].load()
  const found = await provider.find(runs ?? 'all', { dir, flags })
  const there = found.filter(({ state }) => state !== 'gone')
  if (there.length > 0 && !(await confirm(there))) return []
  // Also with nothing to end: a run that is over may have left what was made for it, elsewhere.
  if (found.length > 0 || name !== 'local') await provider.stop(found, { dir, flags }, onProgress)
  // A controller that lives has a state of its own.
  if (name === 'local' && (await holder(dir)) === 0) {
    await rm(stateFile(dir), { force: true })
    await rm(socketPath(dir), { force: true })
  }
  return there
}
