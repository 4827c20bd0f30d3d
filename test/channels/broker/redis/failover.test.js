// A replica takes over without the last writes of its master, which went on alone. `REPLICAOF NO ONE` does to a replica
// what Sentinel and Cluster do; see test/channels/broker/redis for failovers by them.

import t from 'tap'
import { errors } from '../../../../src/base/errors.js'
import { needsRedis, startRedis } from '../../../kit/servers/redis.js'
import { TcpProxy } from '../../../kit/tcp-proxy.js'
import { until } from '../../../kit/wait.js'
import { failure, offsets, Peer, texts, upTo } from '../conformance/peer.js'
import { Pair } from './pair.js'
import { startRedisRig } from './rig.js'

needsRedis(t)

const KEPT = { historySize: 100, historyTtl: 60_000, metaTtl: 600_000 }

async function start(t) {
  const pair = await Pair.start(t)
  const rig = await startRedisRig(t, { address: pair.master.address, servers: [pair.master] })
  const lost = []
  const join = server =>
    Peer.join({
      ...rig,
      join: (events, worker) =>
        rig.join(
          { ...events, lost: (channel, offset, epoch) => lost.push({ channel, offset, epoch }) },
          worker,
          server.address ?? `redis://127.0.0.1:${server.port}`,
        ),
    })
  return { pair, join, lost }
}

const publishAll = async (peer, channel, list) => {
  const published = []
  for (const text of list) published.push(await peer.publish(channel, String(text), KEPT))
  return published
}

t.test('a client with lost publications is not recovered', async t => {
  const { pair, join } = await start(t)
  const old = await join(pair.master)
  const [{ epoch }] = await publishAll(old, 'a', upTo(5))
  await pair.split()
  await publishAll(old, 'a', ['6 lost', '7 lost'])
  const fresh = await join(pair.replica)
  const recover = offset => fresh.subscribe('a', { recover: { offset, epoch, limit: 0 } })
  t.match(await recover(7), { recovered: false, offset: 5 }, 'no new publications replace them yet')
  const next = await publishAll(fresh, 'a', ['6 new', '7 new', '8 new'])
  for (const offset of [6, 7, 8]) t.match(await recover(offset), { recovered: false }, `from ${offset}`)
  for (const offset of [3, 4, 5]) {
    const answer = await recover(offset)
    t.match(answer, { recovered: true, epoch, offset: next[2].offset }, `from ${offset}`)
    t.same(
      texts(answer.publications),
      [...upTo(5 - offset, offset + 1), '6 new', '7 new', '8 new'].map(String),
    )
  }
  for (const [i, { offset }] of next.entries()) {
    const answer = await recover(offset)
    t.match(answer, { recovered: true }, `from ${offset}`)
    t.same(texts(answer.publications), ['6 new', '7 new', '8 new'].slice(i + 1))
  }
})

t.test('only subscribers with lost publications are notified', async t => {
  const { pair, join, lost } = await start(t)
  const proxy = await TcpProxy.start(t, pair.master.port)
  const peer = await join(proxy)
  for (const channel of ['same', 'ahead', 'behind']) await peer.subscribe(channel)
  const old = await join(pair.master)
  const [{ epoch }] = await publishAll(old, 'same', upTo(3))
  const [{ epoch: second }] = await publishAll(old, 'ahead', upTo(3))
  await publishAll(old, 'behind', upTo(3))
  await pair.split()
  await publishAll(old, 'ahead', ['lost'])
  await peer.waitForEvents(10)
  proxy.refuses = true
  proxy.cut()
  const fresh = await join(pair.replica)
  await publishAll(fresh, 'behind', ['missed'])
  proxy.targets = [pair.replica.port]
  proxy.refuses = false
  await until(() => lost.length > 0 && peer.broker.ready())
  const next = await publishAll(fresh, 'same', [4, 5])
  await publishAll(fresh, 'ahead', ['4 new', '5 new'])
  await peer.waitForEvents(15)
  const of = channel => texts(peer.events.filter(event => event.channel === channel))
  t.same(of('same'), ['1', '2', '3', '4', '5'])
  t.same(of('behind'), ['1', '2', '3', 'missed'])
  t.same(of('ahead'), ['1', '2', '3', 'lost', '4 new', '5 new'])
  t.same(lost, [{ channel: 'ahead', offset: 3, epoch: second }], 'other subscribers keep the epoch')
  const recover = (channel, wants) =>
    fresh.subscribe(channel, { first: false, recover: { limit: 0, ...wants } })
  t.match(await recover('same', { offset: next[1].offset, epoch }), { recovered: true, publications: [] })
  t.match(await recover('same', { offset: 3, epoch }), { recovered: true, publications: [{}, {}] })
  t.match(await recover('ahead', { offset: 3, epoch: second }), { recovered: true, publications: [{}, {}] })
  t.match(await recover('ahead', { offset: 4, epoch: second }), { recovered: false })
})

t.test('a burst after a failover reaches live subscribers', async t => {
  const { pair, join, lost } = await start(t)
  const old = await join(pair.master)
  await publishAll(old, 'a', upTo(3))
  await pair.split()
  const [peer, fresh] = await Promise.all([join(pair.replica), join(pair.replica)])
  await peer.subscribe('a')
  await Promise.all(upTo(40).map(n => fresh.publish('a', `${n}`, { ...KEPT, historySize: 5 })))
  await peer.waitForEvents(40)
  t.same(texts(peer.events), upTo(40).map(String))
  t.same(lost, [])
})

t.test('a lost position stays invalid when the old master returns', async t => {
  const { pair, join } = await start(t)
  const old = await join(pair.master)
  const [{ epoch }] = await publishAll(old, 'a', upTo(5))
  const { epoch: empty } = await old.subscribe('empty')
  await pair.split()
  await publishAll(old, 'a', ['6 lost'])
  await publishAll(old, 'empty', ['1 lost'])
  // The first one drops its writes and takes over without a publication in between.
  await pair.swap()
  await pair.split()
  const again = await join(pair.replica)
  await publishAll(again, 'a', ['6 new', '7 new'])
  await publishAll(again, 'empty', ['1 new', '2 new'])
  const recover = (channel, offset, of) =>
    again.subscribe(channel, { recover: { offset, epoch: of, limit: 0 } })
  t.match(await recover('a', 6, epoch), { recovered: false })
  t.match(await recover('a', 5, epoch), { recovered: true, publications: [{}, {}] })
  t.match(await recover('empty', 1, empty), { recovered: false })
  t.match(await recover('empty', 0, empty), { recovered: true, publications: [{}, {}] })
})

t.test('limits and sizes count publications, not offsets', async t => {
  const { pair, join } = await start(t)
  const old = await join(pair.master)
  const [{ epoch }] = await publishAll(old, 'a', upTo(5))
  await pair.split()
  await publishAll(old, 'a', ['6 lost'])
  const fresh = await join(pair.replica)
  const published = []
  for (const text of ['6', '7']) published.push(await fresh.publish('a', text, { ...KEPT, historySize: 4 }))
  const [six, seven] = published.map(({ offset }) => offset)
  t.ok(six > 100_000 && seven === six + 1, `${six} ${seven}`)
  const history = async filter => texts((await fresh.history('a', filter)).publications)
  for (const [filter, expected] of /** @type {[any, string[]][]} */ ([
    [{}, ['4', '5', '6', '7']],
    [{ limit: 3 }, ['4', '5', '6']],
    [{ limit: 3, reverse: true }, ['7', '6', '5']],
    [{ reverse: true }, ['7', '6', '5', '4']],
    [{ sinceOffset: 4, sinceEpoch: epoch }, ['5', '6', '7']],
    [{ sinceOffset: 5, sinceEpoch: epoch, limit: 1 }, ['6']],
    [{ sinceOffset: six, sinceEpoch: epoch }, ['7']],
    [{ sinceOffset: seven, sinceEpoch: epoch }, []],
    [{ sinceOffset: six, reverse: true }, ['5', '4']],
    [{ sinceOffset: seven, reverse: true, limit: 2 }, ['6', '5']],
    [{ sinceOffset: 1, sinceEpoch: epoch }, ['4', '5', '6', '7']],
  ]))
    t.same(await history(filter), expected, JSON.stringify(filter))
  const failed = await failure(fresh.history('a', { sinceOffset: 6, sinceEpoch: epoch }))
  t.equal(failed, errors.unrecoverablePosition)
  for (const [offset, limit, recovered] of /** @type {[number, number, boolean][]} */ ([
    [5, 2, true],
    [5, 1, false],
    [3, 0, true],
    [3, 4, true],
    [3, 3, false],
    [2, 0, false],
  ])) {
    const answer = await fresh.subscribe('a', { recover: { offset, epoch, limit } })
    t.match(answer, { recovered }, `${offset} ${limit}`)
  }
  const latest = await fresh.subscribe('a', { latest: true, recover: { offset: 6, epoch, limit: 3 } })
  t.same(texts(latest.publications), ['5', '6', '7'])
})

t.test('streams written by earlier versions continue', async t => {
  const { pair, join } = await start(t)
  const { master } = pair
  for (const n of upTo(3)) await master.call('XADD', 'halley.stream.a', n, 'd', `x${n - 1}\n\0${n}`)
  await master.call('SET', 'halley.meta.a', '3 abcdefgh x3 100')
  await master.call('SET', 'halley.meta.v', '3 abcdefgh x3 100 00000000000000000005 e')
  const old = await join(master)
  const recover = (peer, offset) => peer.subscribe('a', { recover: { offset, epoch: 'abcdefgh', limit: 0 } })
  t.match(await recover(old, 2), { recovered: true, offset: 3, publications: [{}] })
  t.match(await old.publish('v', '1', { ...KEPT, version: 5n, versionEpoch: 'e' }), { offset: 3 })
  // The replica has only what the earlier version wrote.
  await pair.split()
  t.match(await old.publish('a', '4 lost', KEPT), { offset: 4, epoch: 'abcdefgh' })
  const fresh = await join(pair.replica)
  await publishAll(fresh, 'a', ['4 new', '5 new'])
  t.match(await recover(fresh, 4), { recovered: false })
  t.match(await recover(fresh, 3), { recovered: true, publications: [{}, {}] })
  t.match(await fresh.publish('v', '1', { ...KEPT, version: 5n, versionEpoch: 'e' }), { offset: 3 })
  const { offset } = await fresh.publish('v', '1', { ...KEPT, version: 6n, versionEpoch: 'e' })
  const repeated = await fresh.publish('v', '1', { ...KEPT, version: 6n, versionEpoch: 'e' })
  t.match(repeated, { offset }, 'an old version')
})

t.test('a restart with all data recovers in a new branch', async t => {
  const server = await startRedis(t, { aof: 'always' })
  const rig = await startRedisRig(t, { address: server.address, servers: [server] })
  const peer = await Peer.join(rig)
  await peer.subscribe('a')
  const [{ epoch }] = await publishAll(peer, 'a', upTo(3))
  for (const round of [1, 2]) {
    await server.restart()
    await until(() => peer.broker.ready())
    await publishAll(peer, 'a', [`after ${round}`])
  }
  t.same(texts(peer.events), ['1', '2', '3', 'after 1', 'after 2'])
  const answer = await peer.subscribe('a', { first: false, recover: { offset: 2, epoch, limit: 0 } })
  t.match(answer, { recovered: true })
  t.same(texts(answer.publications), ['3', 'after 1', 'after 2'])
  const [, , , first, second] = offsets(peer.events)
  t.ok(second > first + 1, 'each restart may have lost data')
})

t.test('a changed replication id is detected without an outage', async t => {
  const { pair, join, lost } = await start(t)
  // A server gets a new replication id with its first replica.
  const other = await startRedis(t)
  const peers = [await join(other), await join(other)]
  await peers[0].subscribe('a')
  const [{ epoch }] = await publishAll(peers[0], 'a', upTo(3))
  const before = (await other.info('replication')).master_replid
  await pair.replica.call('REPLICAOF', other.host, other.port)
  await until(async () => (await other.info('replication')).master_replid !== before)
  let n = 3
  let top = 3
  let leaps = 0
  await until(async () => {
    for (const peer of peers) {
      const { offset } = await peer.publish('a', `${++n}`, KEPT)
      if (offset !== top + 1) leaps++
      top = offset
    }
    return leaps > 0 && n > 20
  })
  t.equal(leaps, 1, 'the offset jumps once, whichever worker notices first')
  await peers[0].waitForEvents(n)
  t.same(texts(peers[0].events), upTo(n).map(String))
  t.same(lost, [])
  t.match(await peers[1].subscribe('a', { recover: { offset: 3, epoch, limit: 0 } }), { recovered: true })
})
