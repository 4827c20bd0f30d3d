// Pushes with the id of a channel instead of its name (docs/access.md).

import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Centrifuge } from 'centrifuge'
import { Centrifuge as ProtobufCentrifuge } from 'centrifuge/build/protobuf'
import { EventSource } from 'eventsource'
import t from 'tap'
import WebSocket from 'ws'
import { LongPollSocket } from '../../../client/long-poll-socket.js'
import { drivers } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'
import { until } from '../../kit/wait.js'
import { ProtobufClient } from '../transport/protobuf-client.js'
import { anonymous, history, open, SECRET, token, user } from './support.js'

const compact = { ...open, allow_channel_compaction: true }
const deltas = { allowed_delta_types: ['fossil'], delta_publish: true }
const FLAG = { flag: 1 }
const FILL = 'what stays the same from one publication to the next, '.repeat(4)

const config = {
  workers: 1,
  client: { allow_anonymous_connect_without_token: true, token: { hmac_secret_key: SECRET } },
  http_stream: { enabled: true },
  sse: { enabled: true },
  poll: { enabled: true },
  shared_poll: { hmac_secret_key: 'a secret of the tests, long enough' },
  channel: {
    proxy: { shared_poll_refresh: { endpoint: 'http://127.0.0.1:1/refresh' } },
    without_namespace: open,
    namespaces: [
      { name: 'compact', ...compact, join_leave: true, force_push_join_leave: true },
      { name: 'kept', ...compact, ...history, ...deltas, force_recovery: true },
      { name: 'batch', ...compact, ...deltas, keep_latest_publication: true, batch_max_delay: '20ms' },
      { name: 'map', ...compact, ...deltas, subscription_type: 'map', map: { mode: 'persistent' } },
      { name: 'poll', ...compact, subscription_type: 'shared_poll' },
    ],
  },
}

let last = 0
/** A new channel. @param {string} [namespace] */
const name = (namespace = 'compact') => `${namespace}:${++last}`

for (const driver of drivers) {
  t.test(driver, async t => {
    const gateway = await startGateway(t, { ...config, http_server: { driver } })
    /** @param {string} method @param {object} params */
    const api = async (method, params) => {
      const { error, result } = await gateway.api(method, params)
      if (error) throw new Error(`${method}: ${error.message}`)
      return result
    }
    /** @param {string} channel @param {any} [data] @param {object} [more] */
    const publish = (channel, data = 1, more = {}) => api('publish', { channel, data, ...more })

    t.test('clients with the flag get the id, others the name', async t => {
      const channel = name()
      const plain = await anonymous(t, gateway)
      t.equal((await plain.subscribe(channel, { flag: 2 })).subscribe.id, undefined)
      await plain.push('join')
      const [one, two] = [await anonymous(t, gateway), await anonymous(t, gateway)]
      const { id } = (await one.subscribe(channel, { flag: 3 })).subscribe
      t.type(id, 'number')
      t.ok(id > 0)
      await one.push('join')
      t.equal((await two.subscribe(channel, FLAG)).subscribe.id, id, 'one id for all')
      t.strictSame(Object.keys(await one.push('join')), ['id', 'join'])
      await two.push('join')
      await publish(channel, { n: 1 })
      await two.call('unsubscribe', { channel })
      t.strictSame(await one.push('pub'), { id, pub: { data: { n: 1 } } })
      t.match(await one.push('leave'), { id, leave: { info: { client: two.connect.client } } })
      for (let n = 0; n < 2; n++) t.match(await plain.push('join'), { channel })
      t.strictSame(await plain.push('pub'), { channel, pub: { data: { n: 1 } } })
      t.match(await plain.push('leave'), { channel })
    })

    t.test('an unsubscribe by the server API has the name', async t => {
      const channel = name()
      const client = await anonymous(t, gateway)
      await client.subscribe(channel, FLAG)
      await api('unsubscribe', { user: '', client: client.connect.client, channel })
      t.match(await client.push('unsubscribe'), { channel, unsubscribe: { code: 2000 } })
    })

    t.test('without the option, and in server-side subscriptions, pushes have the name', async t => {
      const channel = name()
      const client = await anonymous(t, gateway)
      t.equal((await client.subscribe('without', FLAG)).subscribe.id, undefined)
      const claims = { sub: 'u1', subs: { [channel]: {} } }
      const server = await user(t, gateway, claims, { subs: { [channel]: FLAG } })
      t.equal(server.connect.subs[channel].id, undefined)
      await publish('without')
      await publish(channel)
      t.strictSame(await client.push('pub'), { channel: 'without', pub: { data: 1 } })
      t.strictSame(await server.push('pub'), { channel, pub: { data: 1 } })
    })

    t.test('the server API takes a subscription over: pushes have the name', async t => {
      const channel = name()
      const client = await anonymous(t, gateway)
      await client.subscribe(channel, FLAG)
      await api('subscribe', { user: '', client: client.connect.client, channel })
      await client.push('subscribe')
      await publish(channel)
      t.strictSame(await client.push('pub'), { channel, pub: { data: 1 } })
    })

    t.test('the id stays when the filter of the backend changes', async t => {
      const channel = name()
      const client = await user(t, gateway)
      /** @param {string} val */
      const filter = val => token({ sub: 'u1', channel, server_tags_filter: { key: 'team', cmp: 'eq', val } })
      const { id } = (await client.subscribe(channel, { ...FLAG, token: filter('a') })).subscribe
      await client.call('sub_refresh', { channel, token: filter('b') })
      for (const team of ['a', 'b']) await publish(channel, team, { tags: { team } })
      t.strictSame(await client.push('pub'), { id, pub: { data: 'b', tags: { team: 'b' } } })
    })

    t.test('deltas and batches of compact and plain subscribers', async t => {
      for (const namespace of ['kept', 'batch']) {
        const channel = name(namespace)
        const [plain, client] = [await anonymous(t, gateway), await anonymous(t, gateway)]
        await plain.subscribe(channel, { delta: 'fossil' })
        const { id } = (await client.subscribe(channel, { delta: 'fossil', ...FLAG })).subscribe
        for (const n of [1, 2, 3]) await publish(channel, { FILL, n })
        for (const delta of [undefined, true, true]) {
          const [{ channel: to, pub }, push] = [await plain.push('pub'), await client.push('pub')]
          t.equal(to, channel)
          t.equal(pub.delta, delta, namespace)
          t.strictSame(push, { id, pub })
        }
      }
    })

    t.test('shared polls ignore the flag', async t => {
      const client = await anonymous(t, gateway)
      const { subscribe } = await client.subscribe(name('poll'), { ...FLAG, type: 4 })
      t.equal(subscribe.type, 4)
      t.equal(subscribe.id, undefined)
    })

    const { ws, url } = gateway
    const emulated = { emulationEndpoint: `${url}/emulation`, fetch, readableStream: ReadableStream }
    /** @type {[string, any, any, any][]} */
    const ways = [
      ['WebSocket', Centrifuge, ws, { websocket: WebSocket }],
      ['WebSocket, Protobuf', ProtobufCentrifuge, ws, { websocket: WebSocket }],
      [
        'HTTP streaming',
        Centrifuge,
        [{ transport: 'http_stream', endpoint: `${url}/connection/http_stream` }],
        emulated,
      ],
      [
        'SSE',
        Centrifuge,
        [{ transport: 'sse', endpoint: `${url}/connection/sse` }],
        { ...emulated, eventsource: EventSource },
      ],
      ['long-poll', Centrifuge, `${ws.replace('websocket', 'poll')}`, { websocket: LongPollSocket }],
    ]
    for (const [title, Client, endpoint, options] of ways)
      t.test(`the SDK: ${title}`, t => testSdk(t, { api, publish }, Client, endpoint, options))

    t.test('Protobuf clients need protobuf_compaction', async t => {
      const channel = name()
      const request = { channel, ...FLAG }
      const former = await ProtobufClient.connected(ws)
      t.teardown(() => former.close())
      t.equal((await former.call('subscribe', request)).subscribe.id, undefined)
      await reload(gateway, { protobuf_compaction: true })
      const client = await ProtobufClient.connected(ws)
      t.teardown(() => client.close())
      const { id } = (await client.call('subscribe', request)).subscribe
      t.ok(id > 0)
      await publish(channel)
      t.strictSame(await client.push('pub'), { id, pub: { data: Buffer.from('1') } })
      t.strictSame(await former.push('pub'), { channel, pub: { data: Buffer.from('1') } })
    })

    // If this fails, the SDK has been fixed: see `protobuf_compaction`.
    t.test('the JavaScript SDK drops compact publications in Protobuf', async t => {
      const client = new ProtobufCentrifuge(ws, { websocket: /** @type {any} */ (WebSocket) })
      t.teardown(() => client.disconnect())
      const got = []
      const subscriptions = [name(), 'without'].map(channel => {
        const subscription = client.newSubscription(channel)
        subscription.on('publication', ({ channel }) => got.push(channel))
        subscription.subscribe()
        return subscription
      })
      client.connect()
      await Promise.all(subscriptions.map(subscription => subscription.ready()))
      for (const { channel } of subscriptions) await publish(channel)
      await until(() => got.length > 0)
      t.strictSame(got, ['without'])
    })
  })
}

/** @param {any} gateway @param {object} channel changed options */
async function reload(gateway, channel) {
  const file = join(gateway.folder, 'config.json')
  const whole = JSON.parse(await readFile(file, 'utf8'))
  await writeFile(`${file}.new`, JSON.stringify({ ...whole, channel: { ...whole.channel, ...channel } }))
  await rename(`${file}.new`, file)
  gateway.process.kill('SIGHUP')
  await gateway.line((/** @type {any} */ { msg }) => msg === 'configuration reloaded')
}

/** @param {any} t @param {any} gateway @param {any} Client @param {any} endpoint @param {any} options */
async function testSdk(t, { api, publish }, Client, endpoint, options) {
  const json = Client === Centrifuge
  const client = new Client(endpoint, { minReconnectDelay: 1, maxReconnectDelay: 10, ...options })
  t.teardown(() => client.disconnect())
  /** @type {string[]} */
  const got = []
  let joins = 0
  const textOf = (/** @type {any} */ data) => (json ? JSON.stringify(data) : Buffer.from(data).toString())
  const channels = [name(), name('kept'), name('batch')]
  const subscriptions = channels.map(channel => {
    const subscription = client.newSubscription(channel, {
      minResubscribeDelay: 1,
      ...(channel.startsWith('compact:') ? {} : { delta: 'fossil' }),
    })
    subscription.on('publication', (/** @type {any} */ { data }) => got.push(`${channel} ${textOf(data)}`))
    subscription.on('join', () => joins++)
    subscription.subscribe()
    return subscription
  })
  const map = client.newMapSubscription(name('map'), { delta: 'fossil' })
  map.on('update', (/** @type {any} */ { key, data }) => got.push(`${key} ${textOf(data)}`))
  map.subscribe()
  const all = [...subscriptions, map]

  /** @type {string[]} */
  const ids = []
  client.on('connected', (/** @type {any} */ context) => ids.push(context.client))
  client.connect()
  const ready = () => Promise.all(all.map(subscription => subscription.ready()))
  await ready()
  const isCompact = () => all.map(({ _id }) => _id > 0)
  const expected = Array(all.length).fill(json)
  t.strictSame(isCompact(), expected)
  await until(() => joins === 1)

  const round = async (/** @type {number} */ n) => {
    const data = { FILL, n }
    for (const channel of channels) await publish(channel, data)
    await api('map_publish', { channel: map.channel, key: 'key', data })
    await until(() => got.length >= all.length)
    t.strictSame(
      got.splice(0).sort(),
      [...channels, 'key'].map(head => `${head} ${JSON.stringify(data)}`).sort(),
    )
  }
  for (const n of [1, 2, 3]) await round(n)
  for (const subscription of all.slice(1))
    t.equal(subscription.deltaStats().numDeltaPayloads, 2, subscription.channel)

  await api('disconnect', { user: '', client: ids[0], disconnect: { code: 3000, reason: 'again' } })
  await until(() => ids.length === 2)
  await ready()
  t.strictSame(isCompact(), expected, 'after a reconnect')
  await round(4)

  all[0].unsubscribe()
  t.equal(all[0]._id, 0)
  all[0].subscribe()
  await ready()
  t.strictSame(isCompact(), expected, 'after an unsubscribe')
  await round(5)
  await api('subscribe', { user: '', client: ids[1], channel: channels[0] })
  await round(6)
}
