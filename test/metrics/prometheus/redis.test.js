// Metrics of two nodes of a cluster: each reports its own.

import t from 'tap'
import { startNode } from '../../channels/broker/redis/nodes.js'
import { RawClient } from '../../kit/raw-client.js'
import { needsRedis, startRedis } from '../../kit/servers/redis.js'
import { eventually } from '../../kit/wait.js'
import { value } from './exposition.js'
import { scrape, settled } from './scrape.js'

needsRedis(t)

t.test('each node counts the changes of maps that it has made', async t => {
  const redis = await startRedis(t)
  const maps = [
    { name: 'map', subscription_type: 'map', map: { mode: 'recoverable', key_ttl: '1h' } },
    { name: 'brief', subscription_type: 'map', map: { mode: 'ephemeral', key_ttl: '1s' } },
  ]
  const config = { prometheus: { enabled: true }, channel: { namespaces: maps } }
  const start = () => startNode(t, redis.address, { config })
  const [a, b] = await Promise.all([start(), start()])
  for (const key of ['k1', 'k2', 'k3']) await a.api('map_publish', { channel: 'map:1', key, data: 1 })
  await a.api('map_publish', { channel: 'map:1', key: 'k1', data: 2, key_mode: 'if_new' })
  for (const key of ['k2', 'k2', 'none']) await b.api('map_remove', { channel: 'map:1', key })
  for (const key of ['e1', 'e2']) await b.api('map_publish', { channel: 'brief:1', key, data: 1 })
  const counts = async (/** @type {import('../../kit/gateway.js').TestGateway} */ gateway) => {
    const got = await scrape(gateway)
    t.ok(Number.isNaN(value(got, 'halley_map_keys')), 'no keys')
    return ['publishes', 'removals', 'expiries'].map(name => value(got, `halley_map_${name}_total`))
  }
  const sum = await eventually(
    async () => {
      const [ofA, ofB] = await Promise.all([counts(a), counts(b)])
      return [...ofA.slice(0, 2), ...ofB.slice(0, 2), ofA[2] + ofB[2]]
    },
    ([, , , , expiries]) => expiries === 2,
  )
  t.same(sum, [3, 0, 2, 1, 2])
})

t.test('each node reports its own clients, users and channels, and the number of nodes', async t => {
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
