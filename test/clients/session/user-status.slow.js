// user_status and singleflight with Redis: two nodes, an outage, the death of a node.

import { setTimeout as wait } from 'node:timers/promises'
import { Redis } from 'ioredis'
import t from 'tap'
import { fetch } from '../../kit/fetch.js'
import { startGateway } from '../../kit/gateway.js'
import { needsRedis, startCluster, startRedis } from '../../kit/servers/redis.js'
import { until } from '../../kit/wait.js'
import { at, error, history, open, SECRET, user } from './support.js'

needsRedis(t)
t.setTimeout(300_000)

const INTERNAL = error(100, 'internal server error', true)

/** @param {any} t @param {object} redis of the engine @param {object} [status] */
const start = (t, redis, status = { redis: { reuse_from_engine: true } }) =>
  startGateway(t, {
    workers: 1,
    prometheus: { enabled: true },
    singleflight: { enabled: true },
    engine: { type: 'redis', redis },
    user_status: { enabled: true, ...status },
    client: { token: { hmac_secret_key: SECRET } },
    channel: { without_namespace: { ...open, ...history } },
  })

/** @param {any} gateway @param {string} name */
const statusOf = async (gateway, name) =>
  (await gateway.api('get_user_status', { users: [name] })).result.statuses[0]
/** @param {any} client @param {any} [data] */
const update = (client, data) => client.call('rpc', { method: 'update_user_status', data })
/** @param {any} gateway */
const ready = gateway =>
  until(async () => 'result' in (await gateway.api('get_user_status', { users: ['x'] })))

t.test('two nodes', async t => {
  const redis = await startRedis(t)
  const [a, b] = await Promise.all([1, 2].map(() => start(t, { address: redis.address, io_timeout: '1h' })))
  await Promise.all([a, b].map(ready))

  await t.test('what one node writes, the other reads', async t => {
    const client = await user(t, a, { sub: 'ann' })
    t.strictSame((await update(client, { state: 'busy 🎈' })).rpc, {})
    const status = await statusOf(b, 'ann')
    t.strictSame(status, await statusOf(a, 'ann'))
    t.match(status, { user: 'ann', state: 'busy 🎈' })
    for (const name of ['active', 'online']) t.ok(Math.abs(status[name] - at()) < 30, name)
    await b.api('update_user_status', { users: ['ann', 'bob'], state: '' })
    t.strictSame(Object.keys(await statusOf(a, 'ann')), ['user', 'active', 'online'])
    t.strictSame(Object.keys(await statusOf(a, 'bob')), ['user', 'active'])
    const ttl = Number(await redis.call('PTTL', 'halley.status.bob'))
    t.ok(ttl > 719 * 3_600_000 && ttl <= 720 * 3_600_000, `${ttl} ms`)
    await a.api('delete_user_status', { users: ['bob'] })
    t.equal(await redis.call('EXISTS', 'halley.status.bob'), 0)
  })

  await t.test('many users in one call, in the order of the request', async t => {
    const users = Array.from({ length: 1000 }, (_, i) => `many ${i}`)
    await a.api('update_user_status', { users: users.slice(0, 500), state: 'x' })
    const { statuses } = (await b.api('get_user_status', { users })).result
    t.strictSame(
      statuses.map(({ user, state }) => [user, state]),
      users.map((name, i) => [name, i < 500 ? 'x' : undefined]),
    )
  })

  await t.test('a deleted user that stays connected is online again within a minute', async t => {
    await user(t, a, { sub: 'stays' })
    await until(async () => (await statusOf(a, 'stays')).online > 0)
    await a.api('delete_user_status', { users: ['stays'] })
    t.strictSame(await statusOf(b, 'stays'), { user: 'stays' })
    const since = Date.now()
    while (!(await statusOf(b, 'stays')).online) {
      if (Date.now() - since > 125_000) throw new Error('not online again')
      await wait(500)
    }
    const status = await statusOf(b, 'stays')
    t.strictSame(Object.keys(status), ['user', 'online'])
  })

  await t.test('100 histories at once are two reads of Redis at most; the answers are complete', async t => {
    const channel = 'read'
    await a.api('publish', { channel, data: 1 })
    const clients = await Promise.all(Array.from({ length: 100 }, (_, i) => user(t, a, { sub: `r${i}` })))
    const connection = new Redis(redis.port, redis.host, { retryStrategy: null })
    const monitor = await connection.monitor()
    t.teardown(() => {
      connection.disconnect()
      monitor.disconnect()
    })
    let reads = 0
    monitor.on('monitor', (_time, args) => {
      if (/^evalsha$/i.test(args[0])) reads += args.filter(arg => arg === 'halley.stream.read').length
    })
    await redis.call('CLIENT', 'PAUSE', '500', 'WRITE')
    const answers = await Promise.all(clients.map(client => client.call('history', { channel, limit: 10 })))
    for (const answer of answers) t.match(answer.history, { publications: [{ data: 1 }] })
    await redis.call('GET', 'end')
    t.ok(reads >= 1 && reads <= 2, `${reads} reads`)
  })

  await t.test('a killed node leaves the last time', async t => {
    await user(t, b, { sub: 'cut off' })
    await until(async () => (await statusOf(a, 'cut off')).online > 0)
    const { online } = await statusOf(a, 'cut off')
    b.process.kill('SIGKILL')
    for (const pid of b.workerPids) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {}
    }
    await b.exited
    const later = await statusOf(a, 'cut off')
    t.ok(later.online >= online && later.online <= at(), 'not newer than the end of the node')
    await wait(5000)
    t.strictSame(await statusOf(a, 'cut off'), later)
  })

  await t.test('without Redis: error 100, and dropped updates are counted', async t => {
    const client = await user(t, a, { sub: 'later' })
    await redis.end()
    await a.line(({ msg }) => msg === 'redis is unreachable')
    t.strictSame((await update(client, {})).error, INTERNAL)
    for (const method of ['update_user_status', 'get_user_status', 'delete_user_status'])
      t.match(await a.api(method, { users: ['ann'] }), { error: { code: 100 } }, method)
    await user(t, a, { sub: 'dropped' })
    await until(async () =>
      /^halley_user_status_dropped_total [1-9]/m.test(await (await fetch(`${a.url}/metrics`)).text()),
    )
  })
})

t.test('statuses expire; separate servers, a cluster', async t => {
  const [redis, cluster] = await Promise.all([startRedis(t), startCluster(t)])
  const gateway = await start(
    t,
    { address: redis.address },
    {
      expire_interval: '1s',
      redis: {
        cluster_address: [cluster.servers.map(({ host, port }) => `${host}:${port}`).join()],
        prefix: 'status',
      },
    },
  )
  await ready(gateway)
  const users = Array.from({ length: 50 }, (_, i) => `u${i}`)
  await until(async () => 'result' in (await gateway.api('update_user_status', { users, state: 'x' })))
  const read = async () => (await gateway.api('get_user_status', { users })).result.statuses
  await until(async () => (await read()).every(status => !('state' in status)))
  t.strictSame(
    await read(),
    users.map(user => ({ user })),
  )
})
