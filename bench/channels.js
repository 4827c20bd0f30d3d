// Many channels with one subscriber each, and the loss of all connections to Redis.

import { setTimeout as sleep } from 'node:timers/promises'
import { channelNumber } from '../fleet/channel-template.js'
import { makePayload } from '../fleet/drone/engine/payload.js'
import { rounded } from '../fleet/runner/table.js'
import { parseFlags, UsageError } from './flags.js'
import { channelOf, Load } from './load.js'
import { SharedRedis } from './redis.js'
import { checkCapacity, post, prefixedOutput, printResult, ServerRun } from './servers.js'

/** Channels that get a publication after the cut. */
const PROBES = 200
/** Concurrent publishes of probes. */
const PUBLISHERS = 8
/** ms between two readings of Redis. */
const POLL_INTERVAL = 5
/** Maximum ms from the cut until all subscriptions are in Redis again, and the probes are published. */
const PATIENCE = 60_000
/** Kept publications of each channel with history. */
const HISTORY = 10
/** ms before a refused publish is repeated. */
const RETRY_DELAY = 10

/** Name of the gateways' connections in CLIENT LIST. */
const CLIENT_NAME = 'halley-bench'
/** ms between two readings of memory; the least of several counts, because garbage waits for its collection. */
const READ_INTERVAL = 500
const DEFAULTS = { conns: 10_000, subscriptions: 10, seconds: 8, workers: 2, nodes: 1, size: 100 }

export const HELP = `Usage: npm run bench -- channels [flags]

Clients connect, then subscribe each to channels of their own, then idle. With Redis all connections of the gateways to it
are cut in the end.

  --conns N           clients (default ${DEFAULTS.conns})
  --subscriptions N   of each client (default ${DEFAULTS.subscriptions})
  --seconds N         for memory to settle (default ${DEFAULTS.seconds})
  --size BYTES        of the probes after the cut (default ${DEFAULTS.size})
  --workers N         of each gateway (default ${DEFAULTS.workers})
  --engine ENGINE     memory or redis (default memory)
  --redis ADDRESS     a running Redis; default: one is started
  --nodes N           gateways that share the Redis (default ${DEFAULTS.nodes})
  --history           0 or 1: all channels keep 10 publications (default 0)
  --driver DRIVER     auto, uws or node (default auto)
  --json              a line of JSON instead of a table
  -h, --help          this text
`

/** @typedef {typeof DEFAULTS & {engine: string, redis: string, history: string, driver: string, json: boolean}} ChannelsOptions */

/** @param {string[]} args @returns {ChannelsOptions | null} null: help was requested @throws {UsageError} */
export function parseOptions(args) {
  const options = parseFlags(args, DEFAULTS, { engine: 'memory', redis: '', history: '0', driver: 'auto' })
  if (options === null) return null
  if (!['memory', 'redis'].includes(options.engine))
    throw new UsageError(`--engine is memory or redis, not "${options.engine}"`)
  if (options.engine === 'memory' && (options.nodes > 1 || options.redis !== ''))
    throw new UsageError('--nodes and --redis want --engine redis')
  checkCapacity(options.conns, options.workers * options.nodes)
  return /** @type {ChannelsOptions} */ (options)
}

/** Gateways that share a Redis, or one without. */
class Deployment {
  /** @param {import('./servers.js').Gateway[]} servers @param {SharedRedis | null} redis */
  constructor(servers, redis) {
    this.servers = servers
    this.redis = redis
    this.apis = servers.map(({ api }) => api)
  }

  /** @returns {number} s of processor time of all gateways */
  cpu() {
    return this.servers.reduce((sum, server) => sum + server.cpu(), 0)
  }

  /** @param {number} seconds @returns {Promise<number>} the least bytes of user space in that time */
  async leastMemory(seconds) {
    let least = Infinity
    for (let waited = 0; waited < seconds * 1e3; waited += READ_INTERVAL) {
      await sleep(READ_INTERVAL)
      least = Math.min(
        least,
        this.servers.reduce((sum, server) => sum + server.memory(), 0),
      )
    }
    return least
  }
}

/** @extends {ServerRun<ChannelsOptions>} */
export class Run extends ServerRun {
  async run() {
    const {
      engine,
      redis: address,
      nodes,
      workers,
      history,
      driver,
      subscriptions,
      json,
      ...sizes
    } = this.options
    const show = prefixedOutput(this.io, 'channels')
    const addresses = engine === 'redis' ? [address || (await this.startRedis())] : []
    const redis = engine === 'redis' ? await SharedRedis.open(addresses, CLIENT_NAME) : null
    this.ends.push(() => redis?.stop())
    const servers = []
    for (let node = 0; node < nodes; node++)
      servers.push(
        await this.spawn({
          workers,
          driver,
          history: history === '1' ? HISTORY : 0,
          subscriptions,
          redis: redis ? { address: addresses, client_name: CLIENT_NAME } : undefined,
        }),
      )
    const load = { ...sizes, channels: 0, rate: 0, publishers: 0, loaders: nodes, subscriptions }
    const result = await channels(new Deployment(servers, redis), load, show)
    this.io.progress('')
    printResult(this.io, json, { scenario: 'channels', engine }, engine, result)
  }
}

/**
 * Clients connect, then subscribe, then idle; then Redis loses its connections.
 * @param {Deployment} deployment @param {import('./load.js').Sizes} sizes @param {import('./load.js').Show} show
 * @returns {Promise<import('../fleet/runner/table.js').Result>}
 */
async function channels(deployment, sizes, show) {
  const { redis, apis } = deployment
  const subscriptions = sizes.subscriptions ?? 1
  const targets = deployment.servers.map(({ url }) => ({ url, transport: 'websocket' }))
  const load = new Load({ targets, apis }, { ...sizes, subscriptions }, show)
  try {
    const connected = await load.connect()
    show.progress('all connected, memory settles')
    const connectedMemory = await deployment.leastMemory(sizes.seconds)
    const redisBefore = await redis?.memory()
    const beforeSubscribe = await usage(deployment)
    const { subscribed, refused, seconds } = await load.subscribe()
    const subscribing = await usage(deployment, beforeSubscribe)
    if (subscribed === 0) throw new Error('no client got a subscription')
    show.progress('all subscribed, memory settles')
    const beforeIdle = await usage(deployment)
    const subscribedMemory = await deployment.leastMemory(sizes.seconds)
    const idle = await usage(deployment, beforeIdle)
    const redisAfter = await redis?.memory()
    /** @param {number} cpu s @returns {number} us for each subscription */
    const perSubscription = cpu => rounded((cpu / subscribed) * 1e6, 1)
    const result = {
      connections: connected.ready,
      failed: connected.failed,
      subscriptions: subscribed,
      refused,
      bytes_per_subscription: Math.round((subscribedMemory - connectedMemory) / subscribed),
      subscribe_seconds: rounded(seconds, 2),
      subscribes_per_s: Math.round(subscribed / seconds),
      subscribe_cpu_us: perSubscription(subscribing.server),
      idle_cpu_percent: rounded((idle.server / idle.seconds) * 100, 1),
      ...(redis && {
        redis_bytes_per_subscription: Math.round((Number(redisAfter) - Number(redisBefore)) / subscribed),
        redis_subscribe_cpu_us: perSubscription(subscribing.redis),
        redis_idle_cpu_percent: rounded((idle.redis / idle.seconds) * 100, 1),
      }),
    }
    const cut = redis && (await cutRedis(deployment, redis, load, { ...sizes, subscriptions }, show))
    // The counter also has the subscriptions that ended.
    const { ended, refused: allRefused } = (await load.sample()).counters
    return {
      ...result,
      ...(cut && {
        resubscribed_ms: cut.resubscribed,
        delivering_ms: cut.delivering,
        probes: cut.probes,
        probes_delivered: cut.delivered,
        resubscribe_cpu_us: perSubscription(cut.use.server),
        redis_resubscribe_cpu_us: perSubscription(cut.use.redis),
      }),
      unsubscribed: allRefused - refused,
      closed: ended,
      connected_mb: rounded(connectedMemory / 1e6, 1),
    }
  } finally {
    load.stop()
  }
}

/**
 * @param {Deployment} deployment @param {{server: number, redis: number, seconds: number}} [since] an earlier result
 * @returns {Promise<{server: number, redis: number, seconds: number}>} s: processor time of the gateways and of Redis,
 *   and elapsed time
 */
async function usage(deployment, since = { server: 0, redis: 0, seconds: 0 }) {
  const redis = (await deployment.redis?.cpu()) ?? 0
  const seconds = performance.now() / 1e3
  return {
    server: deployment.cpu() - since.server,
    redis: redis - since.redis,
    seconds: seconds - since.seconds,
  }
}

/**
 * Ends all connections of the gateways to Redis. Waits until Redis has all their subscriptions again, then until one
 * publication has arrived in each probed channel.
 * @param {Deployment} deployment @param {SharedRedis} redis @param {Load} load
 * @param {{conns: number, subscriptions: number, size: number}} sizes @param {import('./load.js').Show} show
 */
async function cutRedis(deployment, redis, load, { conns, subscriptions, size }, show) {
  show.progress('connections to redis are cut')
  const channelsBefore = await redis.channels()
  const beforeCut = await usage(deployment)
  const cutAt = performance.timeOrigin + performance.now()
  await redis.killGatewayConnections()
  const deadline = Date.now() + PATIENCE
  // Subscriptions from before the cut no longer count: those connections ended before `cut` returned.
  while ((await redis.channels()) < channelsBefore) {
    if (Date.now() > deadline) throw new Error('the gateways have not subscribed again')
    await sleep(POLL_INTERVAL)
  }
  const resubscribed = performance.timeOrigin + performance.now() - cutAt
  const total = conns * subscriptions
  const probes = Math.min(PROBES, total)
  const { apis } = deployment
  let next = 0
  const publisher = async () => {
    while (next < probes) {
      const probe = next++
      // Evenly spread; the last channel is one of them.
      const index = Math.floor(((probe + 1) * total) / probes) - 1
      const channel = channelOf(index % subscriptions, Math.floor(index / subscriptions))
      // The fields are those of Payload in fleet/schema.js: each channel's first message, from this machine.
      const numbers = { s: 1, c: channelNumber(channel), e: 1, m: 1, o: 0 }
      const body = () =>
        `{"channel":"${channel}","data":${makePayload({ t: Date.now() * 1000, ...numbers }, size, false)}}`
      while (!(await post(apis[probe % apis.length], 'publish', body())) && Date.now() < deadline)
        await sleep(RETRY_DELAY)
    }
  }
  await Promise.all(Array.from({ length: PUBLISHERS }, publisher))
  const { counters, lastAt } = await load.drain(probes)
  return {
    resubscribed: Math.round(resubscribed),
    delivering: Math.round(lastAt - cutAt),
    probes,
    delivered: counters.received,
    use: await usage(deployment, beforeCut),
  }
}
