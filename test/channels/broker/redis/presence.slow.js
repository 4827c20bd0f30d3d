// Presence and the connections of users: many of them, in a cluster, and through faults of Redis.

import t from 'tap'
import { needsRedis, startCluster, startRedis } from '../../../kit/servers/redis.js'
import { until } from '../../../kit/wait.js'
import { countsOf, cutAll, ids, info, keptForEver, same, testsOn, Worker } from './presence-rig.js'

needsRedis(t)

const server = await startRedis(t)
const { test, join } = testsOn(t, server)

test('lists 10,000 clients in one channel', async t => {
  const steady = { ttl: 8000, every: 100 }
  const [a, b] = [await join(t, steady), await join(t, steady)]
  await a.subscribe('big')
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
  await a.subscribe('big')
  await until(async () => (await a.presence.stats('big')).clients === 9999)
  b.die()
  await until(async () => (await a.presence.stats('big')).clients === 4999)
  await until(() => a.messages.length >= 5000)
  t.same(a.messages.map(([, message]) => JSON.parse(message.slice(1)).client).sort(), all.slice(5000))
})

test('presence works in a cluster', async t => {
  const short = { ttl: 5000, every: 100 }
  const cluster = await startCluster(t, { replicas: 0, timeout: 15_000 })
  const [a, b] = [await Worker.join(t, cluster, short), await Worker.join(t, cluster, short)]
  const channels = ids(40)
  for (const channel of channels) {
    await a.subscribe(channel)
    await Promise.all([a.add(channel, '1'), b.add(channel, '2', 'ben', { leave: true }), b.add(channel, '3')])
    b.remove(channel, '3')
    t.same(await b.clients(channel), ['1', '2'])
    t.same(await a.presence.stats(channel), { clients: 2, users: 2 })
  }
  b.die()
  await until(() => a.messages.length === channels.length)
  const leave = `l${info('ben', '2')}`
  const leaves = a.messages.sort()
  t.same(
    leaves,
    channels.map(channel => [channel, leave]),
  )
  for (const channel of channels) t.same(await a.clients(channel), ['1'])
})

test('presence is correct after random faults', async t => {
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
      // Clients of one worker act in sequence, like sessions; workers act concurrently.
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

test('counts of users are correct after random faults', async t => {
  const workers = []
  for (let i = 0; i < 3; i++) workers.push(await join(t, { every: 50, ttl: 3000 }))
  const users = ['x', 'y', 'z']
  /** @type {Map<string, number>[]} */
  const held = workers.map(() => new Map(users.map(user => [user, 0])))
  const dice = (/** @type {number} */ n) => Math.floor(Math.random() * n)
  const act = (/** @type {number} */ i) => {
    const user = users[dice(3)]
    const count = held[i].get(user) ?? 0
    if (dice(2) === 0 && count > 0) {
      held[i].set(user, count - 1)
      workers[i].release(user)
    } else if (dice(2) === 0) {
      return workers[i].claim(user, 10).then(
        admitted => admitted && held[i].set(user, (held[i].get(user) ?? 0) + 1),
        () => {},
      )
    }
  }
  for (let round = 0; round < 20; round++) {
    const event = round % 2 === 0 ? cutAll(server) : server.call('FLUSHALL')
    const under = []
    for (let step = 0; step < 20; step++) {
      for (let i = 0; i < workers.length; i++) under.push(act(i))
      if (dice(3) === 0) await new Promise(setImmediate)
    }
    await Promise.all([event, ...under])
    await until(() => workers.every(({ up }) => up))
  }
  for (const user of users) {
    const expected = Object.fromEntries(
      workers.flatMap(({ uid }, i) => {
        const count = held[i].get(user) ?? 0
        return count > 0 ? [[uid, `${count}`]] : []
      }),
    )
    await until(async () => {
      const found = await countsOf(server, user)
      return Object.keys({ ...found, ...expected }).every(uid => found[uid] === expected[uid])
    })
  }
  t.same(await keptForEver(server), [])
})
