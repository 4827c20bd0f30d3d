// The Redis engine when Redis, or the connection to it, fails.

import { Redis } from 'ioredis'
import t from 'tap'
import { errors } from '../../../../src/base/errors.js'
import { needsRedis, startRedis } from '../../../kit/servers/redis.js'
import { TcpProxy } from '../../../kit/tcp-proxy.js'
import { pause, until } from '../../../kit/wait.js'
import { failure, LIVE, offsets, Peer, texts, upTo } from '../conformance/peer.js'
import { startRedisRig } from './rig.js'

needsRedis(t)

/** A worker behind a proxy, which records its lost channels. */
async function joinBehind(rig, proxy) {
  const lost = []
  const join = (events, worker) =>
    rig.join(
      { ...events, lost: (channel, offset, epoch) => lost.push({ channel, offset, epoch }) },
      worker,
      `redis://127.0.0.1:${proxy.port}`,
    )
  const peer = await Peer.join({ ...rig, join })
  return { peer, lost }
}

/** Time after which a stopped Redis counts as lost, ms; in other tests it may be slow. */
const IO_TIMEOUT = 2500

async function start(t, options = {}, ioTimeout = 20_000) {
  const server = await startRedis(t, options)
  const rig = await startRedisRig(t, {
    address: server.address,
    servers: [server],
    config: { io_timeout: `${ioTimeout}ms` },
  })
  const proxy = await TcpProxy.start(t, server.port)
  const { peer, lost } = await joinBehind(rig, proxy)
  const other = await Peer.join(rig)
  return { server, rig, proxy, peer, lost, other }
}

const KEPT = { historySize: 100, historyTtl: 60_000, metaTtl: 600_000 }

t.test('missed publications are delivered before newer ones', async t => {
  const { proxy, peer, lost, other } = await start(t)
  for (const channel of ['a', 'b', 'idle']) await peer.subscribe(channel)
  await peer.subscribe('live', { position: false })
  for (let round = 0; round < 5; round++) {
    const publications = []
    for (const n of upTo(20)) {
      for (const channel of ['a', 'b']) publications.push(other.publish(channel, `${round}.${n}`, KEPT))
      if (n === 5) proxy.cut()
      if (n % 4 === 0) await new Promise(setImmediate)
    }
    await Promise.all(publications)
    await until(() => peer.broker.ready())
    await other.publish('a', `${round}.end`, KEPT)
  }
  const of = channel => peer.events.filter(event => event.channel === channel)
  // Missed publications are read per channel.
  await until(() => of('a').length === 105 && of('b').length === 100)
  t.same(offsets(of('a')), upTo(105))
  t.same(offsets(of('b')), upTo(100))
  const missed = texts(of('b'))
  t.same(
    missed,
    upTo(5, 0).flatMap(round => upTo(20).map(n => `${round}.${n}`)),
  )
  t.same(lost, [])
  await other.publish('live', '"still subscribed"', LIVE)
  await until(() => of('live').length === 1)
})

t.test('a channel whose history does not cover the outage is lost', async t => {
  const { proxy, peer, lost, other } = await start(t)
  await peer.subscribe('short')
  await peer.subscribe('long')
  await other.publish('short', '0', KEPT)
  await other.publish('long', '0', KEPT)
  await peer.waitForEvents(2)
  proxy.refuses = true
  proxy.cut()
  for (const n of upTo(10)) {
    await other.publish('short', `${n}`, { ...KEPT, historySize: 5 })
    await other.publish('long', `${n}`, KEPT)
  }
  proxy.refuses = false
  await until(() => lost.length > 0 && peer.events.length === 12)
  t.match(lost, [{ channel: 'short', offset: 11 }])
  await other.publish('short', 'next', KEPT)
  await peer.waitForEvents(13)
  t.same(offsets(peer.events.filter(({ channel }) => channel === 'short')), [1, 12])
  t.same(offsets(peer.events.filter(({ channel }) => channel === 'long')), upTo(11))
  proxy.refuses = true
  proxy.cut()
  for (const n of upTo(5)) await other.publish('short', `${n}`, { ...KEPT, historySize: 5 })
  proxy.refuses = false
  await peer.waitForEvents(18)
  t.equal(lost.length, 1, 'a gap as large as the history is recovered')
})

t.test('requests fail immediately during an outage and work after it', async t => {
  const { server, peer, other } = await start(t, { aof: 'always' })
  await peer.subscribe('a')
  await other.publish('a', '1', KEPT)
  const pending = failure(other.publish('a', '?', KEPT))
  await server.kill()
  t.ok(['no failure', errors.internal].includes(await pending))
  await until(() => !other.broker.ready() && !peer.broker.ready())
  for (const result of await Promise.all([
    failure(other.publish('a', '2', KEPT)),
    failure(other.publish('a', '2', LIVE)),
    failure(other.subscribe('b')),
    failure(other.subscribe('c', { position: false })),
    failure(peer.subscribe('a', { first: false })),
    failure(peer.position('a')),
    failure(other.history('a')),
    failure(other.broker.presence.list('a')),
    failure(other.broker.presence.stats('a')),
    failure(other.broker.pubsub.removeHistory('a')),
    failure(other.broker.control.survey('x', {})),
    failure(other.claim('u', 1)),
  ])) {
    t.equal(result, errors.internal)
  }
  await server.start()
  await until(() => other.broker.ready() && peer.broker.ready())
  await other.publish('a', '3', KEPT)
  await until(() => texts(peer.events).includes('3'))
  const got = texts(peer.events)
  const certain = got.filter(text => text !== '?')
  t.same(certain, ['1', '3'])
  // The offset jumps after a restart.
  t.same(offsets(peer.events).slice(0, -1), upTo(got.length - 1))
  await other.subscribe('b')
})

t.test('requests to a stopped Redis fail within io_timeout', async t => {
  const { server, peer, lost, other } = await start(t, {}, IO_TIMEOUT)
  await peer.subscribe('a')
  await other.publish('a', '1', KEPT)
  server.stop()
  const delayed = other.publish('a', '2', KEPT)
  await pause(IO_TIMEOUT / 10)
  server.cont()
  await delayed
  server.stop()
  const results = await Promise.all(upTo(100).map(n => failure(other.publish('a', `${n}`, KEPT))))
  t.ok(results.every(result => result === errors.internal))
  server.cont()
  await until(() => other.broker.ready() && peer.broker.ready())
  const { offset } = await other.publish('a', 'last', KEPT)
  await until(() => texts(peer.events).at(-1) === 'last')
  // Redis may have executed the commands: then they are delivered, in order.
  t.same(offsets(peer.events), upTo(offset))
  t.same(lost, [])
})

t.test('the memory of commands to a stopped Redis is bounded', async t => {
  const { server, other } = await start(t, {}, IO_TIMEOUT)
  server.stop()
  const payload = 'x'.repeat(100_000)
  const refused = []
  for (const n of upTo(2000)) {
    refused.push(failure(other.publish(`c${n}`, payload, KEPT)))
    if (n % 100 === 0) await new Promise(setImmediate)
  }
  t.ok((await Promise.all(refused)).every(result => result === errors.internal))
  server.cont()
  await until(() => other.broker.ready())
  await other.publish('c', '1', KEPT)
})

t.test('publications lost in a failover are reported', async t => {
  for (const [name, after] of /** @type {any[][]} */ ([
    ['the stream is shorter than before', []],
    ['it is as long as before', ['4b', '5b']],
    ['it has overtaken what was known', ['4b', '5b', '6b']],
  ])) {
    await t.test(name, async t => {
      const { server, proxy, peer, lost, other } = await start(t)
      await peer.subscribe('a')
      await peer.subscribe('untouched')
      for (const n of upTo(3)) await other.publish('a', `${n}`, KEPT)
      const redis = new Redis({ port: server.port })
      const keys = ['halley.meta.a', 'halley.stream.a']
      const dumps = await Promise.all(keys.map(key => redis.dumpBuffer(key)))
      for (const n of [4, 5]) await other.publish('a', `${n}`, KEPT)
      await other.publish('untouched', '1', KEPT)
      await peer.waitForEvents(6)
      const { epoch } = peer.events[0]
      proxy.refuses = true
      proxy.cut()
      for (const [i, key] of keys.entries()) await redis.restore(key, 0, dumps[i], 'REPLACE')
      for (const text of after) await other.publish('a', text, KEPT)
      proxy.refuses = false
      await until(() => lost.length > 0)
      redis.disconnect()
      t.match(lost, [{ channel: 'a', offset: 3 + after.length }])
      t.not(lost[0].epoch, epoch, 'a new epoch, so clients that return later are not recovered')
      const result = await other.publish('a', 'next', KEPT)
      t.equal(result.epoch, lost[0].epoch)
      await peer.waitForEvents(7)
      t.same(texts(peer.events.filter(({ channel }) => channel === 'a')), ['1', '2', '3', '4', '5', 'next'])
      const answer = await other.subscribe('a', { recover: { offset: 5, epoch, limit: 0 } })
      t.equal(answer.recovered, false)
      await other.publish('untouched', '2', KEPT)
      await peer.waitForEvents(8)
      t.equal(lost.length, 1)
    })
  }
})

t.test('a stream lost by Redis starts again', async t => {
  const { server, peer, lost, other } = await start(t)
  await peer.subscribe('a')
  const first = await other.publish('a', '1', KEPT)
  // A killed server, and the proxy, may lose acknowledged publications.
  await peer.waitForEvents(1)
  await server.restart()
  await until(() => other.broker.ready() && peer.broker.ready() && lost.length === 1)
  const second = await other.publish('a', '2', KEPT)
  t.equal(second.offset, 1)
  t.not(second.epoch, first.epoch)
  await peer.waitForEvents(2)
  t.match(lost, [{ channel: 'a', offset: 0, epoch: second.epoch }])
})

t.test('subscribers without a position do not shorten the lifetime of a stream', async t => {
  const { server, proxy, peer, other } = await start(t)
  await peer.subscribe('a', { position: false })
  const { epoch } = await other.publish('a', '1', KEPT)
  await peer.waitForEvents(1)
  proxy.cut()
  await other.publish('a', '2', KEPT)
  await peer.waitForEvents(2)
  t.ok((await server.call('PTTL', 'halley.meta.a')) > 500_000)
  t.match(await other.publish('a', '3', KEPT), { offset: 3, epoch })
  await peer.waitForEvents(3)
})

t.test('lost scripts are loaded again', async t => {
  const { server, peer, other } = await start(t)
  await peer.subscribe('a')
  await server.call('SCRIPT', 'FLUSH')
  const published = await Promise.all(upTo(200).map(n => other.publish('a', `${n}`, KEPT)))
  t.same(offsets(published), upTo(200))
  await server.call('SCRIPT', 'FLUSH')
  t.match(await peer.position('a'), published.at(-1))
  t.same(texts(peer.events), upTo(200).map(String))
})

t.test('a refused publication does not affect others', async t => {
  const { server, other } = await start(t)
  await server.call('SET', 'halley.stream.wrong', 'no stream')
  await server.call('SET', 'halley.meta.wrong', '7 abcdefgh x 10')
  const results = await Promise.all(
    ['right', 'wrong', 'right'].map(channel => failure(other.publish(channel, '1', KEPT))),
  )
  const failed = results.map(result => result === errors.internal)
  t.same(failed, [false, true, false])
})
