import t from 'tap'
import { errors } from '../../../../src/base/errors.js'
import { needsRedis, startRedis } from '../../../kit/servers/redis.js'
import { until } from '../../../kit/wait.js'
import { failure } from '../conformance/peer.js'
import { cutAll, ids, info, SHORT, same, testsOn, Worker } from './presence-rig.js'

needsRedis(t)

const server = await startRedis(t)
const { test, join } = testsOn(t, server)

test('updated info is written after a lost connection', async t => {
  const [a, b] = [await join(t), await join(t)]
  await a.add('room', '1', 'anna', { leave: true })
  await a.add('room', '2', 'ben')
  const newer = info('anna', '1', { conn_info: { i: 2 } })
  await a.reconnected(() => {
    const cut = cutAll(server)
    a.presence.update('room', '1', newer)
    a.presence.update('room', '3', newer)
    return cut
  })
  await until(async () => (await b.presence.list('room')).get('1') === newer)
  t.same(await b.clients('room'), ['1', '2'])
  t.match(await server.call('HGET', 'test.presence.room', 'c1'), /^\w+ 1 /, 'its leave would be sent')
  t.match(await server.call('HGET', 'test.presence.room', 'c2'), /^\w+ 0 /)
  a.presence.update('room', '2', info('ben', '2', { conn_info: 1 }))
  await until(async () => (await b.presence.list('room')).get('2') === info('ben', '2', { conn_info: 1 }))
})

test('requests of one turn are executed in order', async t => {
  const a = await join(t)
  const there = Promise.all([a.add('room', '1'), a.add('room', '2')])
  const list = a.clients('room')
  a.remove('room', '1')
  const after = a.clients('room')
  a.remove('room', '2')
  const again = a.add('room', '2', 'ben')
  const stats = a.presence.stats('room')
  a.remove('room', '2')
  t.same([await list, await after, await stats], [['1', '2'], ['2'], { clients: 1, users: 1 }])
  await Promise.all([there, again])
  await until(async () => (await server.call('KEYS', '*presence*')).length === 0)
  t.same(await a.clients('room'), [])
})

test('channels, clients and users may have any names', async t => {
  const [a, b] = [await join(t), await join(t)]
  const odd = [
    'a b  c',
    '\0',
    'x\0\r\ny',
    '🎈',
    'ключ',
    '__proto__',
    'constructor',
    '0',
    '-1',
    '"\\',
    '{x}',
    ' ',
    'w1',
    '',
  ]
  for (const channel of odd) {
    for (const name of odd)
      await (name < 'a' ? a : b).add(channel, name, name, { text: info(name, name, { conn_info: odd }) })
    const expected = new Map(odd.map(name => [name, info(name, name, { conn_info: odd })]))
    t.same(await a.presence.list(channel), expected, JSON.stringify(channel))
    t.same(await a.presence.stats(channel), { clients: odd.length, users: odd.length })
  }
  for (const channel of odd) for (const name of odd) (name < 'a' ? a : b).remove(channel, name)
  // Each worker has its own connection to Redis, so a query of one may overtake a removal by the other.
  for (const channel of odd)
    for (const worker of [a, b]) await until(async () => (await worker.clients(channel)).length === 0)
  await until(async () => (await server.call('KEYS', '*presence*')).length === 0)
})

test('clients of a dead worker leave once', async t => {
  const [a, b, c] = [await join(t, SHORT), await join(t, SHORT), await join(t, SHORT)]
  await a.subscribe('room')
  await Promise.all([a.add('room', '1'), b.add('room', '2', 'ben', { leave: true }), b.add('room', '3')])
  await Promise.all([c.add('room', '4'), b.add('alone', '5', 'ben', { leave: true })])
  t.same(await c.clients('room'), ['1', '2', '3', '4'])
  b.die()
  await until(async () => same(await a.clients('room'), ['1', '4']))
  t.same(await a.presence.stats('room'), { clients: 2, users: 1 })
  // Each channel has its own lease.
  await until(async () => (await c.clients('alone')).length === 0)
  await until(() => a.messages.length > 0)
  // Both others continue to check: for longer than a lease.
  const d = await join(t)
  const late = await join(t, { ttl: SHORT.ttl })
  await late.add('room', '6')
  late.die()
  await until(async () => same(await d.clients('room'), ['1', '4']))
  t.same(a.messages, [['room', `l${info('ben', '2')}`]])
  await until(async () => (await server.call('HLEN', 'test.presence.room')) === 4, 'two clients, two workers')
  a.die()
  c.die()
  await until(async () => (await server.call('KEYS', '*presence*')).length === 0)
})

test('a worker with an expired lease restores its clients', async t => {
  const [a, b] = [await join(t, SHORT), await join(t, { ttl: SHORT.ttl })]
  await Promise.all([a.add('room', '1'), b.add('room', '2')])
  await until(async () => (await server.call('HEXISTS', 'test.presence.room', 'c2')) === 0)
  t.same(await b.clients('room'), ['1'])
  b.ticks(SHORT.every)
  t.ok(await until(async () => (await a.clients('room')).length === 2))
  b.remove('room', '2')
  t.same(await b.clients('room'), ['1'])
})

test('presence is restored after a flush', async t => {
  const [a, b] = [await join(t), await join(t, { every: 50, ttl: 3000 })]
  await Promise.all([a.add('room', '1'), a.add('room', '2'), b.add('room', '3')])
  const names = ids(250)
  await Promise.all(names.map(name => b.add(name, '1')))
  await server.call('FLUSHALL')
  await Promise.all([a.add('room', '4'), a.add('room', '5')])
  for (const client of ['1', '2', '4', '5']) {
    t.ok((await a.clients('room')).includes(client), 'the next subscribe restores all clients of its worker')
  }
  await until(async () => (await a.clients('room')).includes('3'))
  t.same(await b.clients('room'), ['1', '2', '3', '4', '5'])
  await Promise.all(names.map(name => until(async () => (await a.clients(name)).length === 1)))
  await server.call('FLUSHALL')
  a.remove('room', '1')
  const again = a.add('room', '1', 'ben')
  a.remove('room', '2')
  await again
  await until(async () => same(await a.clients('room'), ['1', '3', '4', '5']))
})

test('presence is restored after an empty restart', async t => {
  const own = await startRedis(t)
  const [a, b] = [await Worker.join(t, own), await Worker.join(t, own)]
  const names = ids(450)
  await Promise.all(names.map(name => a.add(name, 'x')))
  await Promise.all([a.add('room', '1'), a.add('room', '2'), b.add('room', '3'), a.add('left', '1')])
  await own.kill()
  await until(() => !a.up && !b.up)
  t.equal(await failure(a.add('room', '4')), errors.internal)
  t.equal(await failure(a.add('new', '4')), errors.internal)
  t.equal(await failure(a.presence.list('room')), errors.internal)
  t.equal(await failure(a.presence.stats('room')), errors.internal)
  a.remove('room', '1')
  a.remove('left', '1')
  await own.start()
  await until(() => a.up && b.up)
  await until(async () => same(await a.clients('room'), ['2', '3']))
  await Promise.all(names.map(name => until(async () => same(await b.clients(name), ['x']))))
  t.same([...(await b.clients('new')), ...(await b.clients('left'))], [])
})

test('clients that leave during an outage are removed after it', async t => {
  const [a, b] = [await join(t), await join(t)]
  await Promise.all([a.add('room', '1'), a.add('room', '2'), a.add('left', '1'), b.add('left', '2')])
  await a.reconnected(async () => {
    await cutAll(server)
    await until(() => !a.up)
    a.remove('room', '1')
    a.remove('left', '1')
  })
  await until(async () => same(await a.clients('room'), ['2']) && same(await a.clients('left'), ['2']))
  await a.add('left', '3')
  t.same(await a.clients('left'), ['2', '3'])
})

test('a failed subscription leaves no presence', async t => {
  const a = await join(t, { every: 50, ttl: 5000, redis: { socketTimeout: 2500 } })
  await a.add('room', '1')
  await a.reconnected(async () => {
    server.stop()
    const failed = [a.add('room', '2'), a.add('room', '1', 'eve'), a.add('empty', '3')]
    a.remove('room', '2')
    for (const add of failed) t.equal(await failure(add), errors.internal)
    await until(() => !a.up)
    server.cont()
  })
  await until(async () => {
    const room = await a.presence.list('room')
    return room.size === 1 && room.get('1') === info('anna', '1') && (await a.clients('empty')).length === 0
  })
})

test('presence is correct after Redis was full', async t => {
  const a = await join(t, { every: 50, ttl: 3000 })
  await Promise.all([a.add('room', '1'), a.add('room', '2')])
  await server.call('CONFIG', 'SET', 'maxmemory', '1mb')
  t.equal(await failure(a.add('room', '3')), errors.internal)
  t.equal(await failure(a.add('new', '3')), errors.internal)
  a.remove('room', '1')
  await server.call('CONFIG', 'SET', 'maxmemory', '0')
  await a.add('room', '4')
  t.same(await a.clients('room'), ['2', '4'])
  t.same(await a.clients('new'), [])
  await a.add('new', '3')
  t.same(await a.clients('new'), ['3'])
})
