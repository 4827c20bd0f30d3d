// The broker of a worker: the node's own broker (embedded/, state in the primary), with the parts of an engine over
// it. Only this file knows the engines; a new one is a folder that exports an Engine (contract.js) and a row in
// ENGINES.

import { LimitedLog } from '../../base/log.js'
import { LocalBroker } from './embedded/client.js'

/** @import { Config } from '../../config/options.js' */

/**
 * @typedef {import('./contract.js').Engine} Engine
 * @typedef {import('./contract.js').EngineParts} EngineParts
 * @typedef {(parts: EngineParts) => Engine} CreateEngine
 * @typedef {ReturnType<typeof createBroker>} WorkerBroker
 */

/**
 * `engine.type` -> loader of the engine, and the check of its servers before any worker starts
 * @type {Record<string, {load: () => Promise<CreateEngine | null>, check: typeof checkEngine}>}
 */
const ENGINES = {
  memory: { load: async () => null, check: async () => {} },
  redis: {
    load: async () => (await import('./redis/engine.js')).createRedisEngine,
    check: async (config, log, signal) =>
      (await import('./redis/probe.js')).probeRedis(config.engine.redis, log, signal),
  },
}

/**
 * Checks that the servers of the configured engine can be used.
 * @param {Config} config @param {import('pino').Logger} log
 * @param {AbortSignal} [signal] ends the wait for servers that are loading their data
 * @returns {Promise<void>}
 * @throws {Error} one line that states the fault, without passwords
 */
export const checkEngine = (config, log, signal) => ENGINES[config.engine.type].check(config, log, signal)

/** @param {Config} config @returns {Promise<CreateEngine | null>} null: the node's own broker is the only one */
export const loadEngine = config => ENGINES[config.engine.type].load()

/**
 * What the lifecycle log of a node keeps in Redis.
 * @param {import('./redis/lifecycle.js').StoreParts} parts
 */
export async function openLifecycleStore(parts) {
  const { LifecycleStore } = await import('./redis/lifecycle.js')
  return new LifecycleStore(parts)
}

/**
 * @param {CreateEngine | null} createEngine from `loadEngine`
 * @param {Omit<EngineParts, 'local' | 'republishing' | 'onReady'> & {socket: import('node:net').Socket}} parts `socket` leads to the
 *   primary; its owner passes the bytes it reads to `receive`
 * @returns {import('./contract.js').Broker & {receive: (chunk: Buffer) => void}}
 */
export function createBroker(createEngine, { socket, ...parts }) {
  let reached = () => {}
  const { events, node, log } = parts
  const own = new LocalBroker(socket, events, node, new LimitedLog(log), worker => engine?.workerGone(worker))
  const { control: local, republishing } = own
  const engine = createEngine?.({ ...parts, local, republishing, onReady: () => reached() }) ?? null
  const { pubsub = own.pubsub, presence = own.presence, control = own.control } = engine ?? {}
  const remote = engine ?? own
  return {
    pubsub,
    presence,
    control,
    local,
    republishing,
    receive: chunk => own.receive(chunk),
    ready: () => remote.ready() && own.ready(),
    start(timeout) {
      for (const part of [pubsub, presence, control]) part.start()
      if (remote.ready()) return Promise.resolve()
      return new Promise(resolve => {
        reached = resolve
        setTimeout(resolve, timeout)
      })
    },
    close() {
      for (const part of [control, presence, pubsub]) part.close()
    },
  }
}
