import { memoryDenials, redisDenials } from '../../channels/broker/index.js'
import { DENIALS } from '../../config/denials.js'

/** @import { Logger } from 'pino' */
/** @import { HostDenials } from '../../channels/broker/embedded/denials.js' */
/** @import { DenialStore, StoreParts } from '../../channels/broker/denials/contract.js' */
/** @import { Config } from '../../config/options.js' */

/**
 * Loads blocked users and revoked tokens, before any worker starts.
 * @param {HostDenials} denials @param {Config} config @param {Logger} log
 * @throws {Error} one-line message: the journal is damaged, or Redis does not answer
 */
export async function loadDenials(denials, config, log) {
  const limits = /** @type {StoreParts['limits']} */ (
    Object.fromEntries(DENIALS.map(name => [name, config[name].max_entries]))
  )
  const parts = { limits, log, apply: denials.apply.bind(denials) }
  const { type, memory, redis } = config.engine
  /** Kinds with equal options share a store. @type {Map<string, DenialStore>} */
  const stores = new Map()
  /** @type {Record<string, DenialStore>} */
  const byKind = {}
  for (const name of DENIALS) {
    const { storage_type, redis: own } = config[name]
    const inMemory = storage_type === 'memory' && type === 'memory'
    const ofEngine = storage_type === 'memory' || own.reuse_from_engine
    const key = inMemory ? 'memory' : ofEngine ? 'engine' : JSON.stringify(own)
    let store = stores.get(key)
    if (store === undefined) {
      const file = memory.snapshot_file === '' ? '' : `${memory.snapshot_file}.access`
      if (inMemory) store = await memoryDenials({ ...parts, list: denials.list }, file)
      else if (ofEngine) store = await redisDenials(redis, 'engine.redis', parts)
      else store = await redisDenials(own, `${name}.redis`, parts)
      stores.set(key, store)
    }
    byKind[name] = store
  }
  await denials.open(byKind)
}
