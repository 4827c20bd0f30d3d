// Workers of the Redis engine in one process, over real Redis servers and real buses.

import { Redis } from 'ioredis'
import { RedisBroker } from '../../../src/broker/redis/broker.js'
import { startEmbedded } from '../embedded/rig.js'

/** What `engine.redis` is by default. */
export const DEFAULTS = Object.freeze({
  address: '',
  connect_timeout: 1000,
  io_timeout: 4000,
  db: 0,
  user: '',
  password: '',
  client_name: '',
  prefix: 'halley',
  presence_ttl: 60_000,
  sharded_pub_sub_partitions: 16,
  sentinel_user: '',
  sentinel_password: '',
  tls: { enabled: false },
  sentinel_tls: { enabled: false },
})

/**
 * Moves the clock of a server: what has a ttl gets so much less of it.
 * @param {{host: string, port: number, password?: string}} server
 * @param {number} ms
 */
export async function passTime({ host, port, password }, ms) {
  const redis = new Redis({ host, port, password })
  try {
    let cursor = '0'
    do {
      const [next, keys] = await redis.scan(cursor, 'COUNT', 1000)
      cursor = next
      for (const key of keys) {
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
 * @param {any} t
 * @param {object} options
 * @param {string | string[]} options.address for `engine.redis.address`
 * @param {{host: string, port: number, password?: string}[]} options.servers all of which hold keys
 * @param {object} [options.config] more of `engine.redis`
 */
export async function startRedisRig(t, { address, servers, config = {} }) {
  const bus = await startEmbedded(t)
  const brokers = new Set()
  const locals = new Map()
  t.teardown(() => {
    for (const broker of brokers) broker.close()
  })
  // One server for a whole file: each test finds it empty.
  for (const { host, port, password } of servers) {
    const redis = new Redis({ host, port, password })
    await redis.flushall().catch(() => {})
    redis.disconnect()
  }

  return {
    bus,
    log: bus.log,

    async join(events, worker = locals.size) {
      let redis = null
      const local = await bus.join(events, worker, gone => redis?.gone(gone))
      redis = new RedisBroker({
        config: { ...DEFAULTS, ...config, address },
        local,
        events: { lost: () => {}, ...events },
        node: bus.place(local).node,
        worker,
        log: /** @type {any} */ (bus.log),
      })
      brokers.add(redis)
      locals.set(redis, local)
      await redis.reached(5000)
      return redis
    },

    place: broker => bus.place(locals.get(broker)),

    cut(broker) {
      broker.close()
      bus.cut(locals.get(broker))
    },

    async pass(ms) {
      bus.pass(ms)
      for (const server of servers) await passTime(server, ms)
    },
  }
}
