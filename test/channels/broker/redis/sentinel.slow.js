// The connection to a master named by sentinels.

import t from 'tap'
import { needsRedis, startSentinels } from '../../../kit/servers/redis.js'
import { until } from '../../../kit/wait.js'
import { refusal, send } from './cluster-rig.js'
import { joinSentinels } from './sentinel-rig.js'

needsRedis(t)

t.test('the master changes', async t => {
  const set = await startSentinels(t, { password: 'pass+word' })

  t.test('a new master takes over from a killed one', async t => {
    const { lines, ups, port } = joinSentinels(t, set)
    await ups(1)
    const master = await set.master()
    t.equal(await port(), master.port)
    await master.kill()
    // All sentinels have announced it.
    const promoted = await set.replaced(master)
    await ups(2)
    for (let i = 0; i < 200; i++) t.equal(await port(), promoted.port)
    const messages = lines.map(({ msg }) => msg)
    t.same(messages, ['redis is unreachable', 'redis is reachable again'], 'one outage')
    t.notOk(JSON.stringify(lines).includes('word'))
    await master.start()
    await set.whole()
  })

  t.test('the gateway leaves a master that becomes a replica', async t => {
    const { events, partition, ups, port } = joinSentinels(t, set)
    await ups(1)
    const master = await set.master()
    const other = /** @type {any} */ (set.servers.find(server => server !== master))
    // Nothing prevents this while no sentinel runs.
    for (const sentinel of set.sentinels) sentinel.stop()
    await other.call('REPLICAOF', 'NO', 'ONE')
    await master.call('REPLICAOF', other.host, other.port)
    await until(async () => {
      await refusal(send(partition, 'set', 'a', 'b'))
      return events.includes('down')
    })
    for (const sentinel of set.sentinels) sentinel.cont()
    await ups(2)
    // They may revert the change while they are queried.
    t.ok(await until(async () => (await port()) === (await set.master()).port))
    await set.whole()
  })
})
