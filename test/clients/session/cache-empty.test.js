// The proxy cache_empty, seen by clients and a real backend; and reads shared by singleflight.

import { createServer } from 'node:http'
import t from 'tap'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { until } from '../../kit/wait.js'
import { anonymous, error, history, open, SECRET, user } from './support.js'

/** Requests by channel. @type {Map<string, any[]>} */
const requests = new Map()
/** Called before the answer, by channel. @type {Map<string, (channel: string) => any>} */
const before = new Map()
const backend = createServer(async (request, response) => {
  let body = ''
  for await (const chunk of request) body += chunk
  const fields = JSON.parse(body)
  const { channel } = fields
  requests.set(channel, [...(requests.get(channel) ?? []), fields])
  const populated = (await before.get(channel)?.(channel)) ?? false
  response.end(JSON.stringify({ result: { populated } }))
})
await new Promise(resolve => backend.listen(0, '127.0.0.1', () => resolve(undefined)))
t.teardown(() => backend.close())
const { port } = /** @type {import('node:net').AddressInfo} */ (backend.address())
const calls = (/** @type {string} */ channel) => requests.get(channel)?.length ?? 0

const cached = {
  ...open,
  ...history,
  force_recovery: true,
  force_recovery_mode: 'cache',
  auto_cache_recover: true,
  allow_tags_filter: true,
  allowed_delta_types: ['fossil'],
  cache_empty_proxy_enabled: true,
}
const gateway = await startGateway(t, {
  workers: 1,
  uni_websocket: { enabled: true },
  rpc: { ping: { enabled: true } },
  singleflight: { enabled: true },
  client: { token: { hmac_secret_key: SECRET }, allow_anonymous_connect_without_token: true },
  proxies: [{ name: 'down', endpoint: 'http://127.0.0.1:1/down', breaker: { failures: 0 } }],
  channel: {
    proxy: { cache_empty: { endpoint: `http://127.0.0.1:${port}/`, timeout: '20s' } },
    without_namespace: { ...open, ...history },
    namespaces: [
      { name: 'cache', ...cached },
      { name: 'down', ...cached, cache_empty_proxy_name: 'down' },
      { name: 'asked', ...cached, auto_cache_recover: false },
    ],
  },
})

const publish = (/** @type {string} */ channel, /** @type {object} */ more = {}) =>
  gateway.api('publish', { channel, data: { from: 'backend' }, ...more })
/** Publishes, and answers `populated: true`. @param {string} channel */
async function populate(channel) {
  await publish(channel)
  return true
}

t.test('a subscriber gets what the backend has published to the empty channel', async t => {
  const channel = 'cache:filled'
  before.set(channel, populate)
  const client = await anonymous(t, gateway)
  const { subscribe } = await client.subscribe(channel)
  t.match(subscribe, { recovered: true, publications: [{ offset: 1, data: { from: 'backend' } }] })
  t.equal(subscribe.publications.length, 1)
  t.strictSame(requests.get(channel), [{ channel }])
  await publish(channel)
  t.match((await client.push('pub')).pub, { offset: 2 }, 'and later ones, once')
  const { presence } = (await gateway.api('presence', { channel })).result
  t.strictSame(Object.keys(presence), [client.connect.client])
})

t.test('with a publication in the channel, the backend is not called', async t => {
  const channel = 'cache:has'
  await publish(channel, { tags: { team: 'a' } })
  const client = await anonymous(t, gateway)
  t.match((await client.subscribe(channel)).subscribe, { recovered: true, publications: [{ offset: 1 }] })
  const other = await anonymous(t, gateway)
  const tf = { key: 'team', cmp: 'eq', val: 'b' }
  const { subscribe } = await other.subscribe(channel, { tf })
  t.equal(subscribe.recovered, undefined)
  t.equal(calls(channel), 0, 'nor if a filter hides it')
})

t.test(
  'without recovery it is not called; a client at the position of the channel has lost nothing',
  async t => {
    const channel = 'asked:1'
    const [client, other] = [await anonymous(t, gateway), await anonymous(t, gateway)]
    t.notOk((await client.subscribe(channel)).subscribe.recovered)
    t.equal(calls(channel), 0)
    before.set(channel, populate)
    const recover = { recover: true, offset: 0, epoch: '' }
    t.match((await other.subscribe(channel, recover)).subscribe, {
      recovered: true,
      publications: [{ offset: 1 }],
    })
    t.equal(calls(channel), 1)
    const { epoch, offset } = (await gateway.api('history', { channel })).result
    await gateway.api('history_remove', { channel })
    const third = await anonymous(t, gateway)
    t.match((await third.subscribe(channel, { recover: true, offset, epoch })).subscribe, { recovered: true })
    t.equal(calls(channel), 1)
  },
)

t.test('a backend that does not publish: the subscription begins empty', async t => {
  const channel = 'cache:nothing'
  const client = await anonymous(t, gateway)
  const { subscribe } = await client.subscribe(channel)
  t.notOk(subscribe.recovered)
  t.equal(calls(channel), 1)
  await publish(channel)
  t.match((await client.push('pub')).pub, { offset: 1 })
})

t.test('a backend that cannot be reached is error 100; the client may try again', async t => {
  const channel = 'down:1'
  const client = await anonymous(t, gateway)
  const refused = error(100, 'internal server error', true)
  for (let i = 0; i < 2; i++) t.strictSame((await client.subscribe(channel)).error, refused)
  t.strictSame((await gateway.api('presence', { channel })).result.presence, {}, 'nothing is left')
  t.strictSame((await gateway.api('channels', { pattern: 'down:*' })).result.channels, {})
  await publish(channel)
  t.match((await client.subscribe(channel)).subscribe, { recovered: true, publications: [{ offset: 1 }] })
})

t.test('one call for all that subscribe at once', async t => {
  const channel = 'cache:many'
  const count = 100
  let release = () => {}
  const held = new Promise(resolve => (release = () => resolve(undefined)))
  before.set(channel, () => held.then(() => populate(channel)))
  const clients = await Promise.all(Array.from({ length: count }, () => anonymous(t, gateway)))
  const replies = clients.map(client => client.subscribe(channel))
  // Their connections end while they wait.
  const leaving = await Promise.all([anonymous(t, gateway), anonymous(t, gateway)])
  for (const client of leaving) client.send({ id: 99, subscribe: { channel } })
  const waiting = async () => (await gateway.api('presence_stats', { channel })).result.num_clients
  await until(async () => (await waiting()) === count + leaving.length)
  await Promise.all(leaving.map(client => client.close()))
  release()
  for (const { subscribe } of await Promise.all(replies))
    t.match(subscribe, { recovered: true, publications: [{ offset: 1 }] })
  t.equal(calls(channel), 1)
  await until(async () => (await waiting()) === count)
  await publish(channel)
  for (const client of clients) t.match((await client.push('pub')).pub, { offset: 2 })
})

t.test('server-side subscriptions of a token, of a one-way client and of the API', async t => {
  const channel = 'cache:server'
  before.set(channel, populate)
  const client = await user(t, gateway, { sub: 'u1', channels: [channel] })
  t.match(client.connect.subs[channel], { recovered: true, publications: [{ offset: 1 }] })

  const ofApi = 'cache:api'
  before.set(ofApi, populate)
  await gateway.api('subscribe', { user: 'u1', channel: ofApi })
  t.match((await client.push('subscribe')).subscribe, { recoverable: true })
  t.match(await client.push('pub'), { channel: ofApi, pub: { offset: 1 } })

  const oneWay = 'cache:one-way'
  before.set(oneWay, populate)
  const { ws } = gateway
  const listener = await RawClient.open(ws.replace('websocket', 'uni_websocket'))
  t.teardown(() => listener.socket.terminate())
  listener.send({ subs: { [oneWay]: {} } })
  const { connect } = await listener.next()
  t.match(connect.subs[oneWay], { recovered: true, publications: [{ offset: 1 }] })
})

t.test('shared reads see the publications that the client has made before', async t => {
  const channel = 'busy'
  const readers = await Promise.all(Array.from({ length: 10 }, () => anonymous(t, gateway)))
  let done = false
  const reading = readers.map(async client => {
    while (!done) await client.call('history', { channel, limit: -1 })
  })
  const writer = await anonymous(t, gateway)
  for (let i = 1; i <= 30; i++) {
    writer.send(
      { id: 1000 + i, publish: { channel, data: i } },
      { id: 2000 + i, history: { channel, limit: -1 } },
    )
    const reply = await writer.next(({ id }) => id === 2000 + i)
    t.equal(reply.history.publications.at(-1).data, i)
  }
  done = true
  await Promise.all(reading)
})

t.test('user status is off: the API refuses, and the rpc is an unknown method', async t => {
  for (const method of ['update_user_status', 'get_user_status', 'delete_user_status'])
    t.match(await gateway.api(method, { users: ['a'] }), { error: error(108, 'not available') })
  const client = await user(t, gateway)
  const refusals = []
  for (const method of ['update_user_status', 'unknown'])
    refusals.push((await client.call('rpc', { method, data: {} })).error)
  t.strictSame(refusals[0], error(104, 'method not found'))
  t.strictSame(refusals[1], refusals[0])
})
