// Blocked users and revoked tokens on several nodes.

import t from 'tap'
import { startNode } from '../../channels/broker/redis/nodes.js'
import { startGateway } from '../../kit/gateway.js'
import { needsRedis, startCluster, startRedis } from '../../kit/servers/redis.js'
import { TcpProxy } from '../../kit/tcp-proxy.js'
import { until } from '../../kit/wait.js'
import { refused, refusedByAll } from './denials.js'
import { at, open, roundTrip, token, tokenClient, user } from './support.js'

needsRedis(t)

const DENIED = { code: 3507, reason: 'permission denied' }
const INVALIDATED = { code: 3014, reason: 'state invalidated' }
const DONE = { result: {} }

t.test('two nodes with Redis', async t => {
  const redis = await startRedis(t)
  const proxy = await TcpProxy.start(t, redis.port)
  const config = { client: tokenClient({ insecure: true }), channel: { without_namespace: open } }
  const start = (address = redis.address) => startNode(t, address, { config })
  const [a, b] = await Promise.all([start(), start(`redis://127.0.0.1:${proxy.port}`)])
  await until(async () => (await a.api('info')).result?.nodes.length === 2)
  const claims = { sub: '7' }
  const block = async (/** @type {any} */ on, /** @type {object} */ params = { user: '7' }) =>
    t.strictSame(await on.api('block_user', params), DONE)

  t.test('three sessions on two nodes', async t => {
    const sessions = [await user(t, a, claims), await user(t, a, claims), await user(t, b, claims)]
    const revoked = await user(t, b, { sub: '8', jti: 'r' })
    const old = await user(t, b, { sub: '9', iat: 100 })
    await block(a)
    for (const { closed } of sessions) t.strictSame(await closed, DENIED)
    for (const node of [a, b]) t.equal(await refusedByAll(t, node, claims), 3507)
    t.strictSame(await a.api('revoke_token', { uid: 'r' }), DONE)
    t.strictSame(await revoked.closed, INVALIDATED)
    t.strictSame(await a.api('invalidate_user_tokens', { user: '9', issued_before: 101 }), DONE)
    t.strictSame(await old.closed, INVALIDATED)
    t.equal(await refusedByAll(t, b, { sub: '9', iat: 100 }), 109)
    t.strictSame(await b.api('unblock_user', { user: '7' }), DONE)
    for (const node of [a, b]) await user(t, node, claims)
  })

  t.test('a node that joins later, and one that was killed', async t => {
    await block(a)
    for (let i = 0; i < 2; i++) {
      const late = await startNode(t, redis.address, { config })
      t.equal(await refusedByAll(t, late, claims), 3507)
      t.equal(await refusedByAll(t, late, { sub: '8', jti: 'r' }), 109)
      late.process.kill('SIGKILL')
      await late.exited
    }
    // The killed nodes still hold their leases: they do not answer.
    await until(async () => (await a.api('unblock_user', { user: '7' })).result)
    await until(async () => (await a.api('info')).result?.nodes.length === 2)
    for (const node of [a, b]) await user(t, node, claims)
  })

  t.test('a node that was cut off', async t => {
    const there = await user(t, b, { sub: 'away' })
    const stays = await user(t, b, { sub: 'unblocked' })
    proxy.refuses = true
    proxy.cut()
    await until(async () => (await a.api('info')).result?.nodes.length === 1)
    await block(a, { user: 'away' })
    await block(a, { user: 'unblocked' })
    t.strictSame(await a.api('unblock_user', { user: 'unblocked' }), DONE)
    proxy.refuses = false
    t.strictSame(await there.closed, DENIED)
    // Each worker reads what it missed by itself, and ends what it has admitted until then.
    await until(async () => (await refusedByAll(t, b, { sub: 'away' })) === 3507)
    await until(async () => (await b.api('info')).result?.nodes.length === 2)
    await user(t, b, { sub: 'unblocked' })
    t.equal(stays.ended?.code ?? 3507, 3507)
  })

  t.test('without Redis: the list stays in force, calls fail', async t => {
    await block(a)
    await redis.stop()
    for (const node of [a, b]) t.equal(await refusedByAll(t, node, claims), 3507)
    t.match(await a.api('block_user', { user: 'new' }), { error: { code: 100 } })
    const pids = a.workerPids
    for (const pid of pids) process.kill(pid, 'SIGKILL')
    await until(() => a.workerPids.length === 2 * pids.length)
    t.equal(await refusedByAll(t, a, claims), 3507, 'workers that started without Redis')
    redis.cont()
    await until(async () => (await a.api('block_user', { user: 'new' })).result)
    t.equal(await refusedByAll(t, b, { sub: 'new' }), 3507)
    t.strictSame(await b.api('block_user', { user: 'soon', expire_at: at(60) }), DONE)
  })
})

t.test('nodes with the memory engine that share a store in Redis', async t => {
  const redis = await startRedis(t)
  const store = { storage_type: 'redis', redis: { address: redis.address } }
  const start = () =>
    startGateway(t, {
      client: tokenClient(),
      user_block: { ...store, max_entries: 2 },
      token_revoke: store,
      channel: { without_namespace: open },
    })
  const [a, b] = await Promise.all([start(), start()])
  const there = await user(t, b, { sub: '7' })
  t.strictSame(await a.api('block_user', { user: '7' }), DONE)
  t.strictSame(await there.closed, DENIED, 'the other node reads it within a second')
  t.equal(await refusedByAll(t, await start(), { sub: '7' }), 3507)
  t.strictSame(await a.api('block_user', { user: 'short', expire_at: at(1) }), DONE)
  t.match(await a.api('block_user', { user: 'third' }), { error: { code: 106 } })
  await until(async () => (await a.api('block_user', { user: 'third' })).result, 'the expired one has left')
  t.strictSame(await b.api('unblock_user', { user: '7' }), DONE)
  await until(async () => (await refused(t, a, { sub: '7' })) === 'accepted')
  await roundTrip(await user(t, a, { sub: '7' }))
})

t.test('a Redis Cluster, and Redis with several addresses', async t => {
  const { address } = await startCluster(t, { replicas: 0, timeout: 15_000 })
  const shards = await Promise.all([startRedis(t), startRedis(t)])
  const config = { client: tokenClient(), channel: { without_namespace: open } }
  for (const addresses of [address, shards.map(({ address }) => address)]) {
    const [a, b] = await Promise.all([1, 2].map(() => startNode(t, addresses, { config, workers: 1 })))
    await until(async () => (await a.api('info')).result?.nodes.length === 2)
    const there = await user(t, b, { sub: '7' })
    t.strictSame(await a.api('block_user', { user: '7' }), DONE)
    t.strictSame(await there.closed, DENIED)
    t.strictSame(await a.api('invalidate_user_tokens', { user: '9', issued_before: 5, channel: '$x' }), DONE)
    await b.stop()
    const late = await startNode(t, addresses, { config, workers: 1 })
    t.equal(await refused(t, late, { sub: '7' }), 3507)
    const client = await user(t, late, { sub: '9' })
    const sub = { sub: '9', channel: '$x', iat: 4 }
    t.match(await client.subscribe('$x', { token: token(sub) }), { error: { code: 109 } })
    t.ok((await client.subscribe('$x', { token: token({ ...sub, iat: 5 }) })).subscribe)
  }
})
