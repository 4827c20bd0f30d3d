// Many channels with one subscriber each.

import { setTimeout as sleep } from 'node:timers/promises'
import { channelNumber } from '../fleet/channel-template.js'
import { makePayload } from '../fleet/drone/engine/payload.js'
import { channelOf, Load } from './load.js'
import { rounded } from './report.js'
import { post } from './servers.js'

/** Channels that are probed after a cut. */
const PROBES = 200
const PROBES_AT_ONCE = 8
/** ms between two readings of Redis. */
const LOOK_EVERY = 5
/** ms for the subscriptions to return to Redis. */
const PATIENCE = 60_000
/** ms before a refused publish is repeated. */
const AGAIN_AFTER = 10

/** @typedef {import('./deployment.js').Deployment} Deployment */
/** @typedef {import('./redis.js').SharedRedis} SharedRedis */

/**
 * Clients connect, then subscribe, then idle; then Redis loses its connections. @type
 * {import('./scenarios.js').Scenario['run']}
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
    const before = await deployment.leastMemory(sizes.seconds)
    const redisBefore = await redis?.memory()
    const used = await usage(deployment)
    const { subscribed, refused, seconds } = await load.subscribe()
    const use = await usage(deployment, used)
    if (subscribed === 0) throw new Error('no client got a subscription')
    show.progress('all subscribed, memory settles')
    const idleFrom = await usage(deployment)
    const after = await deployment.leastMemory(sizes.seconds)
    const idle = await usage(deployment, idleFrom)
    const redisAfter = await redis?.memory()
    /** @param {number} cpu */
    const each = cpu => rounded((cpu / subscribed) * 1e6, 1)
    const result = {
      connections: connected.ready,
      failed: connected.failed,
      subscriptions: subscribed,
      refused,
      bytes_per_subscription: Math.round((after - before) / subscribed),
      subscribe_seconds: rounded(seconds, 2),
      subscribes_per_s: Math.round(subscribed / seconds),
      subscribe_cpu_us: each(use.server),
      idle_cpu_percent: rounded((idle.server / idle.seconds) * 100, 1),
      ...(redis && {
        redis_bytes_per_subscription: Math.round((Number(redisAfter) - Number(redisBefore)) / subscribed),
        redis_subscribe_cpu_us: each(use.redis),
        redis_idle_cpu_percent: rounded((idle.redis / idle.seconds) * 100, 1),
      }),
    }
    const cut = redis && (await cutAndWait(deployment, redis, load, { ...sizes, subscriptions }, show))
    const { ended, refused: unsubscribed } = (await load.sample()).counters
    return {
      ...result,
      ...(cut && {
        resubscribed_ms: cut.resubscribed,
        delivering_ms: cut.delivering,
        probes: cut.probes,
        probes_delivered: cut.delivered,
        resubscribe_cpu_us: each(cut.use.server),
        redis_resubscribe_cpu_us: each(cut.use.redis),
      }),
      unsubscribed: unsubscribed - refused,
      closed: ended,
      connected_mb: rounded(before / 1e6, 1),
    }
  } finally {
    load.stop()
  }
}

/**
 * @param {Deployment} deployment @param {{server: number, redis: number, seconds: number}} [since] an earlier result
 * @returns {Promise<{server: number, redis: number, seconds: number}>} seconds of processor time and of time
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
 * Ends all connections of the gateways to Redis, and waits until all their subscriptions are back and publications
 * arrive.
 * @param {Deployment} deployment @param {SharedRedis} redis @param {Load} load
 * @param {{conns: number, subscriptions: number, size: number}} sizes @param {import('./scenarios.js').Show} show
 */
async function cutAndWait(deployment, redis, load, { conns, subscriptions, size }, show) {
  show.progress('connections to redis are cut')
  const all = await redis.channels()
  const used = await usage(deployment)
  const cutAt = performance.timeOrigin + performance.now()
  await redis.cut()
  const patience = Date.now() + PATIENCE
  // Subscriptions from before the cut no longer count: those connections ended before `cut` returned.
  while ((await redis.channels()) < all) {
    if (Date.now() > patience) throw new Error('the gateways have not subscribed again')
    await sleep(LOOK_EVERY)
  }
  const resubscribed = performance.timeOrigin + performance.now() - cutAt
  const total = conns * subscriptions
  const probes = Math.min(PROBES, total)
  const { apis } = deployment
  let next = 0
  const publisher = async () => {
    while (next < probes) {
      const probe = next++
      // The last channel is one of them.
      const index = Math.floor(((probe + 1) * total) / probes) - 1
      const channel = channelOf(index % subscriptions, Math.floor(index / subscriptions))
      const numbers = { s: 1, c: channelNumber(channel), e: 1, m: 1, o: 0 }
      const body = () =>
        `{"channel":"${channel}","data":${makePayload({ t: Date.now() * 1000, ...numbers }, size, false)}}`
      while (!(await post(apis[probe % apis.length], 'publish', body())) && Date.now() < patience)
        await sleep(AGAIN_AFTER)
    }
  }
  await Promise.all(Array.from({ length: PROBES_AT_ONCE }, publisher))
  const { counters, lastAt } = await load.drain(probes)
  return {
    resubscribed: Math.round(resubscribed),
    delivering: Math.round(lastAt - cutAt),
    probes,
    delivered: counters.received,
    use: await usage(deployment, used),
  }
}
