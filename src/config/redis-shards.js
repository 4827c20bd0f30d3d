// The shards of `engine.redis`: each address laid over the common options.

import { formatHostPort, parseRedisAddress, parseRedisHosts } from './redis-address.js'

/** @import { RedisOptions } from './options.js' */
/** @import { HostPort, RedisAddress } from './redis-address.js' */

/** @typedef {Omit<RedisOptions, 'prefix' | 'presence_ttl' | 'sharded_pub_sub_partitions'>} RedisConnection */

/**
 * @typedef {object} RedisShard one deployment of Redis
 * @property {string} key of its address: `engine.redis.address`, with an index if there are several
 * @property {'single' | 'sentinel' | 'cluster'} kind
 * @property {string} name for logs and messages, without a password
 * @property {HostPort[]} hosts the server, the sentinels, or some nodes of the cluster; empty with `path`
 * @property {string} path of a Unix socket, else ''
 * @property {string} user
 * @property {string} password
 * @property {number} db
 * @property {string} client_name
 * @property {number} connect_timeout ms
 * @property {number} io_timeout ms
 * @property {string} sentinel_master_name
 * @property {string} sentinel_user
 * @property {string} sentinel_password
 * @property {boolean} tls
 * @property {boolean} sentinel_tls
 * @property {string[]} unsupported options of the address that Halley does not support yet
 */

const BLOCK = 'engine.redis'

/**
 * @param {RedisConnection} redis
 * @returns {{option: 'address' | 'cluster_address' | 'sentinel_address', parse: (text: string) => RedisAddress}} the list in effect
 */
function listOf(redis) {
  if (redis.cluster_address.length > 0)
    return { option: 'cluster_address', parse: text => parseRedisHosts(text, 'cluster') }
  if (redis.sentinel_address.length > 0)
    return { option: 'sentinel_address', parse: text => parseRedisHosts(text, 'sentinel') }
  return { option: 'address', parse: parseRedisAddress }
}

/** @param {RedisShard} shard @returns {string} the fault, '' if there is none */
function faultOf({ kind, db, sentinel_master_name: master }) {
  if (kind === 'sentinel' && master === '')
    return 'names sentinels, but not the master: add ?sentinel_master_name=NAME'
  if (kind === 'cluster' && db !== 0)
    return `has database ${db}, but names a Redis Cluster, which has only database 0`
  return ''
}

/** @param {Pick<RedisShard, 'kind' | 'hosts' | 'path' | 'sentinel_master_name'>} shard */
function nameOf({ kind, hosts, path, sentinel_master_name: master }) {
  if (path !== '') return path
  const list = hosts.map(formatHostPort).join(',')
  return kind === 'sentinel' ? `${master}@${list}` : list
}

/**
 * @param {RedisConnection} redis @param {string} key @param {RedisAddress} address
 * @returns {RedisShard}
 * @throws {Error} for an invalid combination
 */
function shardOf(redis, key, { kind, hosts, path, own, unsupported }) {
  const shard = {
    key,
    kind,
    name: '',
    hosts,
    path,
    user: redis.user,
    password: redis.password,
    db: redis.db,
    client_name: redis.client_name,
    connect_timeout: redis.connect_timeout,
    io_timeout: redis.io_timeout,
    sentinel_master_name: redis.sentinel_master_name,
    sentinel_user: redis.sentinel_user,
    sentinel_password: redis.sentinel_password,
    tls: redis.tls.enabled,
    sentinel_tls: redis.sentinel_tls.enabled,
    unsupported,
    ...own,
  }
  const fault = faultOf(shard)
  if (fault !== '') throw new Error(fault)
  shard.name = nameOf(shard)
  return shard
}

/**
 * @param {RedisConnection} redis
 * @param {(key: string, text: string) => void} fault called for each unusable address, which is left out
 * @param {string} [block] path of `redis`
 * @returns {RedisShard[]}
 */
export function redisShards(redis, fault, block = BLOCK) {
  const { option, parse } = listOf(redis)
  const list = redis[option]
  /** @type {RedisShard[]} */
  const shards = []
  /** @type {Map<string, string>} */
  const taken = new Map()
  for (const [i, text] of list.entries()) {
    const key = list.length === 1 ? `${block}.${option}` : `${block}.${option}[${i}]`
    try {
      const shard = shardOf(redis, key, parse(text))
      for (const host of shard.path === '' ? shard.hosts.map(formatHostPort) : [shard.path]) {
        // The same sentinels may monitor several masters.
        const id = shard.kind === 'sentinel' ? `${shard.sentinel_master_name}@${host}` : host
        if (taken.has(id)) throw new Error(`names ${host}, which is already in ${taken.get(id)}`)
        taken.set(id, key)
      }
      shards.push(shard)
    } catch (error) {
      fault(key, error.message)
    }
  }
  return shards
}
