// Two gateways joined by one Redis are one gateway to everybody.

import { once } from 'node:events'
import { Centrifuge } from 'centrifuge'
import t from 'tap'
import WebSocket from 'ws'
import { makeToken } from '../../../clients/auth/jwt.js'
import { transports } from '../../../guarantees/receivers.js'
import { defaultDriver } from '../../../kit/drivers.js'
import { fetch } from '../../../kit/fetch.js'
import { PollClient } from '../../../kit/poll-client.js'
import { RawClient } from '../../../kit/raw-client.js'
import { needsRedis, startRedis } from '../../../kit/servers/redis.js'
import { post, StreamClient } from '../../../kit/stream-client.js'
import { poll } from '../../../kit/uni-poll-client.js'
import { until } from '../../../kit/wait.js'
import { open, startNode } from './nodes.js'

needsRedis(t)

const SECRET = 'secret'
const kept = { history_size: 100, history_ttl: '60s', force_recovery: true }
const ADMIN_PASSWORD = 'the admin key of the tests'
const config = {
  ...transports,
  // Without it, the log has a warning where uWebSockets.js does not load.
  http_server: { driver: defaultDriver },
  admin: { password: ADMIN_PASSWORD },
  demo: { enabled: true },
  client: { token: { hmac_secret_key: SECRET }, user_connection_limit: 8 },
  channel: {
    namespaces: [
      { name: 'demo', ...open },
      { name: 'kept', ...open, ...kept, history_meta_ttl: '600s' },
      { name: 'live', ...open },
      { name: 'people', ...open, join_leave: true, force_push_join_leave: true },
      {
        name: 'chat',
        ...open,
        ...kept,
        allow_publish_for_subscriber: true,
        allow_history_for_subscriber: true,
      },
    ],
  },
}

const redis = await startRedis(t)
const [a, b] = await Promise.all([
  startNode(t, redis.address, { config: { ...config, node: { name: 'a' } } }),
  startNode(t, redis.address, { config: { ...config, node: { name: 'b' } } }),
])
const nodes = [a, b]

/**
 * @param {import('../../../kit/gateway.js').TestGateway} gateway
 * @param {object} [request]
 */
const anonymous = (gateway, request) => RawClient.connected(gateway.ws, request)

/**
 * @param {import('../../../kit/gateway.js').TestGateway} gateway
 * @param {string} user
 */
const known = (gateway, user) => RawClient.connected(gateway.ws, { token: makeToken({ sub: user }, SECRET) })

/**
 * Clients on both nodes, enough that each worker has some.
 * @param {(gateway: import('../../../kit/gateway.js').TestGateway) => Promise<RawClient>} connect
 * @param {number} count on each node
 */
const everywhere = (connect, count) =>
  Promise.all(nodes.flatMap(gateway => Array.from({ length: count }, () => connect(gateway))))

/** @param {RawClient[]} clients */
const leave = clients => Promise.all(clients.map(client => client.close()))

t.test('what is published on one node comes to the clients of both, in one order', async t => {
  for (const channel of ['kept:news', 'live:news']) {
    const clients = await everywhere(anonymous, 6)
    await Promise.all(clients.map(client => client.subscribe(channel)))
    const publish = async (/** @type {any} */ gateway, /** @type {number} */ from) => {
      for (let n = from; n < from + 20; n++) {
        const { error } = await gateway.api('publish', { channel, data: { n } })
        t.notOk(error)
      }
    }
    await Promise.all([publish(a, 0), publish(b, 100)])
    const got = []
    for (const client of clients) {
      const list = []
      for (let i = 0; i < 40; i++) list.push((await client.push('pub')).pub)
      got.push(list)
    }
    const order = got[0].map(({ data }) => data.n)
    t.equal(new Set(order).size, 40)
    for (const list of got) t.same(list, got[0])
    if (channel === 'kept:news')
      t.same(
        got[0].map(({ offset }) => offset),
        Array.from({ length: 40 }, (_, i) => i + 1),
      )
    await leave(clients)
  }
})

t.test('the SDK on one node gets what a client publishes on the other', async t => {
  const sdk = new Centrifuge(b.ws, { websocket: WebSocket, token: makeToken({ sub: 'reader' }, SECRET) })
  t.teardown(() => sdk.disconnect())
  const subscription = sdk.newSubscription('chat:1')
  const subscribed = new Promise(resolve => subscription.once('subscribed', resolve))
  const published = new Promise(resolve => subscription.once('publication', resolve))
  subscription.subscribe()
  sdk.connect()
  await subscribed
  const client = await known(a, 'writer')
  await client.subscribe('chat:1')
  const { publish, error } = await client.call('publish', { channel: 'chat:1', data: { text: 'hello' } })
  t.notOk(error)
  t.ok(publish)
  const publication = await published
  t.match(publication, {
    data: { text: 'hello' },
    offset: 1,
    info: { user: 'writer', client: client.connect.client },
  })
  const { publications } = await subscription.history({ limit: 10 })
  t.match(publications, [{ data: { text: 'hello' }, offset: 1 }])
  await client.close()
})

t.test('history is the same from both nodes, and a client that moves recovers', async t => {
  const channel = 'kept:move'
  const client = await anonymous(a)
  const { subscribe } = await client.subscribe(channel)
  for (let n = 1; n <= 3; n++) await nodes[n % 2].api('publish', { channel, data: n })
  for (let n = 1; n <= 3; n++) t.equal((await client.push('pub')).pub.offset, n)
  await client.close()
  for (let n = 4; n <= 6; n++) await nodes[n % 2].api('publish', { channel, data: n })
  const moved = await anonymous(b)
  const again = (await moved.subscribe(channel, { recover: true, offset: 3, epoch: subscribe.epoch }))
    .subscribe
  t.match(again, { recovered: true, epoch: subscribe.epoch })
  t.same(
    again.publications.map(({ data }) => data),
    [4, 5, 6],
  )
  const [one, other] = await Promise.all(nodes.map(node => node.api('history', { channel, limit: -1 })))
  t.same(one, other)
  t.equal(one.result.publications.length, 6)
  await a.api('history_remove', { channel })
  t.match((await b.api('history', { channel, limit: -1 })).result, { publications: [], offset: 6 })
  const stale = await b.api('history', { channel, limit: -1, since: { offset: 1, epoch: 'other' } })
  t.equal(stale.error.code, 112)
  await moved.close()
})

t.test('a publication with a key goes out once, on whichever node it is said again', async t => {
  const channel = 'kept:key'
  const request = { channel, data: 1, idempotency_key: 'one' }
  const first = await a.api('publish', request)
  t.same(await b.api('publish', request), first)
  t.equal((await a.api('history', { channel })).result.offset, 1)
})

t.test('presence lists the clients of both nodes', async t => {
  const channel = 'live:present'
  const clients = [await known(a, 'ann'), await known(b, 'ann'), await known(b, 'bob')]
  await Promise.all(clients.map(client => client.subscribe(channel)))
  for (const node of nodes) {
    const { presence } = (await node.api('presence', { channel })).result
    t.same(Object.keys(presence).sort(), clients.map(({ connect }) => connect.client).sort())
    t.same((await node.api('presence_stats', { channel })).result, { num_clients: 3, num_users: 2 })
  }
  await clients[0].close()
  await until(async () => (await b.api('presence_stats', { channel })).result.num_clients === 2)
  await leave(clients.slice(1))
  await until(async () => (await a.api('presence_stats', { channel })).result.num_clients === 0)
})

t.test('joins and leaves are told on both nodes', async t => {
  const channel = 'people:1'
  const watcher = await known(a, 'watcher')
  await watcher.subscribe(channel)
  await watcher.push('join')
  const client = await known(b, 'guest')
  await client.subscribe(channel)
  const { join } = await watcher.push('join')
  t.match(join.info, { user: 'guest', client: client.connect.client })
  await client.close()
  const { leave } = await watcher.push('leave')
  t.match(leave.info, { user: 'guest' })
  await watcher.close()
})

t.test('channels and info tell of both nodes', async t => {
  const clients = await everywhere(anonymous, 4)
  await Promise.all(clients.map((client, i) => client.subscribe(i === 0 ? 'live:first' : 'live:all')))
  for (const node of nodes) {
    const { channels } = (await node.api('channels', { pattern: 'live:*' })).result
    t.same(channels, { 'live:first': { num_clients: 1 }, 'live:all': { num_clients: 7 } })
    // It counts every few seconds only.
    const list = await until(async () => {
      const { nodes: list } = (await node.api('info')).result
      return list.every(({ num_subs, num_clients }) => num_subs === 4 && num_clients === 4) && list
    })
    t.same(list.map(({ name }) => name).sort(), ['a', 'b'])
    t.equal(new Set(list.map(({ uid }) => uid)).size, 2)
    for (const { num_clients, uptime } of list) {
      t.equal(num_clients, 4)
      t.ok(uptime >= 0)
    }
  }
  await leave(clients)
})

t.test('what is said to a user reaches all connections, whichever node is asked', async t => {
  const clients = await everywhere(gateway => known(gateway, 'user'), 3)
  const others = await everywhere(gateway => known(gateway, 'other'), 1)
  const channel = 'live:user'
  t.notOk((await a.api('subscribe', { user: 'user', channel })).error)
  for (const client of clients) t.equal((await client.push('subscribe')).channel, channel)
  await b.api('publish', { channel, data: 1 })
  for (const client of clients) await client.push('pub')
  t.notOk((await b.api('unsubscribe', { user: 'user', channel })).error)
  for (const client of clients) t.equal((await client.push('unsubscribe')).channel, channel)
  const expire_at = Math.floor(Date.now() / 1000) + 600
  t.notOk((await a.api('refresh', { user: 'user', expire_at })).error)
  for (const client of clients) t.ok((await client.push('refresh')).refresh.ttl > 500)
  const [survivor] = clients.splice(4, 1)
  const whitelist = [survivor.connect.client]
  t.notOk(
    (await a.api('disconnect', { user: 'user', whitelist, disconnect: { code: 4001, reason: 'go' } })).error,
  )
  for (const client of clients) t.same(await client.closed, { code: 4001, reason: 'go' })
  for (const client of [survivor, ...others]) {
    t.match(await client.call('rpc', { method: 'none' }), { error: { code: 108 } }, 'is still here')
  }
  await leave([survivor, ...others])
})

t.test('connections of a user are counted over both nodes', async t => {
  const clients = await everywhere(gateway => known(gateway, 'many'), 4)
  for (const node of nodes) {
    const client = await RawClient.open(node.ws)
    client.send({ id: 1, connect: { token: makeToken({ sub: 'many' }, SECRET) } })
    t.equal((await client.closed).code, 3504)
  }
  await clients[0].close()
  const next = await until(() => known(b, 'many'))
  await leave([...clients.slice(1), next])
})

t.test('a post for a session of one node may go to the other', async t => {
  for (const transport of /** @type {('http_stream' | 'sse')[]} */ (['http_stream', 'sse'])) {
    const client = await StreamClient.connected(a.url, transport)
    client.base = b.url
    for (let i = 0; i < 8; i++)
      t.match(await client.call('rpc', { method: 'none' }), { error: { code: 108 } })
    t.ok((await client.subscribe('live:stream')).subscribe)
    await b.api('publish', { channel: 'live:stream', data: { n: 1 } })
    t.same((await client.push('pub')).pub, { data: { n: 1 } })
    await client.close()
  }
  const nobody = JSON.stringify({ session: 'none', node: 'none', data: '{"id":2,"rpc":{}}' })
  t.equal((await post(`${b.url}/emulation`, nobody)).status, 404)
})

t.test('polls and posts of a session of one node may go to the other', async t => {
  const client = await PollClient.connected(a)
  const turns = [b, a]
  let turn = 0
  const { at } = client
  client.at = params => {
    client.url = `${turns[turn++ % 2].url}/connection/poll`
    return at.call(client, params)
  }
  t.ok((await client.call('subscribe', { channel: 'kept:poll' })).subscribe)
  for (let n = 1; n <= 6; n++) {
    await nodes[n % 2].api('publish', { channel: 'kept:poll', data: n })
    t.match((await client.push('pub')).pub, { data: n, offset: n })
  }
  const waiting = client.poll(20)
  await a.api('publish', { channel: 'kept:poll', data: 7 })
  await waiting
  t.match((await client.push('pub')).pub, { data: 7, offset: 7 })
})

t.test('a one-way poll goes on at the other node where it was at the first', async t => {
  const channel = 'kept:uni_poll'
  await a.api('publish', { channel, data: 1 })
  let { cursor } = await poll(a, { channel, timeout: 0 })
  for (let n = 2; n <= 7; n++) {
    await nodes[n % 2].api('publish', { channel, data: n })
    const answer = await poll(nodes[Math.floor(n / 2) % 2], { channel, cursor, timeout: 5 })
    t.same(answer.data, [n])
    t.notOk(answer.body.lost)
    cursor = answer.cursor
  }
  const waiting = poll(b, { channel, cursor, timeout: 20 })
  await until(
    async () =>
      ((await a.api('channels', { pattern: channel })).result.channels[channel]?.num_clients ?? 0) === 1,
  )
  await a.api('publish', { channel, data: 8 })
  t.same((await waiting).data, [8])
})

t.test('one admin page is enough for all nodes', async t => {
  const call = async (node, name, params, token = '') => {
    const answer = await fetch(`${node.url}/admin/api/${name}`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}` },
      body: JSON.stringify(params),
    })
    return answer.json()
  }
  const { token } = await call(nodes[0], 'login', { password: ADMIN_PASSWORD })
  const clients = await Promise.all(
    [...nodes, ...nodes, ...nodes].map(({ ws }) =>
      RawClient.connected(ws, { token: makeToken({ sub: 'anna' }, SECRET) }),
    ),
  )
  for (const client of clients) await client.subscribe('live:admin')

  for (const node of nodes) {
    const { result } = await call(node, 'connections', { user: 'anna' }, token)
    t.equal(result.total, 6, 'the token of one node is good at the other')
    t.same(
      result.connections.map(({ client }) => client).sort(),
      clients.map(({ connect }) => connect.client).sort(),
    )
    t.equal(new Set(result.connections.map(({ node }) => node.uid)).size, 2)
    const channels = await call(node, 'channels', { pattern: 'live:admin' }, token)
    t.same(channels.result, { total: 1, channels: [{ name: 'live:admin', clients: 6 }] })
    t.equal((await call(node, 'info', {}, token)).result.nodes.length, 2)
  }

  const far = clients[1].connect.client
  await call(nodes[0], 'disconnect', { user: 'anna', client: far }, token)
  t.equal((await clients[1].closed).code, 3503, 'also at the other node')
  await call(nodes[0], 'disconnect', { user: 'anna' }, token)
  for (const client of clients) t.equal((await client.closed).code, 3503)

  // Each node counts for itself.
  const guess = async node =>
    (
      await fetch(`${node.url}/admin/api/login`, {
        method: 'POST',
        headers: { Connection: 'close' },
        body: '{"password":"guess"}',
      })
    ).status
  for (let n = 0; n < 10; n++) t.equal(await guess(nodes[0]), 401)
  // One of them waits for its answer, longer than this test.
  const more = [guess(nodes[0]), guess(nodes[0])]
  for (const answer of more) answer.catch(() => {})
  t.equal(await Promise.race(more), 429, 'whichever of its workers it comes to')
  t.equal(await guess(nodes[1]), 401)
})

t.test('the vital signs of the demo page are those of one node', async t => {
  const [one, other] = await Promise.all(nodes.map(({ ws }) => RawClient.connected(ws)))
  await Promise.all([one.subscribe('demo:vitals'), other.subscribe('demo:vitals')])
  /** A worker has signs from its second second on. */
  const first = async client => {
    for (;;) {
      const { data } = (await client.push('pub')).pub
      if (data.workers.length > 1) return data
    }
  }
  const samples = [await first(one)]
  while (samples.length < 3) samples.push((await one.push('pub')).pub.data)
  t.same((await first(other)).workers.length, 2, 'clients of both nodes get them')
  for (const { workers } of samples) {
    t.same(
      workers.map(({ worker }) => worker),
      [0, 1],
    )
  }
  t.equal(new Set(samples.flatMap(({ workers }) => workers.map(({ pid }) => pid))).size, 2)
  await Promise.all([one.close(), other.close()])
})

t.test('a node that ends is forgotten at once, and its clients may come to the other', async t => {
  const c = await startNode(t, redis.address, { workers: 1, config: { ...config, node: { name: 'c' } } })
  await until(async () => (await a.api('info')).result.nodes.length === 3)
  const client = await known(c, 'mover')
  await client.subscribe('live:moving')
  t.equal((await a.api('presence_stats', { channel: 'live:moving' })).result.num_clients, 1)
  c.process.kill('SIGTERM')
  t.equal((await client.closed).code, 3001)
  await c.exited
  t.equal((await a.api('presence_stats', { channel: 'live:moving' })).result.num_clients, 0)
  await until(async () => (await a.api('info')).result.nodes.length === 2)
})

t.test('gateways with another prefix are not of this company', async t => {
  const other = await startNode(t, redis.address, { redis: { prefix: 'other' }, workers: 1, config })
  const client = await anonymous(other)
  await client.subscribe('kept:prefix')
  await a.api('publish', { channel: 'kept:prefix', data: 'theirs' })
  await other.api('publish', { channel: 'kept:prefix', data: 'ours' })
  t.match((await client.push('pub')).pub, { data: 'ours', offset: 1 })
  t.equal((await other.api('info')).result.nodes.length, 1)
  // Each worker counts every few seconds only.
  await until(async () => (await a.api('info')).result.nodes.length === 2)
  const done = once(client.socket, 'close')
  client.socket.close()
  await done
})

t.test('nothing of all that was wrong', async t => {
  for (const { lines } of nodes)
    t.same(
      lines.filter(({ level }) => level >= 40),
      [],
    )
})
