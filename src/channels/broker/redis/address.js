import { tlsOptions } from '../../../config/pem.js'
import { redisShards } from '../../../config/redis-shards.js'
import { Sentinels } from './sentinels.js'

/**
 * @typedef {import('../../../config/redis-shards.js').RedisShard} RedisShard
 *
 * @typedef {object} Target one deployment of Redis, and how ioredis connects to it
 * @property {'single' | 'sentinel' | 'cluster'} kind
 * @property {string} key of the configuration
 * @property {string} name for logs, without any password
 * @property {import('ioredis').RedisOptions} options of a connection; those of a cluster name no server
 * @property {{host: string, port: number}[]} [nodes] seed servers of a cluster
 */

const BLOCK = 'engine.redis'
const MAX_SENTINEL_RETRY = 1000

/** @param {number} attempt 1 ... @returns {number} ms */
const sentinelRetry = attempt => Math.min(MAX_SENTINEL_RETRY, 50 * attempt)

/**
 * @param {Readonly<Record<string, any>>} redis `engine.redis` @param {'tls' | 'sentinel_tls'} tls
 * @param {string} block
 */
function secure(redis, tls, block) {
  try {
    return tlsOptions(redis[tls])
  } catch (error) {
    throw new Error(`${block}.${tls}.${error.message}`)
  }
}

/**
 * @param {Readonly<Record<string, any>>} redis `engine.redis`
 * @param {RedisShard} shard @param {string} block @returns {import('ioredis').RedisOptions}
 */
function sentinelOptions(redis, shard, block) {
  return {
    sentinels: shard.hosts,
    name: shard.sentinel_master_name,
    role: 'master',
    Connector: /** @type {any} */ (Sentinels),
    enableTLSForSentinelMode: shard.tls,
    sentinelTLS: shard.sentinel_tls ? secure(redis, 'sentinel_tls', block) : undefined,
    sentinelUsername: shard.sentinel_user || undefined,
    sentinelPassword: shard.sentinel_password || undefined,
    sentinelCommandTimeout: shard.io_timeout,
    sentinelRetryStrategy: sentinelRetry,
  }
}

/** @param {RedisShard} shard @returns {import('ioredis').RedisOptions} */
function serverOptions({ path, hosts }) {
  if (path !== '') return { path }
  const [{ host, port }] = hosts
  return { host, port }
}

/**
 * @param {Readonly<Record<string, any>>} redis `engine.redis` @param {RedisShard} shard @param {string} block
 * @returns {Target}
 */
function targetOf(redis, shard, block) {
  const { kind, key, name } = shard
  /** @type {import('ioredis').RedisOptions} */
  const common = {
    protocol: 3,
    username: shard.user || undefined,
    password: shard.password || undefined,
    db: shard.db,
    connectionName: redis.client_name || undefined,
    connectTimeout: shard.connect_timeout,
    socketTimeout: shard.io_timeout,
    tls: shard.tls ? secure(redis, 'tls', block) : undefined,
  }
  switch (kind) {
    case 'sentinel':
      return { kind, key, name, options: { ...common, ...sentinelOptions(redis, shard, block) } }
    case 'cluster':
      return { kind, key, name, options: common, nodes: shard.hosts }
    default:
      return { kind, key, name, options: { ...common, ...serverOptions(shard) } }
  }
}

/**
 * @param {Readonly<Record<string, any>>} redis `engine.redis` of the configuration, or a block with its keys
 * @param {string} [block] path of `redis`
 * @returns {Target[]} one for each shard, in the order of the configuration
 * @throws {Error} one line that names the key, without passwords
 */
export function parseTargets(redis, block = BLOCK) {
  const shards = redisShards(
    redis,
    (key, text) => {
      throw new Error(`${key}: ${text}`)
    },
    block,
  )
  return shards.map(shard => targetOf(redis, shard, block))
}
