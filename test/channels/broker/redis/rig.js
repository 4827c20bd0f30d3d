// Workers of the Redis engine in one process, over real Redis servers and real buses.

import { Redis } from 'ioredis'
import { createRedisEngine } from '../../../../src/channels/broker/redis/engine.js'
import { loadConfig } from '../../../../src/config/load.js'
import { startEmbedded } from '../embedded/rig.js'

/** @param {object} redis of `engine.redis` @returns {any} all of it */
export function redisConfig(redis) {
  const insecure = { client: { insecure: true, allowed_origins: ['*'] }, http_api: { insecure: true } }
  return loadConfig({ base: { ...insecure, engine: { type: 'redis', redis } } }).config.engine.redis
}

/**
 * Moves the clock of a server: what has a ttl gets so much less of it.
 * @param {{host: string, port: number, password?: string}} server @param {number} ms
 */
export async function passTime({ host, port, password }, ms) {
  const redis = new Redis({ host, port, password })
  try {
    let cursor = '0'
    do {
      const [next, keys] = await redis.scan(cursor, 'COUNT', 1000)
      cursor = next
      for (const key of keys) {
        // Expiries of a map's keys, see maps.lua.
        if (/\.map-expiry\.|\.maps\.(due|owners)$/.test(key))
          for (const member of await redis.zrange(key, '0', '-1')) await redis.zincrby(key, -ms, member)
        const ttl = await redis.pttl(key)
        if (ttl < 0) continue
        if (ttl > ms) await redis.pexpire(key, ttl - ms)
        else await redis.del(key)
      }
    } while (cursor !== '0')
  } finally {
    redis.disconnect()
  }
}

/**
 * @param {any} t @param {object} options @param {string | string[]} options.address for `engine.redis.address`
 * @param {{host: string, port: number, password?: string}[]} options.servers all of which hold keys
 * @param {object} [options.config] more of `engine.redis`
 */
export async function startRedisRig(t, { address, servers, config = {} }) {
  const bus = await startEmbedded(t)
  const brokers = new Set()
  t.teardown(() => {
    for (const broker of brokers) broker.close()
  })
  // One server for a whole file: each test starts with an empty one.
  for (const { host, port, password } of servers) {
    const redis = new Redis({ host, port, password })
    await redis.flushall().catch(() => {})
    redis.disconnect()
  }

  return {
    bus,
    log: bus.log,

    /** @param {string} [own] address of its own, such as that of a proxy */
    async join(events, worker = brokers.size, own = undefined) {
      /** @type {(() => void)[] | null} calls that come before the caller of this has got its broker */
      let early = []
      const held = {
        ...events,
        called: (request, answer) => {
          if (early === null) return events.called(request, answer)
          const copy = Buffer.from(request)
          early.push(() => events.called(copy, answer))
        },
      }
      const redis = redisConfig({ sharded_pub_sub_partitions: 16, ...config, address: own ?? address })
      const broker = await bus.join({ lost: () => {}, ...held }, worker, createRedisEngine, {
        engine: { redis },
        client: { channel_position_check_delay: 40_000 },
      })
      brokers.add(broker)
      await broker.start(5000)
      setImmediate(() => {
        for (const call of early.splice(0)) call()
        early = null
      })
      return broker
    },

    place: bus.place,

    cut(broker) {
      broker.pubsub.close()
      bus.cut(broker)
    },

    async pass(ms) {
      bus.pass(ms)
      for (const server of servers) await passTime(server, ms)
    },
  }
}
