// Two gateways that share a Redis act as one gateway.

import { once } from 'node:events'
import t from 'tap'
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
  // Avoids the warning on systems where uWebSockets.js does not load.
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

/** @param {import('../../../kit/gateway.js').TestGateway} gateway @param {object} [request] */
const anonymous = (gateway, request) => RawClient.connected(gateway.ws, request)

/** @param {import('../../../kit/gateway.js').TestGateway} gateway @param {string} user */
const known = (gateway, user) => RawClient.connected(gateway.ws, { token: makeToken({ sub: user }, SECRET) })

/**
 * Connects clients to both nodes, enough for each worker.
 * @param {(gateway: import('../../../kit/gateway.js').TestGateway) => Promise<RawClient>} connect
 * @param {number} count on each node
 */
const everywhere = (connect, count) =>
  Promise.all(nodes.flatMap(gateway => Array.from({ length: count }, () => connect(gateway))))

/** @param {RawClient[]} clients */
const leave = clients => Promise.all(clients.map(client => client.close()))

t.test('clients of both nodes get publications in the same order', async t => {
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

t.test('channels and info include both nodes', async t => {
  const clients = await everywhere(anonymous, 4)
  await Promise.all(clients.map((client, i) => client.subscribe(i === 0 ? 'live:first' : 'live:all')))
  for (const node of nodes) {
    const { channels } = (await node.api('channels', { pattern: 'live:*' })).result
    t.same(channels, { 'live:first': { num_clients: 1 }, 'live:all': { num_clients: 7 } })
    // Updated only every few seconds.
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

t.test('user commands reach connections of both nodes', async t => {
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
    t.match(await client.call('rpc', { method: 'none' }), { error: { code: 108 } }, 'is still connected')
  }
  await leave([survivor, ...others])
})

t.test('nodes forward POSTs to the node of the session', async t => {
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

t.test('nodes forward polls and POSTs to the node of the session', async t => {
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

t.test('a one-way poll continues on the other node', async t => {
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

t.test('the admin page of each node shows all nodes', async t => {
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
    t.equal(result.total, 6, 'a token from one node is valid on the other')
    const ids = result.connections.map(({ client }) => client).sort()
    t.same(ids, clients.map(({ connect }) => connect.client).sort())
    t.equal(new Set(result.connections.map(({ node }) => node.uid)).size, 2)
    const channels = await call(node, 'channels', { pattern: 'live:admin' }, token)
    t.same(channels.result, { total: 1, channels: [{ name: 'live:admin', kind: 'stream', clients: 6 }] })
    t.equal((await call(node, 'info', {}, token)).result.nodes.length, 2)
  }

  const far = clients[1].connect.client
  await call(nodes[0], 'disconnect', { user: 'anna', client: far }, token)
  t.equal((await clients[1].closed).code, 3503, 'also on the other node')
  await call(nodes[0], 'disconnect', { user: 'anna' }, token)
  for (const client of clients) t.equal((await client.closed).code, 3503)

  // Each node has its own count.
  const guess = async node =>
    (
      await fetch(`${node.url}/admin/api/login`, {
        method: 'POST',
        headers: { Connection: 'close' },
        body: '{"password":"guess"}',
      })
    ).status
  for (let n = 0; n < 10; n++) t.equal(await guess(nodes[0]), 401)
  // One response is delayed beyond the end of this test.
  const more = [guess(nodes[0]), guess(nodes[0])]
  for (const answer of more) answer.catch(() => {})
  t.equal(await Promise.race(more), 429, 'on any worker')
  t.equal(await guess(nodes[1]), 401)
})

t.test('the demo page shows the vital signs of one node on both nodes', async t => {
  const [one, other] = await Promise.all(nodes.map(({ ws }) => RawClient.connected(ws)))
  await Promise.all([one.subscribe('demo:vitals'), other.subscribe('demo:vitals')])
  /** Workers report only after their first second. */
  const first = async client =>
    (await client.next(({ push }) => push?.pub?.data.workers.length > 1)).push.pub.data
  const samples = [await first(one)]
  while (samples.length < 3) samples.push(await first(one))
  t.same((await first(other)).workers.length, 2, 'clients of both nodes receive them')
  for (const { workers } of samples) {
    const numbers = workers.map(({ worker }) => worker)
    t.same(numbers, [0, 1])
  }
  t.equal(new Set(samples.flatMap(({ workers }) => workers.map(({ pid }) => pid))).size, 2)
  await Promise.all([one.close(), other.close()])
})

t.test('a stopped node is removed immediately', async t => {
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

t.test('gateways with different prefixes are separate', async t => {
  const other = await startNode(t, redis.address, { redis: { prefix: 'other' }, workers: 1, config })
  const client = await anonymous(other)
  await client.subscribe('kept:prefix')
  await a.api('publish', { channel: 'kept:prefix', data: 'theirs' })
  await other.api('publish', { channel: 'kept:prefix', data: 'ours' })
  t.match((await client.push('pub')).pub, { data: 'ours', offset: 1 })
  t.equal((await other.api('info')).result.nodes.length, 1)
  // Workers update the list only every few seconds.
  await until(async () => (await a.api('info')).result.nodes.length === 2)
  const done = once(client.socket, 'close')
  client.socket.close()
  await done
})

t.test('no warnings are logged', async t => {
  const warnings = nodes.flatMap(({ lines }) => lines.filter(({ level }) => level >= 40))
  t.same(warnings, [])
})
