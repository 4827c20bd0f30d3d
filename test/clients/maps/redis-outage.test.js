// Maps while Redis is away: temporary errors, and afterwards clients have the state again.

import t from 'tap'
import { startNode } from '../../channels/broker/redis/nodes.js'
import { RawClient } from '../../kit/raw-client.js'
import { needsRedis, startRedis } from '../../kit/servers/redis.js'
import { TcpProxy } from '../../kit/tcp-proxy.js'
import { until } from '../../kit/wait.js'
import { MapWatcher, namespaces, stateOf } from './traffic.js'

needsRedis(t)

const redis = await startRedis(t)
const proxy = await TcpProxy.start(t, redis.port)
const PRESENCE = {
  ...{
    subscription_type: 'map_clients',
    allow_subscribe_for_client: true,
    allow_subscribe_for_anonymous: true,
  },
  map: { mode: 'ephemeral', key_ttl: '10m' },
}
const OWN = {
  mode: 'persistent',
  ...{ client_key: 'client_id', remove_client_on_unsubscribe: true },
  ...{ allow_publish_for_subscriber: true, allow_publish_for_anonymous: true },
}
const config = {
  channel: {
    namespaces: [
      ...namespaces,
      { ...namespaces[0], name: 'own', map: OWN },
      {
        ...{ name: 'room', allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true },
        map_clients_presence_channel_prefix: 'who:',
      },
      { name: 'who', ...PRESENCE },
    ],
  },
}
const options = { workers: 1, config, redis: { connect_timeout: '10s', io_timeout: '2s' } }
const [cut, whole] = await Promise.all([
  startNode(t, `redis://127.0.0.1:${proxy.port}`, options),
  startNode(t, redis.address, options),
])

/** The primary has a connection of its own. @param {string} text */
const linesOfWorker = text =>
  cut.lines.filter(({ msg, worker }) => msg === text && worker !== undefined).length

let outages = 0
async function outage() {
  proxy.refuses = true
  proxy.cut()
  outages++
  await until(() => linesOfWorker('redis is unreachable') === outages, 'the outage')
}
async function over() {
  proxy.refuses = false
  await until(() => linesOfWorker('redis is reachable again') === outages, 'the end of the outage')
}

/** @param {string} channel @param {number} count */
async function fill(channel, count) {
  for (let n = 0; n < count; n++) await whole.api('map_publish', { channel, key: `k${n}`, data: n })
}

const TEMPORARY = { error: { code: 100, temporary: true } }

for (const { name } of namespaces)
  t.test(`${name}: subscribers have the state after an outage`, async t => {
    const channel = `${name}:outage`
    await fill(channel, 5)
    const watcher = new MapWatcher(t, cut.ws, channel)
    await watcher.ready()
    t.equal(watcher.view.size, 5)
    await outage()
    await whole.api('map_remove', { channel, key: 'k1' })
    await whole.api('map_publish', { channel, key: 'k2', data: 22 })
    await whole.api('map_publish', { channel, key: 'new', data: 1 })
    await over()
    const state = await stateOf(whole, channel)
    await until(
      () => watcher.has(state),
      () => `${JSON.stringify([...state])}, has ${JSON.stringify([...watcher.view])}`,
    )
    t.same(watcher.faults, [])
    await whole.api('map_remove', { channel, key: 'k2' })
    await until(() => !watcher.view.has('k2'), 'changes after it')
    if (name !== 'ephemeral') t.equal(watcher.syncs, 1, 'without reading the state again')
  })

for (const { name } of namespaces)
  t.test(`${name}: an outage between two pages`, async t => {
    const channel = `${name}:pages`
    await fill(channel, 9)
    const client = await RawClient.connected(cut.ws)
    t.teardown(() => client.socket.terminate())
    const first = await client.subscribe(channel, { type: 1, phase: 2, limit: 3 })
    const { cursor, offset, epoch } = first.subscribe
    await outage()
    const next = { type: 1, phase: 2, limit: 3, cursor, offset, epoch }
    t.match(await client.subscribe(channel, next), TEMPORARY)
    t.match(await client.subscribe(channel, { type: 1, phase: 2 }), TEMPORARY, 'from the start')
    const watcher = new MapWatcher(t, cut.ws, channel)
    await until(() => watcher.errors.some(({ code }) => code === 100), 'the SDK to see it')
    await over()
    await watcher.ready()
    t.equal(watcher.view.size, 9)
    t.same(watcher.faults, [])
    t.match(await client.subscribe(channel, { type: 1, phase: 2 }), { subscribe: { state: { length: 9 } } })
  })

t.test('changes of an ephemeral map that a catch-up missed', async t => {
  const channel = 'ephemeral:missed'
  await fill(channel, 9)
  const client = await RawClient.connected(cut.ws)
  t.teardown(() => client.socket.terminate())
  const { cursor } = (await client.subscribe(channel, { type: 1, phase: 2, limit: 3 })).subscribe
  await outage()
  await whole.api('map_remove', { channel, key: 'k0' })
  await over()
  // Its worker has the subscription again, and its client learns that changes are missing.
  await until(async () => {
    const other = await RawClient.connected(cut.ws)
    const { subscribe } = await other.subscribe('ephemeral:other', { type: 1, phase: 2 })
    other.socket.terminate()
    return subscribe
  })
  t.match(await client.subscribe(channel, { type: 1, phase: 2, limit: 3, cursor }), TEMPORARY)
  const { subscribe } = await client.subscribe(channel, { type: 1, phase: 2 })
  t.equal(subscribe.state.length, 8)
})

t.test('clients that come and go leave nothing in Redis', async t => {
  const sizes = async () => {
    const keys = await redis.call('KEYS', 'halley.owned.*')
    return Promise.all(keys.map(key => redis.call('SCARD', key)))
  }
  for (let n = 0; n < 3; n++) {
    const clients = await Promise.all(Array.from({ length: 5 }, () => RawClient.connected(whole.ws)))
    for (const client of clients) {
      await client.subscribe('room:1')
      await client.subscribe('own:1', { type: 1, phase: 2 })
      await client.call('publish', { channel: 'own:1', type: 1, data: 1 })
    }
    t.same(await sizes(), [10], 'its keys are those of present clients')
    for (const client of clients.slice(0, 2)) {
      await client.call('unsubscribe', { channel: 'own:1' })
      await client.call('unsubscribe', { channel: 'room:1' })
    }
    for (const client of clients) client.socket.terminate()
    await until(async () => (await sizes()).length === 0)
    for (const channel of ['own:1', 'who:room:1']) t.equal((await stateOf(whole, channel)).size, 0)
  }
})

t.test('versions of removed keys leave nothing in Redis', async t => {
  const put = (key, version) => whole.api('map_publish', { channel: 'persistent:v', key, data: 1, version })
  for (let n = 0; n < 20; n++) await put(`k${n}`, 5)
  t.equal(await redis.call('HLEN', 'halley.map-versions.persistent:v'), 20)
  for (let n = 0; n < 20; n++) await whole.api('map_remove', { channel: 'persistent:v', key: `k${n}` })
  t.equal(await redis.call('EXISTS', 'halley.map-versions.persistent:v'), 0)
  t.match(await put('k1', 1), { result: { offset: 41 } })
})
