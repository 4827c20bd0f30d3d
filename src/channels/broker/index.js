// A worker's broker: the node's own broker (embedded/), with parts replaced by an engine from ENGINES.

import { LimitedLog } from '../../base/log.js'
import { usesStatusRedis } from '../../config/user-status.js'
import { LocalBroker } from './embedded/client.js'
import { shareReads } from './shared-reads.js'

/** @import { Socket } from 'node:net' */
/** @import { Logger } from 'pino' */
/** @import { Config } from '../../config/options.js' */
/** @import { Broker, Engine, EngineParts } from './contract.js' */
/** @import { RedisConnection } from '../../config/redis-shards.js' */
/** @import { Denylist } from './denylist.js' */
/** @import { StoreParts as DenialParts } from './denials/contract.js' */
/** @import { StoreParts } from './redis/lifecycle.js' */

/** @typedef {(parts: EngineParts) => Engine} CreateEngine */
/** @typedef {import('./redis/rates.js').openRateStore} OpenRateStore */
/** @typedef {import('./redis/statuses.js').openStatusStore} OpenStatusStore */

/** @type {Record<string, {load: () => Promise<CreateEngine | null>, check: typeof checkEngine}>} */
const ENGINES = {
  memory: { load: async () => null, check: async () => {} },
  redis: {
    load: async () => (await import('./redis/engine.js')).createRedisEngine,
    check: async (config, log, signal) =>
      (await import('./redis/probe.js')).probeRedis(config.engine.redis, log, signal),
  },
}

/**
 * @param {Config} config @param {Logger} log
 * @param {AbortSignal} [signal] aborts the wait for servers loading their data
 * @returns {Promise<void>}
 * @throws {Error} one-line message without passwords
 */
export const checkEngine = (config, log, signal) => ENGINES[config.engine.type].check(config, log, signal)

/** @param {Config} config @returns {Promise<CreateEngine | null>} null: only the node's own broker */
export const loadEngine = config => ENGINES[config.engine.type].load()

/**
 * @param {Config} config
 * @returns {Promise<OpenRateStore | null>} for limits in Redis; null: there are none
 */
export const loadRateStore = async ({ client }) =>
  client.rate_limit.redis_user_command.enabled ? (await import('./redis/rates.js')).openRateStore : null

/**
 * @param {Config} config
 * @returns {Promise<OpenStatusStore | null>} for the status of users in Redis; null: it is not there
 */
export const loadStatusStore = async config =>
  usesStatusRedis(config) ? (await import('./redis/statuses.js')).openStatusStore : null

/**
 * Denials in memory, and in a journal if there is a file.
 * @param {DenialParts & {list: Denylist}} parts @param {string} file '' = none
 */
export async function memoryDenials(parts, file) {
  const { MemoryStore } = await import('./denials/memory-store.js')
  return new MemoryStore(parts, file)
}

/**
 * Denials in Redis.
 * @param {RedisConnection & {prefix: string}} redis @param {string} block its path in the configuration
 * @param {DenialParts} parts
 */
export async function redisDenials(redis, block, parts) {
  const { RedisDenials } = await import('./redis/denials.js')
  return new RedisDenials(redis, block, parts)
}

/** Redis store of a node's lifecycle log. @param {StoreParts} parts */
export async function openLifecycleStore(parts) {
  const { LifecycleStore } = await import('./redis/lifecycle.js')
  return new LifecycleStore(parts)
}

/**
 * @param {CreateEngine | null} createEngine from `loadEngine`
 * @param {Omit<EngineParts, 'local' | 'republishing' | 'onReady'> & {socket: Socket, openStatuses?: OpenStatusStore |
 *   null}} parts `socket` to the primary; its owner passes received bytes to `receive`; `openStatuses`: from
 *   `loadStatusStore`
 * @returns {Broker & {receive: (chunk: Buffer) => void}}
 */
export function createBroker(createEngine, { socket, openStatuses, ...parts }) {
  let reached = () => {}
  const { config, events, node, log } = parts
  const gone = (/** @type {number} */ worker) => engine?.workerGone(worker)
  const own = new LocalBroker(socket, events, node, new LimitedLog(log), gone, parts.denylist)
  const { control: local, polls, denials, republishing } = own
  const engine = createEngine?.({ ...parts, local, republishing, onReady: () => reached() }) ?? null
  const {
    pubsub = own.pubsub,
    presence = own.presence,
    maps = own.maps,
    control = own.control,
  } = engine ?? {}
  const remote = engine ?? own
  if (config?.singleflight?.enabled) shareReads(pubsub, presence)
  const { enabled = false, expire_interval } = config?.user_status ?? {}
  const statuses = enabled ? (openStatuses?.(config, log) ?? own.statuses(expire_interval)) : null
  return {
    pubsub,
    presence,
    maps,
    control,
    local,
    polls,
    denials,
    republishing,
    statuses,
    receive: chunk => own.receive(chunk),
    ready: () => remote.ready() && own.ready(),
    start(timeout) {
      for (const part of [pubsub, presence, maps, control]) part.start()
      if (remote.ready()) return Promise.resolve()
      return new Promise(resolve => {
        reached = resolve
        setTimeout(resolve, timeout)
      })
    },
    close() {
      for (const part of [control, maps, presence, pubsub]) part.close()
      statuses?.close()
    },
  }
}
