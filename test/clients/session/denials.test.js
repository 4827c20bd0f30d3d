// block_user, unblock_user, revoke_token, invalidate_user_tokens (docs/access.md), on one node with two workers.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Centrifuge } from 'centrifuge'
import t from 'tap'
import WebSocket from 'ws'
import { Backend, result } from '../../backends/hooks/backend.js'
import { testdir } from '../../kit/folders.js'
import { startGateway } from '../../kit/gateway.js'
import { PollClient } from '../../kit/poll-client.js'
import { RawClient } from '../../kit/raw-client.js'
import { StreamClient } from '../../kit/stream-client.js'
import { clients as clientsOf, poll } from '../../kit/uni-poll-client.js'
import { until, within } from '../../kit/wait.js'
import { anonymous, at, error, open, opened, roundTrip, token, tokenClient, user } from './support.js'

const DENIED = { code: 3507, reason: 'permission denied' }
const INVALIDATED = { code: 3014, reason: 'state invalidated' }
const INVALID = { code: 3500, reason: 'invalid token' }
const UNSUBSCRIBED = { code: 2502, reason: 'state invalidated' }
const REVOKED = error(109, 'token revoked')
const DONE = { result: {} }

const folder = await testdir(t)
const backend = await Backend.start(t)
const one_way = ['uni_websocket', 'uni_sse', 'uni_http_stream', 'uni_poll']
const gateway = await startGateway(t, {
  engine: { memory: { snapshot_file: join(folder, 'snapshot') } },
  client: tokenClient({ proxy: { connect: { enabled: true, endpoint: `${backend.url}/connect` } } }),
  prometheus: { enabled: true },
  user_block: { max_entries: 8 },
  channel: {
    namespaces: [
      { name: 'kept', ...open, history_size: 10, history_ttl: '60s', force_recovery: true },
      { name: 'map', subscription_type: 'map', map: { mode: 'persistent', min_page_size: 1 } },
    ],
    without_namespace: open,
  },
  ...Object.fromEntries([...one_way, 'http_stream', 'sse', 'poll'].map(name => [name, { enabled: true }])),
})

/** @param {string} method @param {object} params */
const call = async (method, params) => t.strictSame(await gateway.api(method, params), DONE, method)

/** What a client that may not connect sees, by transport. @type {Record<string, (token: string) => Promise<any>>} */
const refusals = {
  async websocket(token) {
    const client = await opened(t, gateway, { id: 1, connect: { token } })
    return client.closed
  },
  http_stream: token => refusedStream('http_stream', token),
  sse: token => refusedStream('sse', token),
  async poll(token) {
    const client = await PollClient.open(gateway)
    await client.send({ id: 1, connect: { token } })
    return (await client.push('disconnect')).disconnect
  },
  async uni_websocket(token) {
    const client = await RawClient.open(gateway.ws.replace('websocket', 'uni_websocket'))
    client.send({ token })
    return client.closed
  },
  async uni_sse(token) {
    const query = encodeURIComponent(JSON.stringify({ token }))
    const client = await StreamClient.open(gateway.url, `/connection/uni_sse?cf_connect=${query}`)
    return (await client.next()).disconnect
  },
  async uni_http_stream(token) {
    const options = { method: 'POST', body: JSON.stringify({ token }) }
    const client = await StreamClient.open(gateway.url, '/connection/uni_http_stream', options)
    return (await client.next()).disconnect
  },
}

/** @param {'http_stream' | 'sse'} transport @param {string} token */
async function refusedStream(transport, token) {
  const command = JSON.stringify({ id: 1, connect: { token } })
  const client =
    transport === 'sse'
      ? await StreamClient.open(gateway.url, `/connection/sse?cf_connect=${encodeURIComponent(command)}`)
      : await StreamClient.open(gateway.url, '/connection/http_stream', { method: 'POST', body: command })
  return (await client.push('disconnect')).disconnect
}

/** @param {RawClient} client @param {string} channel @param {object} [claims] of a subscription token */
const subscribe = (client, channel, claims) =>
  client.subscribe(channel, claims && { token: token({ channel, ...claims }) })

t.test('a blocked user is disconnected and refused by every transport, until unblocked', async t => {
  const sub = { sub: '7' }
  const sessions = await Promise.all([1, 2, 3].map(() => user(t, gateway, sub)))
  const other = await user(t, gateway, { sub: '8' })
  const stream = await StreamClient.connected(gateway.url, 'http_stream', { token: token(sub) })
  const waiting = poll(gateway, { channel: 'news', token: token(sub) })
  await clientsOf(gateway, 'news', 1)
  await call('block_user', { user: '7' })
  for (const { ended, closed } of sessions) t.strictSame(ended ?? (await closed), DENIED)
  t.strictSame((await stream.push('disconnect')).disconnect, DENIED)
  t.match(await waiting, { status: 403, body: { error: { code: 3507 } } }, 'a waiting one-way poll')
  await roundTrip(other)

  for (const [transport, refused] of Object.entries(refusals))
    t.strictSame(await refused(token(sub)), DENIED, transport)
  t.match(await poll(gateway, { channel: 'a', token: token(sub) }), {
    status: 403,
    body: { error: { code: 3507 } },
  })
  // Connections are distributed over the workers.
  for (let i = 0; i < 6; i++) t.strictSame(await refusals.websocket(token(sub)), DENIED)
  backend.answer = () => result({ user: '7' })
  t.strictSame(
    await (await opened(t, gateway, { id: 1, connect: {} })).closed,
    DENIED,
    'admitted by the proxy',
  )

  await call('unblock_user', { user: '7' })
  await user(t, gateway, sub)
  await anonymous(t, gateway)
  t.equal((await poll(gateway, { channel: 'a', token: token(sub), timeout: 0 })).status, 200)
  await call('unblock_user', { user: '7' })
})

t.test('a user who is blocked while the connect proxy is asked', async t => {
  backend.answer = async () => {
    await call('block_user', { user: 'asked' })
    return result({ user: 'asked' })
  }
  const client = await opened(t, gateway, { id: 1, connect: {} })
  t.strictSame(await client.closed, DENIED)
})

t.test('a block ends at expire_at', async t => {
  const end = at(2)
  await call('block_user', { user: 'short', expire_at: end })
  t.strictSame(await refusals.websocket(token({ sub: 'short' })), DENIED)
  for (;;) {
    const client = await opened(t, gateway, { id: 1, connect: { token: token({ sub: 'short' }) } })
    const reply = await Promise.race([client.next().catch(() => null), client.closed])
    if (reply?.connect) break
  }
  t.ok(Date.now() / 1000 >= end, 'not before')
})

t.test('a revoked connection token', async t => {
  const claims = { sub: 'r', jti: 'a' }
  const live = await user(t, gateway, claims)
  const other = await user(t, gateway, { sub: 'r', jti: 'b' })
  const oneWay = await RawClient.open(gateway.ws.replace('websocket', 'uni_websocket'))
  oneWay.send({ token: token(claims) })
  await oneWay.next()
  const waiting = poll(gateway, { channel: 'revoked', token: token(claims) })
  await clientsOf(gateway, 'revoked', 1)
  await call('revoke_token', { uid: 'a' })
  t.strictSame(await live.closed, INVALIDATED)
  t.strictSame(await oneWay.closed, INVALID)
  t.match(await waiting, { status: 401, body: { error: REVOKED } })
  const again = await opened(t, gateway, { id: 1, connect: { token: token(claims) } })
  t.strictSame((await again.next()).error, REVOKED)
  for (const transport of ['uni_websocket', 'uni_sse', 'uni_http_stream'])
    t.strictSame(await refusals[transport](token(claims)), INVALID, transport)
  t.match(await poll(gateway, { channel: 'a', token: token(claims) }), {
    status: 401,
    body: { error: REVOKED },
  })
  const refresh = await other.call('refresh', { token: token(claims) }).catch(() => null)
  t.equal(refresh, null)
  t.strictSame(other.ended, INVALIDATED, 'a refresh with it')
})

t.test('a revoked subscription token', async t => {
  const client = await user(t, gateway, { sub: 's' })
  for (const key of ['1', '2']) await gateway.api('map_publish', { channel: 'map:partly', key, data: 1 })
  for (const [channel, jti, request] of /** @type {[string, string, object][]} */ ([
    ['$a', 's', {}],
    ['$b', 's', {}],
    ['$c', 'other', {}],
    ['map:x', 's', { type: 1, phase: 2 }],
    ['map:partly', 's', { type: 1, phase: 2, limit: 1 }],
  ])) {
    const sub = token({ sub: 's', channel, jti })
    t.ok((await client.subscribe(channel, { token: sub, ...request })).subscribe, channel)
  }
  await client.subscribe('plain')
  await call('revoke_token', { uid: 's' })
  const ended = await Promise.all([1, 2, 3, 4].map(() => client.push('unsubscribe')))
  t.strictSame(ended.map(({ channel }) => channel).sort(), ['$a', '$b', 'map:partly', 'map:x'])
  for (const { unsubscribe } of ended) t.strictSame(unsubscribe, UNSUBSCRIBED)
  t.strictSame((await subscribe(client, '$a', { sub: 's', jti: 's' })).error, REVOKED)
  t.strictSame((await subscribe(client, '$c', { sub: 's' })).error.code, 105, 'others stay')
  t.strictSame((await client.subscribe('plain')).error.code, 105)

  const refresh = client.call('sub_refresh', {
    channel: '$c',
    token: token({ sub: 's', channel: '$c', jti: 's' }),
  })
  t.strictSame((await client.push('unsubscribe')).unsubscribe, UNSUBSCRIBED)
  t.strictSame((await refresh).error, REVOKED)
})

t.test('an SDK fetches new tokens and continues', async t => {
  let version = 0
  const next = (/** @type {object} */ claims) => token({ sub: 'sdk', jti: `sdk-${++version}`, ...claims })
  const sdk = new Centrifuge(gateway.ws, {
    websocket: WebSocket,
    minReconnectDelay: 10,
    getToken: async () => next({}),
  })
  t.teardown(() => sdk.disconnect())
  const options = { getToken: async () => next({ channel: '$sdk' }), minResubscribeDelay: 10 }
  const subscription = sdk.newSubscription('$sdk', options)
  /** @type {any[]} */
  const states = []
  for (const event of /** @type {const} */ (['connecting', 'connected', 'disconnected']))
    sdk.on(event, ({ code }) => states.push(code ?? event))
  for (const event of /** @type {const} */ (['subscribing', 'subscribed', 'unsubscribed']))
    subscription.on(event, ({ code }) => states.push(code ?? event))
  const subscribed = () => new Promise(resolve => subscription.once('subscribed', resolve))
  subscription.subscribe()
  sdk.connect()
  await subscribed()
  const again = subscribed()
  await call('revoke_token', { uid: 'sdk-2' })
  await again
  t.strictSame(states.splice(0).slice(-2), [2502, 'subscribed'])
  const back = subscribed()
  await call('revoke_token', { uid: 'sdk-1' })
  await back
  t.ok(states.includes(3014) && states.includes('connected'))
  t.notOk(states.includes('disconnected') || states.includes('unsubscribed'))
  await call('block_user', { user: 'sdk' })
  await until(() => states.at(-1) === 3507)
  t.equal(sdk.state, 'disconnected')
  await call('unblock_user', { user: 'sdk' })
})

t.test('tokens of a user that were issued earlier', async t => {
  const [old, equal, without, proxied, another] = await Promise.all([
    user(t, gateway, { sub: 'i', iat: 100 }),
    user(t, gateway, { sub: 'i', iat: 101 }),
    user(t, gateway, { sub: 'i' }),
    (backend.answer = () => result({ user: 'i' })) && anonymous(t, gateway),
    user(t, gateway, { sub: 'j', iat: 100 }),
  ])
  await subscribe(equal, '$old', { sub: 'i', iat: 100 })
  await call('invalidate_user_tokens', { user: 'i', issued_before: 101 })
  t.strictSame(await old.closed, INVALIDATED)
  t.strictSame(await without.closed, INVALIDATED, 'without iat')
  t.strictSame((await equal.push('unsubscribe')).unsubscribe, UNSUBSCRIBED)
  for (const client of [equal, proxied, another]) await roundTrip(client)
  const again = await opened(t, gateway, { id: 1, connect: { token: token({ sub: 'i', iat: 100.9 }) } })
  t.strictSame((await again.next()).error, REVOKED)
  await call('invalidate_user_tokens', { user: 'i', issued_before: 50, expire_at: at(1) })
  const later = await opened(t, gateway, { id: 1, connect: { token: token({ sub: 'i', iat: 100 }) } })
  t.strictSame((await later.next()).error, REVOKED, 'a later call makes no token valid')
  await user(t, gateway, { sub: 'i', iat: 101 })
  await call('invalidate_user_tokens', { user: 'i' })
  t.strictSame(await equal.closed, INVALIDATED, 'the default is now')
  await user(t, gateway, { sub: 'i', iat: at(1) })
})

t.test('subscription tokens of one channel that were issued earlier', async t => {
  const client = await user(t, gateway, { sub: 'k', iat: 1 })
  await subscribe(client, '$x', { sub: 'k', iat: 1 })
  await subscribe(client, '$y', { sub: 'k', iat: 1 })
  await call('invalidate_user_tokens', { user: 'k', channel: '$x', issued_before: 2 })
  t.match(await client.push('unsubscribe'), { channel: '$x', unsubscribe: UNSUBSCRIBED })
  t.strictSame((await subscribe(client, '$x', { sub: 'k', iat: 1 })).error, REVOKED)
  t.ok((await subscribe(client, '$x', { sub: 'k', iat: 2 })).subscribe)
  t.equal((await subscribe(client, '$y', { sub: 'k', iat: 1 })).error.code, 105, 'stays')
})

t.test('refused calls', async t => {
  const long = 'x'.repeat(256)
  for (const [method, params, message] of /** @type {[string, object, string][]} */ ([
    ['block_user', {}, 'bad request: user is missing'],
    ['block_user', { user: '' }, 'bad request: user is missing'],
    ['block_user', { user: 'a', expire_at: at(-1) }, 'bad request: expire_at has passed'],
    ['block_user', { user: long }, 'bad request: user has more than 255 bytes'],
    ['block_user', { user: '\ud800' }, 'bad request: user has half a surrogate pair'],
    ['unblock_user', { user: '' }, 'bad request: user is missing'],
    ['revoke_token', { uid: '' }, 'bad request: uid is missing'],
    ['revoke_token', { uid: 'a', expire_at: 1 }, 'bad request: expire_at has passed'],
    ['invalidate_user_tokens', { user: '' }, 'bad request: user is missing'],
    ['invalidate_user_tokens', { user: 'a', channel: long }, 'bad request: channel has more than 255 bytes'],
    ['invalidate_user_tokens', { user: 'a', issued_before: -1 }, 'bad request: issued_before is negative'],
  ]))
    t.match(await gateway.api(method, params), { error: { code: 107, message } }, `${method} ${message}`)
  t.strictSame(
    await gateway.api('batch', {
      commands: [{ block_user: { user: '9' } }, { unblock_user: { user: '9' } }],
    }),
    {
      replies: [{ block_user: {} }, { unblock_user: {} }],
    },
  )
})

t.test('a full list refuses further entries, not changes', async t => {
  for (let i = 0; ; i++) {
    const { error: refused } = await gateway.api('block_user', { user: `full-${i}` })
    if (refused === undefined) continue
    t.match(refused, { code: 106, message: 'limit exceeded' })
    t.ok(i > 4 && i <= 8, `${i} entries`)
    break
  }
  await call('block_user', { user: 'full-0', expire_at: at(600) })
  await call('unblock_user', { user: 'full-0' })
  await call('block_user', { user: 'full-new' })
  await until(async () => {
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text()
    return /^halley_denylist_entries\{kind="user_block"\} 8$/m.test(metrics)
  }, 'the metric')
})

t.test('changes are in the journal when the call is answered', async t => {
  const file = join(folder, 'snapshot.access')
  await call('revoke_token', { uid: 'in the journal' })
  t.match(await readFile(file, 'utf8'), /"in the journal"/)
  t.notOk(gateway.lines.find(({ msg }) => /are forgotten/.test(msg)))
})

t.test('a user of the trusted header, without snapshot_file', async t => {
  const trusting = await startGateway(t, { workers: 1, client: { user_id_http_header: 'x-user' } })
  const client = await RawClient.connected(trusting.ws, {}, { headers: { 'x-user': '7' } })
  t.strictSame(await trusting.api('block_user', { user: '7' }), DONE)
  t.strictSame(await client.closed, DENIED)
  const again = await RawClient.open(trusting.ws, { headers: { 'x-user': '7' } })
  again.send({ id: 1, connect: {} })
  t.strictSame(await within(again.closed, 'a close'), DENIED)
  await trusting.line(({ msg }) => /^blocked users and revoked tokens are forgotten when/.test(msg))
})
