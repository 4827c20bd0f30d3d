// Two gateways on a Redis Cluster, of which a slot moves. The other `cluster-*` do more of it.

import t from 'tap'
import { RawClient } from '../../../kit/raw-client.js'
import { needsRedis, startCluster } from '../../../kit/servers/redis.js'
import { moveSlot } from './cluster-rig.js'
import { channels, startNode } from './nodes.js'
import { audit, begin, Listener, Load, SdkListener } from './traffic.js'

needsRedis(t)

t.test('gateways on a cluster are one gateway, and clients notice nothing when a slot moves', async t => {
  const cluster = await startCluster(t, { masters: 2, replicas: 0, timeout: 15_000 })
  const options = { redis: { io_timeout: '5s', sharded_pub_sub_partitions: 4 }, workers: 1 }
  const nodes = await Promise.all([
    startNode(t, cluster.address, options),
    startNode(t, cluster.address, options),
  ])
  const kept = channels('kept', 8)
  const listeners = nodes.flatMap(({ ws }) => [
    new Listener(() => ws, kept, { stays: true }),
    new SdkListener(() => ws, kept, { stays: true }),
  ])
  await begin(t, listeners)
  const load = new Load(() => nodes.map(({ url }) => url), kept, { rate: 400 })
  await load.acked(100)
  const slot = await cluster.servers[0].call('CLUSTER', 'KEYSLOT', '{0}')
  const source = await cluster.masterOf(slot)
  const target = /** @type {any} */ (cluster.servers.find(server => server !== source))
  await moveSlot(cluster, slot, target, () => load.acked(20))
  await load.acked(100)
  await load.stop()
  await audit(t, load, listeners, nodes[0])

  const clients = await Promise.all(nodes.map(({ ws }) => RawClient.connected(ws)))
  for (const client of clients) await client.subscribe('kept:room')
  const { result } = await nodes[0].api('presence', { channel: 'kept:room' })
  t.same(Object.keys(result.presence).sort(), clients.map(({ connect }) => connect.client).sort())
  t.same((await nodes[1].api('channels', { pattern: 'kept:room' })).result.channels, {
    'kept:room': { num_clients: 2 },
  })
  await Promise.all(clients.map(client => client.close()))
})
