// Excluded clients and users, and target users, over two nodes that share a Redis, each with another socket server.

import t from 'tap'
import { token, tokenClient, user } from '../../../clients/session/support.js'
import { drivers } from '../../../kit/drivers.js'
import { PollClient } from '../../../kit/poll-client.js'
import { needsRedis, startRedis } from '../../../kit/servers/redis.js'
import { StreamClient } from '../../../kit/stream-client.js'
import { until } from '../../../kit/wait.js'
import { open, startNode } from './nodes.js'

needsRedis(t)

const kept = {
  history_size: 100,
  history_ttl: '60s',
  force_recovery: true,
  allow_history_for_subscriber: true,
}
const redis = await startRedis(t)
const nodes = await Promise.all(
  [drivers[0], 'node'].map(driver =>
    startNode(t, redis.address, {
      config: {
        http_server: { driver },
        client: tokenClient(),
        http_stream: { enabled: true },
        poll: { enabled: true },
        channel: {
          targeted_publications: true,
          namespaces: [
            { name: 'kept', ...open, ...kept },
            { name: 'live', ...open },
            { name: 'delta', ...open, ...kept, allowed_delta_types: ['fossil'], delta_publish: true },
            { name: 'batch', ...open, ...kept, batch_max_size: 10, batch_max_delay: '20ms' },
            { name: 'cache', ...open, ...kept, force_recovery_mode: 'cache', auto_cache_recover: true },
            { name: 'echo', ...open, ...kept, allow_publish_for_client: true, publish_exclude_sender: true },
          ],
        },
      },
    }),
  ),
)
const [first, second] = nodes

/** @param {string} channel @param {any} data @param {object} [target] @param {number} [node] that publishes */
const publish = async (channel, data, target, node = 0) => {
  const { result, error } = await nodes[node].api('publish', { channel, data, ...target })
  if (error) throw new Error(`${channel}: ${error.message}`)
  return result
}

/** Until a node is connected to Redis again. @param {string} channel @param {any} data @param {object} [target] */
const publishAgain = (channel, data, target) =>
  until(() =>
    publish(channel, data, { ...target, idempotency_key: `${data}` }).then(
      () => true,
      () => false,
    ),
  )

/** Clients of a user on both nodes, subscribed; several for each worker. @param {any} t @param {string} sub @param {string} channel */
async function everywhere(t, sub, channel) {
  const request = { token: token({ sub }) }
  const clients = await Promise.all(
    nodes.flatMap(node => [
      user(t, node, { sub }),
      user(t, node, { sub }),
      user(t, node, { sub }),
      StreamClient.connected(node.url, 'http_stream', request),
      PollClient.connected(node, request),
    ]),
  )
  t.teardown(() => clients.map(client => client instanceof StreamClient && client.close()))
  for (const client of clients) await client.subscribe(channel)
  return clients
}

/** @param {any} client @param {any} end last data @returns {Promise<any[]>} data of its publications */
async function readTo(client, end) {
  const received = []
  while (received.at(-1) !== end) received.push((await client.push('pub')).pub.data)
  return received
}

for (const channel of ['live:x', 'kept:x', 'batch:x'])
  t.test(`clients of both nodes, ${channel}`, async t => {
    const [own, others] = await Promise.all(['u1', 'u2'].map(sub => everywhere(t, sub, channel)))
    const [excluded] = own.slice(-5)
    await publish(channel, 0)
    await publish(channel, 1, { exclude_client: excluded.connect.client })
    await publish(channel, 2, { exclude_user: 'u1' })
    await publish(channel, 3, { users: ['u1'] })
    await publish(channel, 'end')
    for (const client of own)
      t.strictSame(await readTo(client, 'end'), client === excluded ? [0, 3, 'end'] : [0, 1, 3, 'end'])
    for (const client of others) t.strictSame(await readTo(client, 'end'), [0, 1, 2, 'end'])
  })

t.test('recovery, history and cache recovery on the other node', async t => {
  const clients = await Promise.all(['u1', 'u2'].map(sub => user(t, first, { sub })))
  const { epoch } = (await clients[0].subscribe('kept:r')).subscribe
  for (const n of [1, 2, 3]) await publish('kept:r', n, n === 2 ? { exclude_user: 'u1' } : {})
  t.strictSame(await publish('kept:r', 4, { users: ['u1'] }), {})
  const back = await Promise.all(['u1', 'u2'].map(sub => user(t, second, { sub })))
  const dataOf = (/** @type {any} */ { publications }) =>
    publications.map((/** @type {any} */ { data }) => data)
  for (const [n, expected] of [
    [1, 3],
    [1, 2, 3],
  ].entries()) {
    const { subscribe } = await back[n].subscribe('kept:r', { recover: true, epoch, offset: 0 })
    t.equal(subscribe.recovered, true)
    t.strictSame(dataOf(subscribe), expected)
    const { history } = await back[n].call('history', { channel: 'kept:r', limit: 10 })
    t.strictSame(dataOf(history), expected)
    t.equal(history.offset, 3)
  }
  const { publications } = (await second.api('history', { channel: 'kept:r', limit: 10 })).result
  t.match(publications, [{ data: 1 }, { data: 2, exclude_user: 'u1' }, { data: 3 }])
  for (const n of [1, 2, 3]) await publish('cache:c', n, n > 1 ? { exclude_user: 'u1' } : {})
  for (const [n, expected] of [1, 3].entries())
    t.strictSame(dataOf((await back[n].subscribe('cache:c')).subscribe), [expected])
})

t.test('publish_exclude_sender, and an idempotency key', async t => {
  const [sender, same, other] = await Promise.all([
    user(t, first, { sub: 'u1' }),
    user(t, second, { sub: 'u1' }),
    user(t, second, { sub: 'u2' }),
  ])
  for (const client of [sender, same, other]) await client.subscribe('echo:e')
  t.strictSame((await sender.call('publish', { channel: 'echo:e', data: 1 })).publish, {})
  const key = { idempotency_key: 'once' }
  const given = await publish('echo:e', 2, { exclude_user: 'u2', ...key })
  t.strictSame(await publish('echo:e', 2, key, 1), given)
  await publish('echo:e', 'end', {}, 1)
  t.strictSame(await readTo(sender, 'end'), [2, 'end'])
  t.strictSame(await readTo(same, 'end'), [1, 2, 'end'])
  t.strictSame(await readTo(other, 'end'), [1, 'end'])
})

t.test('publications that are missed during an outage of Redis keep their target', async t => {
  const [a, b] = await Promise.all(['u1', 'u2'].map(sub => user(t, second, { sub })))
  for (const client of [a, b]) await client.subscribe('kept:outage')
  await publish('kept:outage', 1, { exclude_user: 'u1' })
  // The connections of all nodes: they resubscribe and catch up.
  await redis.call('client', 'kill', 'type', 'pubsub')
  await publishAgain('kept:outage', 2, { exclude_user: 'u1' })
  await publishAgain('kept:outage', 'end')
  t.strictSame(await readTo(a, 'end'), ['end'])
  t.strictSame(await readTo(b, 'end'), [1, 2, 'end'])
})
