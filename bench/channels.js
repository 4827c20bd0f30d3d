// The scenario `channels`: many channels with one subscriber each, and the loss of all connections to Redis.

import { setTimeout as sleep } from 'node:timers/promises'
import { channelNumber } from '../fleet/channel-template.js'
import { makePayload } from '../fleet/drone/engine/payload.js'
import { channelOf, Load } from './load.js'
import { rounded } from './report.js'
import { post } from './servers.js'

/** Channels that get a publication after the cut. */
const PROBES = 200
/** Concurrent publishes of probes. */
const PUBLISHERS = 8
/** ms between two readings of Redis. */
const POLL_INTERVAL = 5
/** Maximum ms from the cut until all subscriptions are in Redis again, and the probes are published. */
const PATIENCE = 60_000
/** ms before a refused publish is repeated. */
const RETRY_DELAY = 10

/** @typedef {import('./deployment.js').Deployment} Deployment */
/** @typedef {import('./redis.js').SharedRedis} SharedRedis */

/**
 * Clients connect, then subscribe, then idle; then Redis loses its connections.
 * @type {import('./scenarios.js').Scenario['run']}
 */
export async function channels(deployment, sizes, show) {
  const { redis, apis } = deployment
  const subscriptions = sizes.subscriptions ?? 1
  // Only WebSocket clients can subscribe after they have connected.
  const targets = deployment.targets.map(({ url }) => ({ url, transport: 'websocket' }))
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
 * @param {{conns: number, subscriptions: number, size: number}} sizes @param {import('./scenarios.js').Show} show
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
