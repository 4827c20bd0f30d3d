// Maps of the clients and users of channels.

import t from 'tap'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { until } from '../../kit/wait.js'
import { token, tokenClient } from '../session/support.js'

const OPEN = { allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true }
const PREFIXES = { map_clients_presence_channel_prefix: 'who:', map_users_presence_channel_prefix: 'users:' }
const FLEETING = { mode: 'ephemeral', key_ttl: '60s' }

const config = {
  client: tokenClient({ allow_anonymous_connect_without_token: true, presence_update_interval: '200ms' }),
  channel: {
    namespaces: [
      { name: 'room', ...OPEN, ...PREFIXES },
      { name: 'board', ...OPEN, ...PREFIXES, subscription_type: 'map', map: FLEETING },
      { name: 'brief', ...OPEN, map_clients_presence_channel_prefix: 'short:' },
      { name: 'who', ...OPEN, subscription_type: 'map_clients', map: FLEETING },
      { name: 'users', ...OPEN, subscription_type: 'map_users', map: FLEETING },
      { name: 'short', ...OPEN, subscription_type: 'map_clients', map: { mode: 'ephemeral', key_ttl: '1s' } },
      {
        name: 'cursors',
        ...OPEN,
        subscription_type: 'map',
        map: {
          mode: 'persistent',
          client_key: 'client_id',
          remove_client_on_unsubscribe: true,
          allow_publish_for_subscriber: true,
          allow_publish_for_anonymous: true,
        },
      },
    ],
  },
}

const gateway = await startGateway(t, { workers: 2, ...config })

/** @param {any} t @param {string} [user] @param {object} [claims] */
async function connect(t, user = '', claims = {}) {
  const client = await RawClient.connected(gateway.ws, user ? { token: token({ sub: user, ...claims }) } : {})
  t.teardown(() => client.socket.terminate())
  return client
}

/** @param {string} channel */
async function keys(channel) {
  const { result } = await gateway.api('map_read_state', { channel, limit: -1 })
  return result.entries.map((/** @type {any} */ { key }) => key).sort()
}

for (const [name, request] of /** @type {[string, object][]} */ ([
  ['room:1', {}],
  ['board:1', { type: 1, phase: 2 }],
])) {
  t.test(`clients and users of ${name}`, async t => {
    const [anna, other, nobody] = [
      await connect(t, 'anna', { info: { name: 'A' } }),
      await connect(t, 'anna'),
      await connect(t),
    ]
    const watcher = await connect(t)
    const map = `who:${name}`
    t.match(await watcher.subscribe(map, { type: 2, phase: 2 }), { subscribe: { type: 1 } })
    await anna.subscribe(name, request)
    const { pub } = await watcher.push('pub')
    const id = anna.connect.client
    t.match(pub, { key: id, info: { user: 'anna', client: id, conn_info: { name: 'A' } } })
    for (const client of [other, nobody]) await client.subscribe(name, request)
    await until(async () => (await keys(map)).length === 3)
    t.strictSame(await keys(`users:${name}`), ['anna'], 'anonymous users have no key')
    await anna.call('unsubscribe', { channel: name })
    t.match(await watcher.next(({ push }) => push?.pub?.removed), { push: { pub: { key: id } } })
    for (const client of [other, nobody]) await client.close()
    await until(async () => (await keys(map)).length === 0)
    t.strictSame(await keys(`users:${name}`), ['anna'], 'users stay until they expire')
    await anna.subscribe(name, request)
    await until(async () => (await keys(map)).length === 1)
  })
}

t.test('keys of present clients do not expire', async t => {
  const [client, watcher] = [await connect(t), await connect(t)]
  await watcher.subscribe('short:brief:1', { type: 2, phase: 2 })
  await client.subscribe('brief:1')
  t.match(await watcher.push('pub'), { pub: { key: client.connect.client } })
  // Another key, which nobody renews, expires meanwhile: twice the lifetime of the client's.
  for (let n = 0; n < 2; n++) {
    await gateway.api('map_publish', { channel: 'short:brief:1', key: 'alone', data: n })
    t.match(await watcher.push('pub'), { pub: { key: 'alone' } }, 'renewals are not pushed')
    t.match(await watcher.push('pub'), { pub: { key: 'alone', removed: true } })
  }
  t.strictSame(await keys('short:brief:1'), [client.connect.client])
})

t.test('new info of a client', async t => {
  const watcher = await connect(t)
  const client = await connect(t, 'anna', { info: { v: 1 }, exp: Math.floor(Date.now() / 1000) + 60 })
  await watcher.subscribe('who:room:info', { type: 2, phase: 2 })
  await client.subscribe('room:info')
  t.match(await watcher.push('pub'), { pub: { info: { conn_info: { v: 1 } } } })
  await client.call('refresh', { token: token({ sub: 'anna', info: { v: 2 } }) })
  t.match(await watcher.push('pub'), { pub: { key: client.connect.client, info: { conn_info: { v: 2 } } } })
})

t.test('keys of the clients of a killed worker are removed', async t => {
  const clients = await Promise.all(Array.from({ length: 8 }, () => connect(t)))
  for (const client of clients) {
    await client.subscribe('room:killed')
    await client.subscribe('cursors:1', { type: 1, phase: 2 })
    await client.call('publish', { channel: 'cursors:1', type: 1, data: 1 })
  }
  await until(async () => (await keys('who:room:killed')).length === 8)
  process.kill(gateway.workerPids[0], 'SIGKILL')
  const left = () =>
    clients
      .filter(({ ended }) => ended === null)
      .map(({ connect: { client } }) => client)
      .sort()
  await until(() => left().length < 8)
  for (const map of ['who:room:killed', 'cursors:1'])
    await until(async () => String(await keys(map)) === String(left()))
  t.pass()
})
