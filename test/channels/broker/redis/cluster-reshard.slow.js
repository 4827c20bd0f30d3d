// Slots of channels move to other masters under traffic.

import t from 'tap'
import { RawClient } from '../../../kit/raw-client.js'
import { needsRedis, startCluster } from '../../../kit/servers/redis.js'
import { moveSlot } from './cluster-rig.js'
import { channels, startNode } from './nodes.js'
import { audit, begin, Listener, Load, SdkListener } from './traffic.js'

needsRedis(t)

const PARTITIONS = 6

for (const sharded of [true, false]) {
  const kind = sharded ? 'sharded pub/sub' : 'plain pub/sub'
  t.test(`${kind}: moving slots does not affect clients`, async t => {
    const cluster = await startCluster(t, {
      replicas: 0,
      timeout: 15_000,
      args: sharded ? [] : ['--rename-command', 'SPUBLISH', ''],
    })
    const options = { redis: { io_timeout: '5s', sharded_pub_sub_partitions: PARTITIONS }, workers: 1 }
    const [a, b] = await Promise.all([
      startNode(t, cluster.address, options),
      startNode(t, cluster.address, options),
    ])
    const kept = channels('kept', 12)
    const listeners = [a, b].flatMap(({ ws }) => [
      new Listener(() => ws, kept, { stays: true }),
      new SdkListener(() => ws, kept, { stays: true }),
    ])
    await begin(t, listeners)
    const load = new Load(() => [a.url, b.url], kept, { rate: 400 })
    await load.acked(100)
    for (let partition = 0; partition < PARTITIONS; partition++) {
      const slot = await cluster.servers[0].call('CLUSTER', 'KEYSLOT', `{${partition}}`)
      const source = await cluster.masterOf(slot)
      const target = cluster.servers[(cluster.servers.indexOf(source) + 1) % cluster.servers.length]
      await moveSlot(cluster, slot, target, () => load.acked(20))
      await load.acked(50)
    }
    await load.stop()
    await audit(t, load, listeners, a)
    t.ok(load.failed > 0, `${load.acks} acknowledged, ${load.failed} failed while their channels were moving`)
    const clients = await Promise.all([a, b].map(({ ws }) => RawClient.connected(ws)))
    for (const client of clients) await client.subscribe('kept:room')
    const { result } = await a.api('presence', { channel: 'kept:room' })
    t.same(Object.keys(result.presence).sort(), clients.map(({ connect }) => connect.client).sort())
    t.same((await b.api('channels', { pattern: 'kept:room' })).result.channels, {
      'kept:room': { num_clients: 2 },
    })
    await Promise.all(clients.map(client => client.close()))
    const errors = [a, b].flatMap(({ lines }) => lines.filter(({ level }) => level > 40))
    t.same(errors, [])
  })
}
