// `connections` of the server API, labels of connections, and calls that select by labels (docs/access.md).

import t from 'tap'
import {
  anonymous,
  at,
  error,
  open,
  opened,
  roundTrip,
  token,
  tokenClient,
  user,
} from '../../clients/session/support.js'
import { ProtobufClient } from '../../clients/transport/protobuf-client.js'
import { testdir } from '../../kit/folders.js'
import { startGateway } from '../../kit/gateway.js'
import { StreamClient } from '../../kit/stream-client.js'
import { until } from '../../kit/wait.js'
import { Backend, result } from '../hooks/backend.js'

const backend = await Backend.start(t)
const proxied = event => ({ endpoint: `${backend.url}/${event}` })
const gateway = await startGateway(t, {
  client: tokenClient({
    subscribe_to_user_personal_channel: { enabled: true, personal_channel_namespace: 'own' },
    proxy: { connect: { enabled: true, ...proxied('connect') } },
  }),
  rpc: { proxy: { endpoint: `${backend.url}/rpc` }, without_namespace: { proxy_enabled: true } },
  uni_sse: { enabled: true },
  channel: {
    proxy: {
      subscribe: proxied('subscribe'),
      publish: proxied('publish'),
      sub_refresh: proxied('sub_refresh'),
    },
    without_namespace: open,
    namespaces: [
      { name: 'own', ...open },
      { name: 'mine', allow_user_limited_channels: true },
      {
        name: 'asked',
        subscribe_proxy_enabled: true,
        publish_proxy_enabled: true,
        sub_refresh_proxy_enabled: true,
      },
    ],
  },
})
const MAIN = '/connection/uni_sse'

/** Connect results by `data` of the client. @type {Record<string, object>} */
const answers = {}
backend.answer = ({ event, json }) => {
  if (event === 'connect') return result(answers[json.data] ?? { user: '' })
  return result(event === 'rpc' ? { data: 1 } : {})
}
/** A client that the connect proxy admits. @param {object} answer @param {object} [request] */
async function admitted(t, answer, request = {}) {
  const data = `client ${Object.keys(answers).length}`
  answers[data] = answer
  return anonymous(t, gateway, { data, ...request })
}

const list = async params => (await gateway.api('connections', params)).result
const idOf = client => client.connect.client
/** The connection of one client. */
async function of(client) {
  const { connections } = await list({ where: { key: 'client', cmp: 'eq', val: idOf(client) } })
  return connections[idOf(client)]
}
const ids = async params => Object.keys((await list(params)).connections)
const sorted = (...clients) => clients.map(idOf).sort()
const eq = (key, val) => ({ key, cmp: 'eq', val })
const bad = fault => ({ error: { code: 107, message: `bad request: ${fault}` } })
const FORCED = { code: 3503, reason: 'force disconnect' }

/** Pongs are answered, as by SDKs. @param {import('../../kit/raw-client.js').RawClient} client */
function answerPings(client) {
  client.socket.on('message', data => {
    if (data.toString() === '{}') client.sendText('{}')
  })
  return client
}

t.test('connections are described', async t => {
  const claims = { sub: 'd1', jti: 'a', iat: 5, meta: { n: 1, deep: { x: 'y' } }, labels: { tier: 'pro' } }
  const before = Date.now()
  const client = await user(t, gateway, claims, { name: 'shop', version: '1.2' })
  await client.subscribe('news')
  await client.subscribe('$priv', { token: token({ sub: 'd1', channel: '$priv', jti: 's', iat: 7 }) })
  const { connected_at_ms: connected, ...rest } = await of(client)
  t.strictSame(rest, {
    app_name: 'shop',
    app_version: '1.2',
    transport: 'websocket',
    protocol: 'json',
    user: 'd1',
    state: {
      channels: { 'own:#d1': { source: 9 }, news: { source: 6 }, $priv: { source: 3 } },
      connection_token: { uid: 'a', issued_at: 5 },
      subscription_tokens: { $priv: { uid: 's', issued_at: 7 } },
      meta: { n: 1, deep: { x: 'y' } },
    },
    ping_pong_latency_ms: -1,
    labels: { tier: 'pro' },
  })
  t.ok(connected >= before - 1 && connected <= Date.now() + 1)
  const binary = await ProtobufClient.connected(gateway.ws, { token: token({ sub: 'd2', iat: 6 }) })
  t.match(await of(binary), {
    protocol: 'protobuf',
    ping_pong_latency_ms: -1,
    state: { connection_token: { uid: undefined, issued_at: 6 } },
    labels: undefined,
  })
  await binary.close()
})

t.test('sources of subscriptions', async t => {
  const caps = [{ channels: ['cap:x', 'caps'], allow: ['sub'] }]
  const subs = { given: {} }
  const client = await user(t, gateway, { sub: 'f1', caps, subs })
  for (const channel of ['mine:#f1', 'asked:a', 'open']) t.ok((await client.subscribe(channel)).subscribe)
  await gateway.api('subscribe', { user: 'f1', channel: 'by-api' })
  await client.push('subscribe')
  const { channels } = (await of(client)).state
  t.strictSame(channels, {
    given: { source: 1 },
    'own:#f1': { source: 9 },
    'mine:#f1': { source: 5 },
    'asked:a': { source: 4 },
    open: { source: 6 },
    'by-api': { source: 10 },
  })
  const refused = await admitted(t, {
    user: 'f2',
    subs: { joined: {} },
    caps: [{ channels: ['mine:c'], allow: ['sub'] }],
  })
  t.ok((await refused.subscribe('mine:c')).subscribe)
  t.strictSame((await of(refused)).state.channels, {
    joined: { source: 2 },
    'own:#f2': { source: 9 },
    'mine:c': { source: 11 },
  })
  const request = { token: token({ sub: 'f3' }), subs: { wanted: {} } }
  const sse = await StreamClient.open(
    gateway.url,
    `${MAIN}?cf_connect=${encodeURIComponent(JSON.stringify(request))}`,
  )
  t.teardown(() => sse.request.destroy())
  await sse.next(message => message.connect)
  const [found] = Object.values((await list({ user: 'f3' })).connections)
  t.match(found, { transport: 'uni_sse', state: { channels: { wanted: { source: 8 } } } })
})

t.test('filters select, and all of them must match', async t => {
  const pro = await user(t, gateway, {
    sub: 'g1',
    labels: { tier: 'pro', n: '10' },
    meta: { org: { id: 7 } },
  })
  const free = await user(t, gateway, { sub: 'g1', labels: { tier: 'free' } }, { name: 'js' })
  const none = await user(t, gateway, { sub: 'g1' })
  await pro.subscribe('g:a'.replace(':', '_'))
  await free.subscribe('g_b')
  const all = sorted(pro, free, none)
  const among = async params => (await ids({ user: 'g1', ...params })).map(id => id)
  t.strictSame(await ids({ user: 'g1' }), all, 'in the order of their ids')
  const tier = val => ({ label_filter: eq('tier', val) })
  t.strictSame(await among(tier('pro')), sorted(pro))
  t.strictSame(await among({ label_filter: { key: 'tier', cmp: 'neq', val: 'pro' } }), sorted(free, none))
  t.strictSame(await among({ label_filter: { key: 'n', cmp: 'gt', val: '9' } }), sorted(pro))
  t.strictSame(await ids({ user: 'nobody', ...tier('pro') }), [])
  const where = async filter => among({ where: filter })
  t.strictSame(await where({ key: 'channel', cmp: 'sw', val: 'g_' }), sorted(pro, free))
  t.strictSame(await where({ key: 'channel', cmp: 'neq', val: 'g_a' }), sorted(free, none))
  t.strictSame(await where(eq('meta.org.id', '7')), sorted(pro))
  t.strictSame(await where({ key: 'meta.org', cmp: 'ex' }), [], 'not a scalar')
  t.strictSame(await where(eq('app_name', 'js')), sorted(free))
  t.strictSame(await where({ op: 'not', nodes: [eq('transport', 'websocket')] }), [])
  const either = { op: 'or', nodes: [eq('client', idOf(pro)), eq('client', idOf(none))] }
  t.strictSame(await where(either), sorted(pro, none))
  t.strictSame(await among({ where: either, ...tier('pro') }), sorted(pro))
  const part = await list({ user: 'g1', limit: 2 })
  t.strictSame(Object.keys(part.connections), all.slice(0, 2))
  t.match(part, { total: 3, truncated: true })
  t.match(await list({ user: 'g1', limit: 3 }), { total: 3, truncated: false })
})

t.test('invalid requests are refused', async t => {
  t.strictSame(await gateway.api('connections'), bad('user, label_filter or where is required'))
  const refused = { error: error(108, 'not available') }
  t.strictSame(await gateway.api('connections', { user: 'x', expression: 'true' }), refused)
  for (const filter of [{}, { key: 'a', cmp: 'like', val: 'x' }, [], 'x', { op: 'and' }]) {
    t.strictSame(
      await gateway.api('connections', { label_filter: filter }),
      bad('label_filter is not a valid filter'),
    )
    t.strictSame(await gateway.api('connections', { where: filter }), bad('where is not a valid filter'))
    for (const method of ['disconnect', 'refresh', 'unsubscribe', 'subscribe'])
      t.strictSame(
        await gateway.api(method, { channel: 'c', all_users: true, label_filter: filter }),
        bad('label_filter is not a valid filter'),
      )
  }
  for (const key of ['users', 'meta', ''])
    t.match(await gateway.api('connections', { where: eq(key, 'x') }), { error: { code: 107 } })
  for (const limit of [-1, 10_001])
    t.strictSame(await gateway.api('connections', { user: 'x', limit }), bad('limit must be from 1 to 10000'))
})

t.test('calls select by labels, of one user or of all', async t => {
  const pro = { labels: { plan: 'pro' } }
  const a = await user(t, gateway, { sub: 'h1', ...pro })
  const b = await user(t, gateway, { sub: 'h2', ...pro })
  const free = await user(t, gateway, { sub: 'h1', labels: { plan: 'free' } })
  const nobody = await user(t, gateway, { sub: '', ...pro })
  const label_filter = eq('plan', 'pro')
  const subscribed = async client => 'given' in ((await of(client)).state.channels ?? {})

  await gateway.api('subscribe', { all_users: true, label_filter, channel: 'given' })
  for (const client of [a, b, nobody]) await client.push('subscribe')
  t.notOk(await subscribed(free))
  await gateway.api('unsubscribe', { user: 'h1', label_filter, channel: 'given' })
  t.match(await a.push('unsubscribe'), { channel: 'given', unsubscribe: { code: 2000 } })
  t.ok((await subscribed(b)) && (await subscribed(nobody)))
  await gateway.api('unsubscribe', { label_filter, channel: 'given' })
  await nobody.push('unsubscribe')
  t.ok(await subscribed(b), 'without all_users, no user is the anonymous one')
  await gateway.api('refresh', { all_users: true, label_filter, expire_at: at(3600) })
  for (const client of [a, b, nobody]) t.match(await client.push('refresh'), { refresh: { ttl: Number } })

  await gateway.api('disconnect', { label_filter })
  t.strictSame(await nobody.closed, FORCED)
  await roundTrip(b)
  await gateway.api('disconnect', { all_users: true, label_filter: eq('plan', 'other') })
  await gateway.api('disconnect', { all_users: true, label_filter })
  for (const client of [a, b]) t.strictSame(await client.closed, FORCED)
  await roundTrip(free)
  t.strictSame(free.messages, [], 'another label')
  await gateway.api('disconnect', { all_users: true, client: idOf(free) })
  t.strictSame(await free.closed, FORCED)
})

t.test('labels come from the token or the connect proxy, and reach later proxy calls', async t => {
  const labels = { tier: 'pro', __proto__x: '', ü: 'ä' }
  const client = await admitted(t, { user: 'l1', labels })
  t.strictSame((await of(client)).labels, labels)
  await client.subscribe('asked:x')
  await client.call('publish', { channel: 'asked:x', data: 1 })
  await client.call('rpc', { method: 'm', data: 1 })
  const later = backend.requests.filter(({ json }) => json.user === 'l1')
  t.strictSame(
    later.map(({ event, json }) => [event, json.labels]),
    ['subscribe', 'publish', 'rpc'].map(event => [event, labels]),
  )
  const refreshed = await user(t, gateway, { sub: 'l0', labels, jti: 'first' })
  const next = token({ sub: 'l0', labels: { tier: 'free' }, jti: 'second', meta: 'new', exp: at(600) })
  t.ok((await refreshed.call('refresh', { token: next })).refresh)
  t.match(
    await of(refreshed),
    {
      labels,
      state: { connection_token: { uid: 'second' }, meta: 'new' },
    },
    'a refresh replaces the rest',
  )
  const plain = await user(t, gateway, { sub: 'l2' })
  await plain.subscribe('asked:y')
  const { json } = backend.requests.at(-1) ?? {}
  t.equal(json.user, 'l2')
  t.notOk('labels' in json)

  const many = Object.fromEntries(Array.from({ length: 33 }, (_, n) => [`l${n}`, '']))
  for (const wrong of [
    many,
    { a: 1 },
    { '': 'x' },
    { a: 'x'.repeat(257) },
    { ['x'.repeat(65)]: '' },
    [],
    'x',
  ]) {
    const refused = await opened(t, gateway, {
      id: 1,
      connect: { token: token({ sub: 'l3', labels: wrong }) },
    })
    t.strictSame(await refused.closed, { code: 3500, reason: 'invalid token' })
    answers.wrong = { user: 'l3', labels: wrong }
    const failed = await opened(t, gateway, { id: 1, connect: { data: 'wrong' } })
    t.match(await failed.next(), { error: error(100, 'internal server error', true) })
  }
})

t.test('hooks have the labels, and replace those of the token', async t => {
  const dir = testdir(t, {
    'hooks.mjs': `
      export const connect = ({ token, labels }) => token.user === 'two' ? { labels: { from: 'hook', had: labels.tier } } : undefined
      export const rpc = ({ labels, meta }) => ({ labels, meta })
    `,
  })
  const hooked = await startGateway(t, {
    workers: 1,
    hooks: { module: `${dir}/hooks.mjs` },
    client: tokenClient({ keep_connection_details: false, ping_interval: '1s', pong_timeout: '900ms' }),
  })
  const claims = { labels: { tier: 'pro' }, meta: { m: 1 } }
  const one = answerPings(await user(t, hooked, { sub: 'one', jti: 'j', ...claims }, { name: 'n' }))
  const two = answerPings(await user(t, hooked, { sub: 'two', ...claims }))
  const seen = async client => (await client.call('rpc', { method: '', data: 1 })).rpc.data
  t.strictSame(await seen(one), { labels: { tier: 'pro' }, meta: { m: 1 } })
  t.strictSame(await seen(two), { labels: { from: 'hook', had: 'pro' }, meta: { m: 1 } })
  const found = async () => (await hooked.api('connections', { user: 'one' })).result.connections[idOf(one)]
  await until(async () => (await found()).ping_pong_latency_ms >= 0)
  const { ping_pong_latency_ms: latency, ...details } = await found()
  t.ok(latency < 900)
  t.match(details, {
    app_name: undefined,
    state: { channels: {}, connection_token: undefined, meta: undefined },
    labels: { tier: 'pro' },
  })
  const kept = await hooked.api('connections', { where: eq('meta.m', '1') })
  t.strictSame(kept, { error: error(108, 'not available') }, 'details are not kept')
})
