// Programs on the hosts of a network.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startNode } from '../channels/broker/redis/nodes.js'
import { serverArgs, spawnRedis } from '../kit/servers/redis.js'
import { SentinelSet } from '../kit/servers/sentinels.js'
import { until } from '../kit/wait.js'

/** @import { Host } from './network.js' */

/** Each host has its own ports. */
const REDIS_PORT = 6379
const SENTINEL_PORT = 26_379
const GATEWAY_PORT = 8000

/**
 * @param {any} t ends with this test
 * @param {Host} host
 * @param {import('../kit/servers/redis.js').RedisOptions} [options]
 */
export const startRedisOn = (t, host, options = {}) =>
  spawnRedis(t, (port, dir) => serverArgs({ ...options, port, dir, host }), {
    port: REDIS_PORT,
    ...options,
    host,
  })

/**
 * A gateway over Redis.
 * @param {any} t ends with this test
 * @param {Host} host
 * @param {string | string[]} address of Redis
 * @param {Parameters<typeof startNode>[2]} [options]
 */
export const startNodeOn = (t, host, address, options = {}) =>
  startNode(t, address, {
    ...options,
    host,
    config: { http_server: { port: GATEWAY_PORT }, http_api: { key: '', insecure: true }, ...options.config },
  })

/**
 * Starts a master, its replicas, and their sentinels, each on a host of its own.
 * @param {any} t ends with this test
 * @param {{servers: Host[], sentinels: Host[], name?: string, downAfter?: number, failoverTimeout?: number,
 *   redis?: import('../kit/servers/redis.js').RedisOptions}} options the first of `servers` is the master; times in ms
 * @returns {Promise<SentinelSet>} they know each other
 */
export async function startSentinelsOn(
  t,
  { servers, sentinels, name = 'main', downAfter = 3000, failoverTimeout = 6000, redis = {} },
) {
  const [first, ...others] = servers
  const master = await startRedisOn(t, first, redis)
  const replicaof = ['--replicaof', first.address, `${master.port}`]
  const replicas = await Promise.all(
    others.map(host => startRedisOn(t, host, { ...redis, args: [...(redis.args ?? []), ...replicaof] })),
  )
  for (const replica of replicas)
    await until(async () => (await replica.info('replication')).master_link_status === 'up')
  const quorum = Math.floor(sentinels.length / 2) + 1
  const watchers = await Promise.all(
    sentinels.map(host =>
      spawnRedis(
        t,
        async (port, dir) => {
          const file = join(dir, 'sentinel.conf')
          const lines = [
            `port ${port}`,
            `bind ${host.address}`,
            'protected-mode no',
            `dir ${dir}`,
            `sentinel monitor ${name} ${first.address} ${master.port} ${quorum}`,
            `sentinel down-after-milliseconds ${name} ${downAfter}`,
            `sentinel failover-timeout ${name} ${failoverTimeout}`,
          ]
          await writeFile(file, `${lines.join('\n')}\n`)
          return [file, '--sentinel']
        },
        { port: SENTINEL_PORT, host },
      ),
    ),
  )
  const set = new SentinelSet(name, [master, ...replicas], watchers)
  await set.whole()
  return set
}
