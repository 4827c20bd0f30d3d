// Presence and user counts of one worker, without the rest of the broker.

import { Placement } from '../../../../src/channels/broker/redis/placement.js'
import { RedisPresence } from '../../../../src/channels/broker/redis/presence.js'
import { RedisUsers } from '../../../../src/channels/broker/redis/users.js'
import { until } from '../../../kit/wait.js'

const quiet = () => {}
const log = /** @type {any} */ ({ debug: quiet, info: quiet, warn: quiet, error: quiet })
let workers = 0

export const ids = (count, from = 0) => Array.from({ length: count }, (_, i) => `client ${from + i}`).sort()
export const same = (a, b) => JSON.stringify(a) === JSON.stringify(b)

/** ClientInfo as JSON text. */
export const info = (user, client, more = {}) => JSON.stringify({ user, client, ...more })

/** RedisPresence and RedisUsers of one worker, over its own connection. */
export class Worker {
  /** @type {[channel: string, message: string][]} */
  messages = []
  /** Number of times that it has connected. */
  ups = 0
  /** @type {NodeJS.Timeout | undefined} */
  #timer

  /**
   * @param {any} t ends with this test
   * @param {import('../../../kit/servers/redis.js').RedisServer | import('../../../kit/servers/cluster.js').Cluster}
   *   server
   * @param {object} [options] @param {number} [options.ttl] ms
   * @param {number} [options.every] ms from tick to tick, 0: none @param {object} [options.redis] more for ioredis
   */
  constructor(t, server, { ttl = 60_000, every = 0, redis = {} } = {}) {
    const nodes = 'servers' in server ? server.servers : [server]
    const { host, port } = nodes[0]
    const kind = nodes.length > 1 ? 'cluster' : 'single'
    const options = { host, port, socketTimeout: 20_000, ...redis }
    this.uid = `worker${++workers}`
    this.placement = new Placement(
      [{ kind, key: 'engine.redis', name: `${host}:${port}`, options, nodes }],
      { prefix: 'test', partitions: 16 },
      {
        up: partition => {
          this.ups++
          this.users.up(partition)
          this.presence.up(partition)
        },
        down: quiet,
        channelMessage: (channel, message) => this.messages.push([channel, String(message)]),
        controlMessage: quiet,
      },
      log,
    )
    const { placement, uid } = this
    this.presence = new RedisPresence({
      ...{ placement, uid, ttl, log },
      ...{ events: /** @type {any} */ ({}), delay: 5000, partitions: 1, send() {} },
    })
    this.users = new RedisUsers({ placement, uid, lease: ttl, log })
    if (every > 0) this.ticks(every)
    placement.connect()
    t.teardown(() => this.die())
  }

  /** @returns {Promise<Worker>} connected to Redis */
  static async join(t, server, options = {}) {
    const worker = new Worker(t, server, options)
    await until(() => worker.up)
    return worker
  }

  get up() {
    return this.placement.up
  }

  /** @param {number} every ms; from now on */
  ticks(every) {
    this.#timer = setInterval(() => this.tick(), every)
  }

  tick() {
    this.presence.tick()
    this.users.tick()
  }

  /** It exits without cleaning up. */
  die() {
    clearInterval(this.#timer)
    this.placement.close()
  }

  /** @returns {Promise<void>} when its connection was lost and restored */
  async reconnected(cut) {
    const { ups } = this
    await cut()
    await until(() => this.ups > ups && this.up)
  }

  /** Subscribes to a channel: its messages go to `messages`. */
  subscribe(channel) {
    const partition = this.placement.of(channel)
    return new Promise(resolve => partition.subscribe([partition.key('channel', channel)], resolve))
  }

  /** @returns {Promise<void>} rejects with what it fails with */
  add(channel, client, user = 'anna', { leave = false, text = info(user, client) } = {}) {
    return new Promise((resolve, reject) =>
      this.presence.add(channel, client, text, { leave }, error => (error ? reject(error) : resolve())),
    )
  }

  remove(channel, client) {
    this.presence.remove(channel, client)
  }

  /** @returns {Promise<string[]>} ids of clients, sorted */
  async clients(channel) {
    return [...(await this.presence.list(channel)).keys()].sort()
  }

  /** @returns {Promise<boolean>} whether the connection was admitted */
  claim(user, limit) {
    return new Promise((resolve, reject) =>
      this.users.claim(user, limit, (error, admitted) => (error ? reject(error) : resolve(admitted))),
    )
  }

  release(user) {
    this.users.release(user)
  }
}

/**
 * @param {import('../../../kit/servers/redis.js').RedisServer} server
 * @returns {Promise<string[]>} keys that would stay for ever, except the branch of a partition
 */
export async function keptForEver(server) {
  const kept = []
  for (const key of await server.call('KEYS', '*'))
    if (!key.endsWith('.branch.current') && (await server.call('PTTL', key)) === -1) kept.push(key)
  return kept
}

/** @returns {Promise<Record<string, string>>} a user in Redis: worker -> connections */
export async function countsOf(server, user) {
  const found = await server.call('HGETALL', `test.user.${user}`)
  return Object.fromEntries(found.flatMap((uid, i) => (i % 2 === 0 ? [[uid, found[i + 1]]] : [])))
}

/** Ends the connections of all workers. */
export const cutAll = server => server.call('CLIENT', 'KILL', 'SKIPME', 'yes')

/** As short as possible: on a busy machine a worker or Redis may be blocked for one or two seconds. ms */
export const SHORT = { ttl: 2500, every: 100 }

/** Tests that start with an empty server, and the start of their workers. */
export const testsOn = (t, server) => ({
  test: (name, body) =>
    t.test(name, async t => {
      await server.call('CONFIG', 'SET', 'maxmemory', '0')
      await server.call('FLUSHALL')
      await body(t)
    }),
  join: (t, options = {}) => Worker.join(t, server, options),
})
