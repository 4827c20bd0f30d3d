import t from 'tap'
import { errors } from '../../src/errors.js'
import { failure } from '../broker/conformance/peer.js'
import { cutAll, info, keptForEver, Worker } from './presence-rig.js'
import { startCluster, startRedis, until } from './servers.js'

const server = await startRedis(t)
/** Each test begins with nothing. */
const test = (name, body) =>
  t.test(name, async t => {
    await server.call('CONFIG', 'SET', 'maxmemory', '0')
    await server.call('FLUSHALL')
    await body(t)
  })
const join = (t, options = {}) => Worker.join(t, server, options)
const ids = (count, from = 0) => Array.from({ length: count }, (_, i) => `client ${from + i}`).sort()
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b)
/** Short, so that tests need not wait for long, and ticks in it. */
const SHORT = { ttl: 1000, every: 100 }

test('whoever is in a channel is listed at every worker, with the information of the last subscription', async t => {
  const [a, b] = [await join(t), await join(t)]
  t.same(await a.presence.list('room'), new Map())
  t.same(await a.presence.stats('room'), { clients: 0, users: 0 })
  await Promise.all([
    a.add('room', '1'),
    a.add('room', '2', 'ben'),
    b.add('room', '3'),
    b.add('room', '4', ''),
  ])
  await a.add('other', '1')
  await b.add('room', '5', '')
  for (const { presence } of [a, b]) {
    const list = await presence.list('room')
    t.same([...list.keys()].sort(), ['1', '2', '3', '4', '5'])
    t.equal(list.get('2'), info('ben', '2'))
    t.same(await presence.stats('room'), { clients: 5, users: 3 }, 'without a name all are one user')
  }
  await a.add('room', '2', 'eve', { text: info('eve', '2', { chan_info: [1] }) })
  t.equal((await b.presence.list('room')).get('2'), info('eve', '2', { chan_info: [1] }))
  a.remove('room', '1')
  a.remove('room', '3')
  a.remove('nowhere', '2')
  t.same(await a.clients('room'), ['2', '3', '4', '5'], 'a worker takes out its own clients only')
  t.same(await keptForEver(server), [])
})

test('what is asked for in one turn is done in that order', async t => {
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
  for (const channel of odd) t.same([...(await a.clients(channel)), ...(await b.clients(channel))], [])
  await until(async () => (await server.call('KEYS', '*presence*')).length === 0)
})

test('the clients of a worker that dies vanish, and their leaves are told once', async t => {
  const [a, b, c] = [await join(t, SHORT), await join(t, SHORT), await join(t, SHORT)]
  await a.hear('room')
  await Promise.all([a.add('room', '1'), b.add('room', '2', 'ben', { leave: true }), b.add('room', '3')])
  await Promise.all([c.add('room', '4'), b.add('alone', '5', 'ben', { leave: true })])
  t.same(await c.clients('room'), ['1', '2', '3', '4'])
  b.die()
  await until(async () => same(await a.clients('room'), ['1', '4']))
  t.same(await a.presence.stats('room'), { clients: 2, users: 1 })
  t.same(await c.clients('alone'), [])
  await until(() => a.told.length > 0)
  // Both others go on looking: more than one time of life of a lease.
  const d = await join(t)
  const late = await join(t, { ttl: SHORT.ttl })
  await late.add('room', '6')
  late.die()
  await until(async () => same(await d.clients('room'), ['1', '4']))
  t.same(a.told, [['room', `l${info('ben', '2')}`]])
  await until(async () => (await server.call('HLEN', 'test.presence.room')) === 4, 'two clients, two workers')
  a.die()
  c.die()
  await until(async () => (await server.call('KEYS', '*presence*')).length === 0)
})

test('the clients of a worker that lives stay', async t => {
  const a = await join(t, SHORT)
  await Promise.all([a.add('room', '1'), a.add('other', '2')])
  for (let i = 0; i < 3; i++) {
    const b = await join(t, { ttl: SHORT.ttl })
    await b.add('room', 'late')
    b.die()
    await until(async () => {
      t.ok((await a.clients('room')).includes('1'))
      return (await a.clients('room')).length === 1
    })
  }
  t.same(await a.clients('other'), ['2'])
})

test('a worker that was thought to be dead has its clients back', async t => {
  const [a, b] = [await join(t, SHORT), await join(t, { ttl: SHORT.ttl })]
  await Promise.all([a.add('room', '1'), b.add('room', '2')])
  await until(async () => (await server.call('HEXISTS', 'test.presence.room', 'c2')) === 0)
  t.same(await b.clients('room'), ['1'])
  const [list] = await Promise.all([until(async () => (await a.clients('room')).length === 2), b.tick()])
  t.ok(list)
  b.remove('room', '2')
  t.same(await b.clients('room'), ['1'])
})

test('after a flush all come back', async t => {
  const [a, b] = [await join(t), await join(t, { every: 50, ttl: 3000 })]
  await Promise.all([a.add('room', '1'), a.add('room', '2'), b.add('room', '3')])
  const names = ids(250)
  for (const name of names) await b.add(name, '1')
  await server.call('FLUSHALL')
  await Promise.all([a.add('room', '4'), a.add('room', '5')])
  for (const client of ['1', '2', '4', '5']) {
    t.ok((await a.clients('room')).includes(client), 'the next subscription brings all of its worker back')
  }
  await until(async () => (await a.clients('room')).includes('3'))
  t.same(await b.clients('room'), ['1', '2', '3', '4', '5'])
  for (const name of names) await until(async () => (await a.clients(name)).length === 1)
  await server.call('FLUSHALL')
  a.remove('room', '1')
  const again = a.add('room', '1', 'ben')
  a.remove('room', '2')
  await again
  await until(async () => same(await a.clients('room'), ['1', '3', '4', '5']))
})

test('after a restart with nothing left all come back, but not those that have gone meanwhile', async t => {
  const own = await startRedis(t)
  const [a, b] = [await Worker.join(t, own), await Worker.join(t, own)]
  const names = ids(450)
  for (const name of names) await a.add(name, 'x')
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
  for (const name of names) await until(async () => same(await b.clients(name), ['x']))
  t.same([...(await b.clients('new')), ...(await b.clients('left'))], [])
})

test('who goes while the line is down is gone as soon as it is up', async t => {
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

test('a subscription that failed is not present, though Redis may have got it', async t => {
  const a = await join(t, { every: 50, ttl: 3000, redis: { socketTimeout: 300 } })
  await a.add('room', '1')
  for (let round = 0; round < 3; round++) {
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
  }
})

test('a server that is full refuses, and has everything right when there is room again', async t => {
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

test('10,000 clients in one channel', async t => {
  const steady = { ttl: 2000, every: 100 }
  const [a, b] = [await join(t, steady), await join(t, steady)]
  await a.hear('big')
  const all = ids(10_000)
  await Promise.all(all.slice(0, 5000).map((client, i) => a.add('big', client, `user ${i % 100}`)))
  await Promise.all(
    all.slice(5000).map((client, i) => b.add('big', client, `user ${i % 200}`, { leave: true })),
  )
  t.same(await a.clients('big'), all)
  t.same(await a.presence.stats('big'), { clients: 10_000, users: 200 })
  await server.call('FLUSHALL')
  a.remove('big', all[0])
  await until(async () => (await a.presence.stats('big')).clients === 9999)
  t.same(await b.clients('big'), all.slice(1))
  await a.reconnected(() => cutAll(server))
  await a.hear('big')
  await until(async () => (await a.presence.stats('big')).clients === 9999)
  b.die()
  await until(async () => (await a.presence.stats('big')).clients === 4999)
  await until(() => a.told.length >= 5000)
  t.same(a.told.map(([, message]) => JSON.parse(message.slice(1)).client).sort(), all.slice(5000))
})

test('all of it in a cluster', async t => {
  const cluster = await startCluster(t, { replicas: 0 })
  const [a, b] = [await Worker.join(t, cluster, SHORT), await Worker.join(t, cluster, SHORT)]
  const channels = ids(40)
  for (const channel of channels) {
    await a.hear(channel)
    await Promise.all([a.add(channel, '1'), b.add(channel, '2', 'ben', { leave: true }), b.add(channel, '3')])
    b.remove(channel, '3')
    t.same(await b.clients(channel), ['1', '2'])
    t.same(await a.presence.stats(channel), { clients: 2, users: 2 })
  }
  b.die()
  await until(() => a.told.length === channels.length)
  const leave = `l${info('ben', '2')}`
  t.same(
    a.told.sort(),
    channels.map(channel => [channel, leave]),
  )
  for (const channel of channels) t.same(await a.clients(channel), ['1'])
})

test('whatever happens to lines and data, Redis has in the end who is there', async t => {
  const workers = []
  for (let i = 0; i < 3; i++)
    workers.push(await join(t, { every: 50, ttl: 3000, redis: { socketTimeout: 400 } }))
  const channels = ['x', 'y', 'z']
  /** @type {Map<string, Set<string>>[]} */
  const there = workers.map(() => new Map(channels.map(channel => [channel, new Set()])))
  const dice = (/** @type {number} */ n) => Math.floor(Math.random() * n)
  const events = [
    () => cutAll(server),
    () => server.call('FLUSHALL'),
    () => server.call('DEL', 'test.presence.x', 'test.presence-workers.y'),
    async () => {
      server.stop()
      await until(() => workers.every(({ up }) => !up))
      server.cont()
    },
  ]
  const act = (/** @type {number} */ i) => {
    const channel = channels[dice(3)]
    const client = `${i} ${dice(30)}`
    const set = /** @type {Set<string>} */ (there[i].get(channel))
    if (dice(2) === 0) {
      set.delete(client)
      workers[i].remove(channel, client)
      return Promise.resolve()
    }
    return workers[i].add(channel, client).then(
      () => set.add(client),
      () => {},
    )
  }
  for (let round = 0; round < 12; round++) {
    const event = events[round % events.length]()
    for (let step = 0; step < 20; step++) {
      // Clients of one worker act one after the other, as sessions do; workers at the same time.
      await Promise.all(workers.map((_, i) => act(i)))
      await new Promise(setImmediate)
    }
    await event
    await until(() => workers.every(({ up }) => up))
  }
  for (const channel of channels) {
    const expected = there.flatMap(sets => [.../** @type {Set<string>} */ (sets.get(channel))]).sort()
    for (const worker of workers) await until(async () => same(await worker.clients(channel), expected))
  }
  t.same(await keptForEver(server), [])
})
