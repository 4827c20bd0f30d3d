// Rare events, each in the order that causes it.

import { Redis } from 'ioredis'
import t from 'tap'
import { errors } from '../../../../src/base/errors.js'
import { Channels } from '../../../../src/channels/broker/redis/channels.js'
import { needsRedis, startRedis } from '../../../kit/servers/redis.js'
import { TcpProxy } from '../../../kit/tcp-proxy.js'
import { until } from '../../../kit/wait.js'
import { failure, KEPT, offsets, Peer, texts, upTo, WANTS } from '../conformance/peer.js'
import { startRedisRig } from './rig.js'

needsRedis(t)

async function start(t) {
  const server = await startRedis(t)
  const rig = await startRedisRig(t, { address: server.address, servers: [server] })
  return { server, rig, peer: await Peer.join(rig), other: await Peer.join(rig) }
}

t.test('foreign messages on a topic are ignored', async t => {
  const { server, peer, other } = await start(t)
  await peer.subscribe('a')
  for (const message of ['ping', '', 'p', 'p1', 'p1 ', 'p1 e', 'p1 e m', 'p1 e m 0', 'hello', '\0'])
    await server.call('PUBLISH', 'halley.channel.a', message)
  await other.publish('a', '1')
  t.same(texts(await peer.waitForEvents(1)), ['1'])
})

t.test('a subscription without a position does not wait for a history', async t => {
  const { peer, other } = await start(t)
  const position = await other.publish('a', '1')
  const recover = { ...position, limit: 0 }
  // The number of concurrent history reads is limited; the subscriptions are answered before.
  const channels = upTo(100).map(n => `c${n}`)
  const second = await new Promise(resolve => {
    for (const channel of channels) {
      peer.broker.pubsub.subscribe(channel, { ...WANTS, recover }, () => {
        if (channel === 'c1') resolve(peer.subscribe('c100', { first: false, position: false }))
      })
    }
  })
  t.same(second.publications, [])
})

t.test('a concurrent second subscription fails with the first one', async t => {
  const { server, peer, other } = await start(t)
  await server.call('SET', 'halley.presence.a', 'no hash')
  const listed = { client: 'x', info: '{"user":"","client":"x"}' }
  const both = [failure(peer.subscribe('a', listed)), failure(peer.subscribe('a', { first: false }))]
  t.same(await Promise.all(both), [errors.internal, errors.internal])
  await peer.subscribe('a')
  await other.publish('a', '1')
  await peer.waitForEvents(1)
})

t.test('a late failure of the first subscription keeps the channel', async t => {
  const { server, peer, other } = await start(t)
  const listed = client => ({ client, info: `{"user":"","client":"${client}"}` })
  await peer.subscribe('a', listed('x'))
  peer.broker.pubsub.unsubscribe('a')
  // Presence is compared before it is refused.
  await server.call('DEL', 'halley.presence.a')
  await server.call('SET', 'halley.presence-workers.a', 'no sorted set')
  const first = failure(peer.subscribe('a', listed('y')))
  await peer.subscribe('a', { first: false })
  t.equal(await first, errors.internal)
  await other.publish('a', '1')
  t.same(texts(await peer.waitForEvents(1)), ['1'])
})

t.test('the position in a reply is exact while presence is written', async t => {
  const { server, peer } = await start(t)
  const listed = client => ({ client, info: `{"user":"","client":"${client}"}` })
  await peer.subscribe('a', listed('x'))
  await peer.publish('a', '1')
  await server.call('DEL', 'halley.presence.a')
  const answered = new Promise(resolve =>
    peer.broker.pubsub.subscribe('a', { ...WANTS, ...listed('y'), first: false }, (error, answer) =>
      resolve({ error, answer, delivered: offsets(peer.events) }),
    ),
  )
  await peer.publish('a', '2')
  const { error, answer, delivered } = await answered
  t.equal(error, null)
  t.same(delivered, upTo(answer.offset))
  t.equal((await peer.broker.presence.list('a')).size, 2)
})

t.test('a subscription refused by Redis fails', async t => {
  const { server, peer, other } = await start(t)
  await server.call('ACL', 'SETUSER', 'default', 'resetchannels', '&halley.worker*')
  t.equal(await failure(peer.subscribe('a')), errors.internal)
  t.equal(await failure(peer.subscribe('a', { position: false })), errors.internal)
  await server.call('ACL', 'SETUSER', 'default', 'allchannels')
  await peer.subscribe('a')
  await other.publish('a', '1')
  await peer.waitForEvents(1)
})

t.test('pending publications fail when the connection ends', async t => {
  const { peer } = await start(t)
  const failed = new Promise(resolve => {
    peer.broker.pubsub.publish('a', '1', { ...KEPT }, () => {
      throw new Error('the caller is gone')
    })
    peer.broker.pubsub.publish('a', '2', { ...KEPT }, resolve)
  })
  await new Promise(setImmediate)
  peer.broker.close()
  t.equal(await failed, errors.internal)
})

t.test('missed publications read twice are delivered once', async t => {
  const delivered = []
  const reads = []
  const partition = { up: true, connection: {} }
  const queue = {
    channels: new Set(),
    open: channel => {
      channel.subscribed = true
    },
    after: then => then(),
    reads: { add: (_name, _metaTtl, _op, _maxBytes, done) => reads.push(done) },
  }
  const events = { publication: (_channel, { offset }) => delivered.push(offset), lost: () => t.fail('lost') }
  const channels = new Channels(
    /** @type {any} */ (events),
    () => /** @type {any} */ (queue),
    /** @type {any} */ ({}),
  )
  const answer = offsets => ({
    found: true,
    complete: true,
    offset: 3,
    epoch: 'e',
    batchId: 'm',
    publications: offsets.map(offset => ({ offset })),
  })
  const channel = channels.open('a', /** @type {any} */ (partition))
  channel.subscribed = true
  channels.setPosition(channel, { ...answer([]), offset: 1 })
  channels.catchUp(channel)
  reads.shift()(errors.internal, null)
  channels.down(/** @type {any} */ (partition))
  channels.up(/** @type {any} */ (partition))
  channels.tick()
  for (const done of reads) done(null, answer([2, 3]))
  t.same(delivered, [2, 3])
  // A subscription that is refused while its history is read.
  channels.down(/** @type {any} */ (partition))
  channels.up(/** @type {any} */ (partition))
  channels.onSubscribed(channel, errors.internal)
  channels.tick()
  for (const done of reads.splice(0)) done(null, { ...answer([4]), offset: 4 })
  t.same(delivered, [2, 3, 4])
})

t.test('an unreadable history is an error', async t => {
  const { server, peer, other } = await start(t)
  const { epoch } = await other.publish('a', '1')
  await server.call('XADD', 'halley.stream.a', '2-0', 'd', 'x\n\x01')
  await server.call('SET', 'halley.meta.a', `2 ${epoch} x 10`)
  t.equal(await failure(other.history('a')), errors.internal)
  t.equal(await failure(peer.subscribe('a', { recover: { offset: 1, epoch, limit: 0 } })), errors.internal)
  t.match(await peer.subscribe('a'), { offset: 2, epoch })
})

t.test('a full Redis refuses every publication', async t => {
  const { server, other } = await start(t)
  await other.publish('known', '1')
  await server.call('CONFIG', 'SET', 'maxmemory', '1mb', 'maxmemory-policy', 'noeviction')
  const channels = ['known', ...upTo(20).map(n => `new${n}`)]
  const results = await Promise.all(channels.map(channel => failure(other.publish(channel, '2'))))
  t.ok(results.every(result => result === errors.internal))
  t.equal(await server.call('EXISTS', 'halley.stream.new1', 'halley.meta.new1'), 0)
  await server.call('CONFIG', 'SET', 'maxmemory', '0')
  t.match(await other.publish('known', '2'), { offset: 2 })
  t.match(await other.publish('new1', '1'), { offset: 1 })
})

t.test('each reason of an outage is logged once', async t => {
  const { server, peer, rig } = await start(t)
  const redis = new Redis({ port: server.port })
  t.teardown(() => redis.disconnect())
  await redis.config('SET', 'requirepass', 'new')
  for (const id of String(await redis.call('CLIENT', 'LIST', 'TYPE', 'pubsub')).matchAll(/^id=(\d+)/gm))
    await redis.client('KILL', 'ID', id[1])
  const reasons = () =>
    rig.log.lines.filter(({ msg }) => msg === 'redis is still unreachable').map(({ reason }) => reason)
  await until(() => reasons().length >= 2)
  t.match(reasons(), [/NOAUTH/, /NOAUTH/], 'by each worker')
  const tries = () => rig.log.lines.filter(({ msg }) => msg === 'redis connection failed').length
  const before = tries()
  await until(() => tries() >= before + 4)
  t.equal(reasons().length, 2, 'a repeated reason is not logged')
  await redis.config('SET', 'requirepass', '')
  await until(() => peer.broker.ready())
})

t.test('many channels recover with a small output buffer in Redis', async t => {
  const { server, rig, other } = await start(t)
  const proxy = await TcpProxy.start(t, server.port)
  const join = (events, worker) => rig.join(events, worker, `redis://127.0.0.1:${proxy.port}`)
  const peer = await Peer.join({ ...rig, join })
  const channels = upTo(64).map(n => `c${n}`)
  for (const channel of channels) await peer.subscribe(channel)
  proxy.refuses = true
  proxy.cut()
  for (const channel of channels)
    for (const n of upTo(5)) await other.publish(channel, `${n}${'x'.repeat(100_000)}`)
  await server.call('CONFIG', 'SET', 'client-output-buffer-limit', 'pubsub 1mb 0 0')
  proxy.refuses = false
  await peer.waitForEvents(5 * channels.length)
  const received = Object.fromEntries(
    channels.map(channel => [channel, offsets(peer.events.filter(event => event.channel === channel))]),
  )
  t.same(received, Object.fromEntries(channels.map(channel => [channel, upTo(5)])))
})

t.test('channels that are only read expire after minutes', async t => {
  const { server, rig, peer, other } = await start(t)
  for (const channel of ['empty', 'seen', 'used']) await peer.subscribe(channel)
  const ttl = async channel => Number(await server.call('PTTL', `halley.meta.${channel}`))
  t.ok((await ttl('empty')) <= 300_000 && (await ttl('empty')) > 200_000, `${await ttl('empty')}`)
  const { epoch } = await other.publish('used', '1')
  t.ok((await ttl('used')) > 300_000, 'a publication restores the full lifetime')
  await peer.position('used')
  t.ok((await ttl('used')) > 300_000)
  const seen = await peer.position('seen')
  await rig.pass(200_000)
  t.same(await peer.position('seen'), seen, 'a position check extends it')
  await rig.pass(200_000)
  t.equal(await ttl('empty'), -2, 'gone')
  t.same(await peer.position('seen'), seen)
  t.match(await other.publish('seen', '1'), { offset: 1, epoch: seen.epoch })
  t.match(await peer.position('used'), { offset: 1, epoch })
})
