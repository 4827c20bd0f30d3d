// The line to a master that sentinels name.

import t from 'tap'
import { parseTargets } from '../../src/broker/redis/address.js'
import { SingleShard } from '../../src/broker/redis/single-shard.js'
import { redisConfig } from '../broker/redis/rig.js'
import { keepLog, refusal, send } from './cluster-rig.js'
import { startSentinels, until } from './servers.js'

/**
 * @param {any} t
 * @param {import('./sentinels.js').SentinelSet} set
 */
function join(t, set) {
  const { lines, log } = keepLog()
  /** @type {string[]} */
  const events = []
  const [target] = parseTargets(
    redisConfig({ address: set.address, connect_timeout: '500ms', io_timeout: '1s' }),
  )
  const shard = new SingleShard(
    target,
    'test',
    {
      up: () => events.push('up'),
      down: () => events.push('down'),
      channelMessage: () => {},
      controlMessage: () => {},
    },
    log,
  )
  t.teardown(() => shard.close())
  shard.connect()
  const [partition] = shard.partitions
  /** @param {number} times */
  const ups = times => until(() => events.filter(event => event === 'up').length >= times)
  /** @returns {Promise<number>} the port of the server, once it can be written to */
  const port = () =>
    until(async () => {
      await send(partition, 'set', 'a', 'b')
      const reply = await send(partition, 'config', 'get', 'port')
      return Number(String(reply[1]))
    })
  return { shard, partition, events, lines, ups, port }
}

t.test('one master after another', async t => {
  const set = await startSentinels(t, { password: 'pass+word' })

  t.test('the sentinels choose another master though theirs lives', async t => {
    const { ups, port } = join(t, set)
    await ups(1)
    const master = await set.master()
    // Soon after another failover, sentinels may undo each other's work.
    const promoted = await set.failover()
    await ups(2)
    t.not(promoted.port, master.port)
    t.equal(await port(), promoted.port)
    await set.whole()
  })

  t.test('a master is killed', async t => {
    const { partition, lines, ups, port } = join(t, set)
    await ups(1)
    const master = await set.master()
    t.equal(await port(), master.port)
    await master.kill()
    const promoted = await set.replaced(master)
    await ups(2)
    t.equal(await port(), promoted.port)
    t.ok(partition.up)
    t.same(
      lines.map(({ msg }) => msg),
      ['redis is out of reach', 'redis is back'],
    )
    t.notOk(JSON.stringify(lines).includes('word'))
    await master.start()
    await set.whole()
  })

  t.test('a master that stands still', async t => {
    const { partition, ups, port } = join(t, set)
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
    const { events, partition, ups, port } = join(t, set)
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
    t.equal(await port(), (await set.master()).port)
    await set.whole()
  })
})

t.test('sentinels away while the master lives, and a master that dies meanwhile', async t => {
  const set = await startSentinels(t, { sentinels: 1 })
  const { events, partition, ups, port } = join(t, set)
  await ups(1)
  const master = await set.master()
  const [sentinel] = set.sentinels
  await sentinel.kill()
  t.equal(await port(), master.port, 'a connection that stands does not need them')
  t.same(events, ['up'])
  await master.kill()
  await until(() => events.length === 2)
  t.ok(await refusal(send(partition, 'get', 'a')))
  await sentinel.start()
  await ups(2)
  t.not(await port(), master.port)
})
