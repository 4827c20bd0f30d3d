// The Redis engine: all three parts of a broker over one or more Redis servers, sentinel sets or clusters. One in each
// worker. Calls between workers of one node use the node's own bus, which works without Redis.
//
//   placement.js                      channel -> Partition -> Connection: which server, which hash slot
//   pubsub.js, channels.js, queue.js  subscriptions, publications and reads, batched; recovery after an outage
//   presence.js, users.js             entries in Redis under the lease of this worker
//   control.js, orders.js             registry, surveys, orders and calls, as messages to the inboxes of workers
//   holds.js                          keeps partitions away from clients until missed orders are executed
//   probe.js                          the check of all servers before any worker starts

import { newEpoch } from '../epoch.js'
import { parseTargets } from './address.js'
import { RedisControl } from './control.js'
import { Holds } from './holds.js'
import { Placement } from './placement.js'
import { RedisPresence } from './presence.js'
import { RedisPubSub } from './pubsub.js'
import { RedisUsers } from './users.js'

/** Shortest time that the position of a channel without publications outlives its last use, ms. */
const MIN_EMPTY_TTL = 5 * 60 * 1000

/** ms until another attempt to connect succeeds. */
const MAX_RETRY = 2000

/** @param {import('../contract.js').EngineParts} parts @returns {import('../contract.js').Engine} */
export function createRedisEngine({ config, onReady, ...given }) {
  const { redis } = config.engine
  const ready = () => placement.up && control.joined
  const placement = new Placement(
    parseTargets(redis),
    { prefix: redis.prefix, partitions: redis.sharded_pub_sub_partitions },
    {
      up(partition) {
        control.up(partition)
        holds.up(partition)
      },
      down(partition) {
        holds.down(partition)
        pubsub.down(partition)
        control.down(partition)
      },
      channelMessage: (channel, message) => pubsub.message(channel, message),
      controlMessage: (topic, message) => control.message(topic, message),
    },
    given.log,
  )
  const parts = { ...given, placement, uid: newEpoch() }
  const presence = new RedisPresence({ ...parts, ttl: redis.presence_ttl })
  // Each position check of a subscriber keeps the position of a channel without publications alive.
  const emptyTtl = Math.max(MIN_EMPTY_TTL, 3 * config.client.channel_position_check_delay)
  const pubsub = new RedisPubSub({ ...parts, presence, emptyTtl })
  const users = new RedisUsers(parts)
  const holds = new Holds({
    placement,
    isCurrent: () => control.current,
    maxHold: redis.connect_timeout + MAX_RETRY,
    open(partition, isNew) {
      pubsub.up(partition)
      if (isNew) presence.up(partition)
      if (ready()) onReady()
    },
  })
  const control = new RedisControl({
    ...parts,
    users,
    onJoined: () => ready() && onReady(),
    onCurrent: () => holds.end(),
    onStale: () => holds.begin(),
  })
  return { pubsub, presence, control, ready, workerGone: index => control.workerGone(index) }
}
