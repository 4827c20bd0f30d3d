// The connection to a master that sentinels name.

import t from 'tap'
import { needsRedis, startSentinels } from '../../../kit/servers/redis.js'
import { until } from '../../../kit/wait.js'
import { refusal, send } from './cluster-rig.js'
import { joinSentinels } from './sentinel-rig.js'

needsRedis(t)

t.test('one master after another', async t => {
  const set = await startSentinels(t, { password: 'pass+word' })

  t.test('the sentinels choose another master though theirs lives', async t => {
    const { ups, port } = joinSentinels(t, set)
    await ups(1)
    const master = await set.master()
    // Soon after another failover, sentinels may undo each other's work.
    const promoted = await set.failover()
    await ups(2)
    t.not(promoted.port, master.port)
    // A sentinel that has not heard of it yet may have named the old one once more.
    await until(async () => (await port()) === promoted.port)
    await set.whole()
  })

  t.test('a master is killed', async t => {
    const { lines, ups, port } = joinSentinels(t, set)
    await ups(1)
    const master = await set.master()
    t.equal(await port(), master.port)
    await master.kill()
    // All sentinels have announced it.
    const promoted = await set.replaced(master)
    await ups(2)
    for (let i = 0; i < 200; i++) t.equal(await port(), promoted.port)
    const told = lines.map(({ msg }) => msg)
    t.same(told, ['redis is out of reach', 'redis is back'], 'one outage')
    t.notOk(JSON.stringify(lines).includes('word'))
    await master.start()
    await set.whole()
  })

  t.test('a master that stands still', async t => {
    const { partition, ups, port } = joinSentinels(t, set)
    await ups(1)
    const master = await set.master()
    master.stop()
    t.ok(await refusal(send(partition, 'get', 'a')), 'fails within io_timeout')
    await ups(2)
    t.not(await port(), master.port)
    master.cont()
    await set.whole()
    t.not(await port(), master.port)
  })

  t.test('a master that becomes a replica of another one is left', async t => {
    const { events, partition, ups, port } = joinSentinels(t, set)
    await ups(1)
    const master = await set.master()
    const other = /** @type {any} */ (set.servers.find(server => server !== master))
    // Nobody keeps it from this while no sentinel looks.
    for (const sentinel of set.sentinels) sentinel.stop()
    await other.call('REPLICAOF', 'NO', 'ONE')
    await master.call('REPLICAOF', other.host, other.port)
    await until(async () => {
      await refusal(send(partition, 'set', 'a', 'b'))
      return events.includes('down')
    })
    for (const sentinel of set.sentinels) sentinel.cont()
    await ups(2)
    // They may undo what they find, and change their minds while they are asked.
    t.ok(await until(async () => (await port()) === (await set.master()).port))
    await set.whole()
  })
})
