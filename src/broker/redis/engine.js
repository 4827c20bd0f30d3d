// The Redis engine: all three parts of a broker over one or more Redis servers, sentinel sets or clusters. One in each
// worker. Calls between workers of one node use the node's own bus, which works without Redis.

import { newEpoch } from '../shared.js'
import { parseTargets } from './address.js'
import { RedisControl } from './control.js'
import { Placement } from './placement.js'
import { RedisPresence } from './presence.js'
import { RedisPubSub } from './pubsub.js'
import { Users } from './users.js'

/** @param {import('../contract.js').EngineParts} parts @returns {import('../contract.js').Engine} */
export function createRedisEngine({ config, local, events, node, worker, log, onReady }) {
  const { redis } = config.engine
  const uid = newEpoch()
  const ready = () => placement.up && control.joined
  const placement = new Placement(
    parseTargets(redis),
    { prefix: redis.prefix, partitions: redis.sharded_pub_sub_partitions },
    {
      up(partition) {
        control.up(partition)
        pubsub.up(partition)
        presence.up(partition)
        if (ready()) onReady()
      },
      down(partition) {
        pubsub.down(partition)
        control.down(partition)
      },
      channelMessage: (channel, message) => pubsub.message(channel, message),
      controlMessage: (topic, message) => control.message(topic, message),
    },
    log,
  )
  const presence = new RedisPresence({ placement, uid, ttl: redis.presence_ttl, log })
  const pubsub = new RedisPubSub({ placement, presence, uid, events, log })
  const control = new RedisControl({
    placement,
    uid,
    node,
    worker,
    events,
    log,
    local,
    users: new Users({ placement, uid, log }),
    onJoined: () => ready() && onReady(),
  })
  return { pubsub, presence, control, ready, workerGone: index => control.workerGone(index) }
}
