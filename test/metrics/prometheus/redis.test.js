// Metrics of two nodes that Redis makes one gateway: each tells of itself.

import t from 'tap'
import { startNode } from '../../channels/broker/redis/nodes.js'
import { RawClient } from '../../kit/raw-client.js'
import { needsRedis, startRedis } from '../../kit/servers/redis.js'
import { value } from './exposition.js'
import { settled } from './scrape.js'

needsRedis(t)

t.test('each node tells of its own clients, users and channels, and of how many nodes there are', async t => {
  const redis = await startRedis(t)
  const config = { prometheus: { enabled: true } }
  const start = () => startNode(t, redis.address, { config })
  const nodes = await Promise.all([start(), start()])
  for (const [index, gateway] of nodes.entries()) {
    for (let count = 0; count < 12 * (index + 1); count++) {
      const client = await RawClient.connected(gateway.ws)
      await client.subscribe('live:everywhere')
      if (index === 1) await client.subscribe('live:here')
    }
  }
  const clients =
    (/** @type {number} */ count, subscriptions = count) =>
    (/** @type {any} */ got) =>
      value(got, 'centrifugo_node_num_clients') === count &&
      value(got, 'centrifugo_node_num_subscriptions') === subscriptions &&
      value(got, 'centrifugo_node_num_users') === 1 &&
      value(got, 'centrifugo_node_num_nodes') === 2
  const [a, b] = [await settled(nodes[0], clients(12)), await settled(nodes[1], clients(24, 48))]
  t.equal(value(a, 'centrifugo_node_num_channels'), 1, 'a channel of both workers counts once')
  t.equal(value(b, 'centrifugo_node_num_channels'), 2)
  t.equal(value(a, 'centrifugo_node_num_subscriptions'), 12)
  t.equal(value(b, 'centrifugo_node_num_subscriptions'), 48)
  t.equal(value(b, 'halley_node_info', { engine: 'redis' }), 1)

  await nodes[1].stop()
  const alone = await settled(nodes[0], got => value(got, 'centrifugo_node_num_nodes') === 1)
  t.equal(value(alone, 'centrifugo_node_num_clients'), 12)
})
