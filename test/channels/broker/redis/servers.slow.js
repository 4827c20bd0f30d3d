// The servers that other tests stand on.

import t from 'tap'
import { needsRedis, startCluster, startRedis, startSentinels } from '../../../kit/servers/redis.js'

needsRedis(t)

/** @param {import('../../../kit/servers/redis.js').RedisServer[]} servers */
const ports = servers => servers.map(({ port }) => port)

t.test('a server that is killed comes back on its port, with what it was told to keep', async t => {
  for (const aof of [false, true]) {
    const redis = await startRedis(t, { aof, password: 'secret / 1' })
    const { port, pid } = redis
    await redis.call('SET', 'a', 'b')
    await redis.kill()
    t.notOk(redis.runs)
    await t.rejects(redis.call('PING'))
    await redis.restart()
    t.equal(redis.port, port)
    t.not(redis.pid, pid)
    t.equal(await redis.call('GET', 'a'), aof ? 'b' : null)
  }
})

t.test('a server that stands still goes on where it was', async t => {
  const redis = await startRedis(t)
  redis.stop()
  const reply = redis.call('INCR', 'a')
  const first = await Promise.race([reply, new Promise(resolve => setTimeout(resolve, 50, 'nothing'))])
  t.equal(first, 'nothing')
  redis.cont()
  t.equal(await reply, 1)
})

t.test('a cluster has a new master when one dies, and when it is told to', async t => {
  const cluster = await startCluster(t)
  t.equal(cluster.servers.length, 6)
  const masters = await cluster.masters()
  t.same(ports(masters), ports(cluster.servers.slice(0, 3)))
  t.equal((await cluster.masterOf(0)).port, masters[0].port)
  t.equal((await cluster.masterOf(16_383)).port, masters[2].port)
  const promoted = await cluster.failover(masters[0])
  t.equal(promoted.port, cluster.servers[3].port)
  t.equal((await cluster.masterOf(0)).port, promoted.port)
  await masters[1].kill()
  t.equal((await cluster.replaced(masters[1])).port, cluster.servers[4].port)
  await masters[1].restart()
  await cluster.whole()
  t.same(ports(await cluster.replicasOf(cluster.servers[4])), [masters[1].port])
})

t.test('sentinels name another master when the one they had dies', async t => {
  const set = await startSentinels(t, { password: 'secret' })
  const [master, replica] = set.servers
  t.equal((await set.master()).port, master.port)
  await master.call('SET', 'a', 'b')
  await master.call('WAIT', 1, 0)
  await master.kill()
  t.equal((await set.replaced(master)).port, replica.port)
  t.equal(await replica.call('GET', 'a'), 'b')
  await master.restart()
  await set.whole()
})
