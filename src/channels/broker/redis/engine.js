// Redis engine of a worker, for Redis servers, sentinel sets or clusters. Calls within a node use the node's bus.
//
//   placement.js                      channel -> Partition -> Connection: which server, which hash slot
//   pubsub.js, channels.js, queue.js  subscriptions, publications and reads, batched; recovery after an outage
//   maps.js                           keyed state, each write in one script
//   presence.js, states.js, users.js  entries in Redis under the lease of this worker
//   control.js, orders.js             registry, surveys, orders and calls, as messages to the inboxes of workers
//   holds.js                          blocks partitions until missed orders are executed
//   probe.js                          checks all servers before workers start

import { newEpoch } from '../epoch.js'
import { parseTargets } from './address.js'
import { RedisControl } from './control.js'
import { Holds } from './holds.js'
import { RedisMaps } from './maps.js'
import { Placement } from './placement.js'
import { RedisPresence } from './presence.js'
import { RedisPubSub } from './pubsub.js'
import { RedisUsers } from './users.js'

/** @import { Engine, EngineParts } from '../contract.js' */

/**
 * @typedef {Pick<EngineParts, 'events' | 'node' | 'worker' | 'local' | 'republishing' | 'log'> & {placement: Placement,
 *   uid: string}} RedisParts shared by the engine's parts; `uid` of this worker's lifetime: letters and digits
 */

/** Minimum lifetime of an unused position of a channel without publications, ms. */
const MIN_EMPTY_TTL = 5 * 60 * 1000

/** Maximum time of another connection attempt, ms. */
const MAX_RETRY = 2000

/** @param {EngineParts} parts @returns {Engine} */
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
  const presence = new RedisPresence({
    ...parts,
    ttl: redis.presence_ttl,
    delay: redis.channel_state.vacated_event_delay,
    partitions: redis.channel_state.num_partitions,
    send: (uid, message) => control.send(uid, message),
  })
  // Subscribers' position checks keep the positions of channels without publications alive.
  const emptyTtl = Math.max(MIN_EMPTY_TTL, 3 * config.client.channel_position_check_delay)
  const pubsub = new RedisPubSub({ ...parts, presence, emptyTtl })
  const { batches, isSubscribed } = pubsub
  const maps = new RedisMaps({ ...parts, batches, isSubscribed, emptyTtl })
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
    onWorkerGone: uid => maps.workerGone(uid),
    onState: index => presence.states.wake(index),
  })
  return { pubsub, presence, maps, control, ready, workerGone: index => control.workerGone(index) }
}
