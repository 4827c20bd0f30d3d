// Capabilities (docs/access.md): `caps` of connections and `allow` of subscriptions, from tokens, proxies and hooks.

import t from 'tap'
import { Backend, result } from '../../backends/hooks/backend.js'
import { testdir } from '../../kit/folders.js'
import { startGateway } from '../../kit/gateway.js'
import { StreamClient } from '../../kit/stream-client.js'
import { poll } from '../../kit/uni-poll-client.js'
import { until } from '../../kit/wait.js'
import { ProtobufClient } from '../transport/protobuf-client.js'
import {
  anonymous,
  at,
  error,
  history,
  open,
  opened,
  roundTrip,
  token,
  tokenClient,
  user,
} from './support.js'

const DENIED = error(103, 'permission denied')
const UNAVAILABLE = error(108, 'not available')
const INTERNAL = error(100, 'internal server error', true)
const stream = { history_size: 10, history_ttl: '60s' }
const SERVER = { code: 2000, reason: 'server unsubscribe' }

/** @param {string[]} channels @param {string[]} allow @param {string} [match] */
const cap = (channels, allow, match) => ({ channels, allow, match })

/** @param {any} caps @param {object} [claims] */
const claimsOf = (caps, claims) => ({ sub: 'u1', caps, ...claims })

t.test('of connection tokens', async t => {
  const backend = await Backend.start(t)
  const proxied = { subscribe_proxy_enabled: true, publish_proxy_enabled: true }
  const gateway = await startGateway(t, {
    workers: 1,
    client: tokenClient({ channel_limit: 8 }),
    uni_sse: { enabled: true },
    uni_poll: { enabled: true },
    channel: {
      proxy: { subscribe: { endpoint: `${backend.url}/s` }, publish: { endpoint: `${backend.url}/p` } },
      namespaces: [
        { name: 'open', ...open },
        { name: 'full', ...stream, presence: true, join_leave: true },
        { name: 'proxied', ...stream, ...proxied },
        { name: 'users', allow_user_limited_channels: true },
        { name: 'strict', channel_regex: '^[a-z]+$' },
        { name: 'map', subscription_type: 'map', map: { mode: 'persistent' } },
      ],
    },
  })
  /** @param {any} t @param {...any} caps */
  const enter = (t, ...caps) => user(t, gateway, claimsOf(caps))
  backend.answer = () => result({ error: { code: 4000, message: 'asked' } })
  const SUB = ['sub']

  t.test('sub: only the named channels', async t => {
    for (const Client of [null, ProtobufClient]) {
      const caps = [cap(['news'], SUB)]
      const client = Client
        ? await Client.connected(gateway.ws, { token: token(claimsOf(caps)) })
        : await enter(t, ...caps)
      t.ok((await client.subscribe('news')).subscribe)
      t.match((await client.subscribe('other')).error, DENIED)
      const data = Client ? Buffer.from('1') : 1
      t.match((await client.call('publish', { channel: 'news', data })).error, DENIED)
      if (Client) await client.close()
    }
  })

  t.test('entries are united', async t => {
    const client = await enter(t, cap(['a'], SUB), cap(['a'], ['pub']))
    t.ok((await client.subscribe('a')).subscribe)
    t.ok((await client.call('publish', { channel: 'a', data: 1 })).publish)
    t.equal((await client.push('pub')).pub.data, 1)
  })

  t.test('wildcards and regular expressions', async t => {
    const client = await enter(
      t,
      cap(['open:*', 'chat:*', 'a*c'], SUB, 'wildcard'),
      cap(['^p_\\d+$'], SUB, 'regex'),
    )
    for (const channel of ['open:a:b', 'abc', 'p_7'])
      t.ok((await client.subscribe(channel)).subscribe, channel)
    t.strictSame((await client.subscribe('p_7x')).error, DENIED)
    t.strictSame((await client.subscribe('chat:1')).error, error(102, 'unknown channel'), 'no namespace chat')
  })

  t.test('they do not lift the rules of names, private channels and limits', async t => {
    const client = await enter(t, cap(['*'], SUB, 'wildcard'))
    t.strictSame((await client.subscribe('$x')).error, DENIED, 'private')
    t.strictSame((await client.subscribe('strict:7')).error, error(107, 'bad request'))
    t.strictSame((await client.subscribe('x'.repeat(256))).error, error(107, 'bad request'))
    for (let n = 0; n < 8; n++) t.ok((await client.subscribe(`many${n}`)).subscribe)
    t.strictSame((await client.subscribe('one-more')).error, error(106, 'limit exceeded'))
  })

  t.test('a user-limited channel allows the users in its name, and others by capability', async t => {
    const client = await enter(t, cap(['users:b#u2'], SUB))
    for (const channel of ['users:a#u1', 'users:b#u2'])
      t.ok((await client.subscribe(channel)).subscribe, channel)
    t.strictSame((await client.subscribe('users:c#u2')).error, DENIED)
  })

  t.test('proxies are not asked for what is granted', async t => {
    const client = await enter(t, cap(['proxied:a'], ['sub', 'pub']))
    const before = backend.requests.length
    t.ok((await client.subscribe('proxied:a')).subscribe)
    t.ok((await client.call('publish', { channel: 'proxied:a', data: 1 })).publish)
    t.equal(backend.requests.length, before)
    await client.subscribe('proxied:b')
    t.equal(backend.requests.length, before + 1)
  })

  t.test('pub: without a subscription, also to a map', async t => {
    const client = await enter(t, cap(['a', 'map:a'], ['pub']), cap(['map:a'], SUB))
    t.ok((await client.call('publish', { channel: 'a', data: 1 })).publish)
    t.strictSame((await client.call('publish', { channel: 'b', data: 1 })).error, DENIED)
    await client.subscribe('map:a', { type: 1, phase: 2 })
    const key = { channel: 'map:a', type: 1, key: 'k' }
    t.ok((await client.call('publish', { ...key, data: 1 })).publish)
    t.match((await client.push('pub')).pub, { key: 'k', data: 1 })
    t.ok((await client.call('publish', { ...key, removed: true })).publish)
    t.match((await client.push('pub')).pub, { key: 'k', removed: true })
    t.strictSame((await client.call('publish', { ...key, channel: 'map:b', data: 1 })).error, DENIED)
  })

  t.test('prs: presence, presence_stats and joins', async t => {
    const granted = await enter(t, cap(['full:a', 'plain'], ['sub', 'prs']), cap(['full:b'], SUB))
    t.ok((await granted.subscribe('full:a', { join_leave: true })).subscribe)
    await granted.subscribe('full:b', { join_leave: true })
    t.match((await granted.push('join')).join.info, { user: 'u1' })
    const { presence } = (await granted.call('presence', { channel: 'full:a' })).presence
    t.strictSame(Object.keys(presence), [granted.connect.client])
    t.match((await granted.call('presence_stats', { channel: 'full:a' })).presence_stats, { num_clients: 1 })
    for (const method of ['presence', 'presence_stats']) {
      t.strictSame((await granted.call(method, { channel: 'full:b' })).error, DENIED)
      t.strictSame((await granted.call(method, { channel: 'plain' })).error, UNAVAILABLE, 'presence is off')
    }
    const other = await enter(t, cap(['full:a', 'full:b'], SUB))
    await other.subscribe('full:b')
    await other.subscribe('full:a')
    t.equal((await granted.push('join')).channel, 'full:a', 'no join of full:b')
  })

  t.test('hst: history, recoverable and positioned', async t => {
    const client = await enter(t, cap(['full:h', 'full:i', 'plain'], ['sub', 'hst']), cap(['full:s'], SUB))
    t.match((await client.subscribe('full:h', { recoverable: true })).subscribe, {
      recoverable: true,
      positioned: true,
    })
    const { subscribe } = await client.subscribe('full:i', { positioned: true })
    t.equal(subscribe.positioned, true)
    t.equal(subscribe.recoverable, undefined)
    const none = (await client.subscribe('full:s', { recoverable: true, positioned: true })).subscribe
    t.notOk(none.recoverable || none.positioned)
    await gateway.api('publish', { channel: 'full:h', data: 7 })
    t.match((await client.call('history', { channel: 'full:h', limit: 1 })).history.publications, [
      { data: 7 },
    ])
    t.strictSame((await client.call('history', { channel: 'full:s' })).error, DENIED)
    t.strictSame((await client.call('history', { channel: 'plain' })).error, UNAVAILABLE)
  })

  t.test('an invalid list closes the connection', async t => {
    for (const caps of [
      [cap(['('], SUB, 'regex')],
      [cap(['a'], ['sbu'])],
      [cap(['a'], SUB, 'glob')],
      'sub',
      [1],
    ]) {
      const client = await opened(t, gateway, { id: 1, connect: { token: token(claimsOf(caps)) } })
      t.strictSame(await client.closed, { code: 3500, reason: 'invalid token' }, JSON.stringify(caps))
    }
  })

  t.test('a refresh replaces them, and ends what existed only by the former ones', async t => {
    const client = await enter(
      t,
      cap(['news', 'kept', 'open:a', '$private'], ['sub', 'pub']),
      cap(['full:h'], ['hst']),
    )
    for (const channel of ['news', 'kept', 'open:a']) t.ok((await client.subscribe(channel)).subscribe)
    const own = token({ sub: 'u1', channel: '$private' })
    t.ok((await client.subscribe('$private', { token: own })).subscribe)
    const next = token(claimsOf([cap(['kept'], SUB), cap(['full:*'], ['hst'], 'wildcard')]))
    t.ok((await client.call('refresh', { token: next })).refresh)
    t.strictSame(await client.push(), { channel: 'news', unsubscribe: SERVER })
    t.strictSame((await client.subscribe('news')).error, DENIED)
    t.strictSame((await client.call('publish', { channel: 'kept', data: 1 })).error, DENIED)
    t.ok((await client.call('history', { channel: 'full:other' })).history)
    for (const channel of ['kept', 'open:a', '$private']) {
      await gateway.api('publish', { channel, data: channel })
      t.equal((await client.push()).pub.data, channel, `still subscribed: ${channel}`)
    }
    await client.call('refresh', { token: token({ sub: 'u1' }) })
    t.strictSame(
      await client.push(),
      { channel: 'kept', unsubscribe: SERVER },
      'a token without caps removes all',
    )
    t.strictSame((await client.call('history', { channel: 'full:other' })).error, DENIED)
    await client.call('refresh', { token: token(claimsOf([cap(['news'], SUB)])) })
    t.ok((await client.subscribe('news')).subscribe, 'a later one grants again')
    client.send({ id: 99, refresh: { token: token(claimsOf([cap(['a'], ['all'])])) } })
    t.match(await client.closed, { code: 3500 })
  })

  t.test('a subscription whose token was refreshed outlives the capabilities', async t => {
    const client = await enter(t, cap(['a', 'b'], SUB))
    await client.subscribe('a')
    await client.subscribe('b')
    await client.call('sub_refresh', { channel: 'a', token: token({ sub: 'u1', channel: 'a' }) })
    await client.call('refresh', { token: token({ sub: 'u1' }) })
    t.equal((await client.push('unsubscribe')).channel, 'b')
    await gateway.api('publish', { channel: 'a', data: 1 })
    t.equal((await client.push()).channel, 'a')
  })

  t.test('a map in progress ends with the capability', async t => {
    const commands = Array.from({ length: 120 }, (_, n) => ({
      map_publish: { channel: 'map:big', key: `k${n}`, data: n },
    }))
    await gateway.api('batch', { commands })
    const client = await enter(t, cap(['map:big'], SUB))
    const { subscribe } = await client.subscribe('map:big', { type: 1, phase: 2, limit: 100 })
    t.ok(subscribe.cursor)
    await client.call('refresh', { token: token({ sub: 'u1' }) })
    t.strictSame(await client.push(), { channel: 'map:big', unsubscribe: SERVER })
    const next = {
      type: 1,
      phase: 2,
      cursor: subscribe.cursor,
      epoch: subscribe.epoch,
      offset: subscribe.offset,
    }
    t.strictSame((await client.subscribe('map:big', next)).error, DENIED)
  })

  t.test('one-way clients name granted channels', async t => {
    /** @param {object} claims @returns {Promise<any>} the connect message */
    const stream = async claims => {
      const subs = { news: {}, other: {}, 'proxied:a': {}, $x: {} }
      const query = encodeURIComponent(JSON.stringify({ token: token(claims), subs }))
      const client = await StreamClient.open(gateway.url, `/connection/uni_sse?cf_connect=${query}`)
      t.teardown(() => client.close())
      return (await client.next()).connect
    }
    const caps = [cap(['news', 'proxied:a', '$x'], SUB)]
    t.strictSame(Object.keys((await stream(claimsOf(caps))).subs).sort(), ['news', 'proxied:a'])
    t.notOk((await stream({ sub: 'u1' })).subs)
    const two = await user(t, gateway, claimsOf(caps), { subs: { news: {} } })
    t.notOk(two.connect.subs, 'two-way clients subscribe')
  })

  t.test('one-way long-poll honours the token', async t => {
    await gateway.api('publish', { channel: 'full:poll', data: 1 })
    /** @param {string} channel @param {any[]} caps @param {object} [more] */
    const ask = (channel, caps, more) =>
      poll(gateway, { channel, timeout: 0, token: token(claimsOf(caps)), ...more })
    t.equal((await ask('news', [cap(['news'], SUB)])).status, 200)
    t.equal((await ask('other', [cap(['news'], SUB)])).status, 403)
    t.equal((await ask('news', [cap(['news'], ['pub'])])).status, 403)
    t.equal((await ask('$x', [cap(['$x'], SUB)])).status, 403)
    const since = { since: 'earliest' }
    t.equal((await ask('full:poll', [cap(['full:poll'], SUB)], since)).status, 403)
    t.same((await ask('full:poll', [cap(['full:poll'], ['sub', 'hst'])], since)).data, [1])
    t.equal((await ask('news', [cap(['news'], ['all'])])).status, 401)
  })
})

t.test('allow of subscription tokens', async t => {
  const backend = await Backend.start(t)
  backend.answer = () => result({})
  const gateway = await startGateway(t, {
    workers: 1,
    client: tokenClient({ concurrency: 4 }),
    channel: {
      proxy: { publish: { endpoint: `${backend.url}/p` } },
      without_namespace: { ...stream, presence: true },
      namespaces: [{ name: 'proxied', publish_proxy_enabled: true }],
    },
  })
  /** @param {string} channel @param {any} [allow] */
  const sub = (channel, allow) => token({ sub: 'u1', channel, allow })
  /** @param {any} client @param {string} channel @returns {Promise<boolean[]>} publish, presence, history are allowed */
  const rights = async (client, channel) => {
    const replies = [
      await client.call('publish', { channel, data: 1 }),
      await client.call('presence', { channel }),
      await client.call('history', { channel }),
    ]
    for (const { error } of replies) if (error) t.strictSame(error, DENIED)
    return replies.map(({ error }) => error === undefined)
  }

  t.test('pub, prs and hst last as long as the subscription', async t => {
    const client = await user(t, gateway)
    await client.subscribe('$a', { token: sub('$a', ['pub']) })
    t.strictSame(await rights(client, '$a'), [true, false, false])
    await client.call('unsubscribe', { channel: '$a' })
    t.strictSame(await rights(client, '$a'), [false, false, false])
    const { subscribe } = await client.subscribe('$a', {
      token: sub('$a', ['prs', 'hst']),
      recoverable: true,
    })
    t.equal(subscribe.recoverable, true)
    t.strictSame(await rights(client, '$a'), [false, true, true])
    t.strictSame(await rights(client, '$b'), [false, false, false], 'only this channel')
  })

  t.test('sub_refresh replaces it', async t => {
    const client = await user(t, gateway)
    await client.subscribe('$a', { token: sub('$a', ['pub', 'hst']) })
    await client.call('sub_refresh', { channel: '$a', token: sub('$a', ['prs']) })
    t.strictSame(await rights(client, '$a'), [false, true, false])
    await client.call('sub_refresh', { channel: '$a', token: sub('$a') })
    t.strictSame(await rights(client, '$a'), [false, false, false], 'a token without it removes it')
    client.send({ id: 99, sub_refresh: { channel: '$a', token: sub('$a', ['all']) } })
    t.match(await client.closed, { code: 3500 })
  })

  t.test('the publish proxy is not asked', async t => {
    const client = await user(t, gateway)
    await client.subscribe('proxied:a', { token: sub('proxied:a', ['pub']) })
    await client.subscribe('proxied:b', { token: sub('proxied:b') })
    for (const channel of ['proxied:a', 'proxied:b']) await client.call('publish', { channel, data: 1 })
    t.strictSame(
      backend.requests.map(({ json }) => json.channel),
      ['proxied:b'],
    )
  })

  t.test('an invalid list refuses the subscription', async t => {
    const client = await user(t, gateway)
    for (const allow of ['pub', ['all'], [1], {}])
      t.strictSame((await client.subscribe('$a', { token: sub('$a', allow) })).error, DENIED)
    t.ok((await client.subscribe('$a', { token: sub('$a', ['sub']) })).subscribe, 'sub is implied')
  })
})

const CAPS = [cap(['a', 'b'], ['sub'])]
const LATER = [cap(['b', 'c'], ['sub'])]

t.test('of connect and refresh proxies', async t => {
  const backend = await Backend.start(t)
  const gateway = await startGateway(t, {
    workers: 1,
    client: tokenClient({
      proxy: {
        connect: { enabled: true, endpoint: `${backend.url}/connect` },
        refresh: { enabled: true, endpoint: `${backend.url}/refresh` },
      },
    }),
    uni_sse: { enabled: true },
    channel: { proxy: {}, without_namespace: { ...stream } },
  })
  /** @type {any} */
  let connect
  /** @type {any} */
  let refresh
  backend.answer = ({ event }) => result(event === 'connect' ? connect : refresh)

  t.test('a refresh with caps replaces them, one without keeps them', async t => {
    connect = { user: 'u1', expire_at: at(1), caps: CAPS }
    refresh = { expire_at: at(2) }
    const client = await anonymous(t, gateway)
    for (const channel of ['a', 'b']) t.ok((await client.subscribe(channel)).subscribe, channel)
    await backend.request(({ event }) => event === 'refresh')
    await roundTrip(client)
    t.ok((await client.subscribe('a')).error.code === 105, 'kept')
    refresh = { expire_at: at(1000), caps: LATER }
    t.strictSame(await client.push(), { channel: 'a', unsubscribe: SERVER })
    t.ok((await client.subscribe('c')).subscribe)
  })

  t.test('an invalid list is a failed call', async t => {
    connect = { user: 'u1', caps: [cap(['('], ['sub'], 'regex')] }
    const client = await opened(t, gateway)
    t.strictSame((await client.call('connect')).error, INTERNAL)
    const line = await gateway.line(({ msg }) => msg === 'hook call failed')
    t.match(line.reason, /invalid pattern "\("/)
    connect = { user: 'u1', expire_at: at(1), caps: CAPS }
    refresh = { expire_at: at(1000), caps: [cap(['a'], ['all'])] }
    const kept = await anonymous(t, gateway)
    await gateway.line(({ reason }) => /operations are/.test(reason))
    t.ok((await kept.subscribe('a')).subscribe, 'the connection keeps the former ones')
  })

  t.test('one-way clients name granted channels, beside those of the result', async t => {
    connect = { user: 'u1', channels: ['z'], caps: CAPS }
    const query = encodeURIComponent(JSON.stringify({ subs: { a: {}, other: {} } }))
    const client = await StreamClient.open(gateway.url, `/connection/uni_sse?cf_connect=${query}`)
    t.teardown(() => client.close())
    t.strictSame(Object.keys((await client.next()).connect.subs).sort(), ['a', 'z'])
  })
})

t.test('of subscribe proxies', async t => {
  const backend = await Backend.start(t)
  const gateway = await startGateway(t, {
    workers: 1,
    client: tokenClient(),
    channel: {
      proxy: { subscribe: { endpoint: `${backend.url}/s` } },
      without_namespace: { ...history, allow_history_for_client: false, subscribe_proxy_enabled: true },
    },
  })
  backend.answer = ({ json }) => result(json.data ?? {})
  const client = await user(t, gateway)
  await client
    .subscribe('a', { data: { allow: ['pub', 'hst'] }, recoverable: true })
    .then(({ subscribe }) => t.equal(subscribe.recoverable, true))
  t.ok((await client.call('publish', { channel: 'a', data: 1 })).publish)
  t.ok((await client.call('history', { channel: 'a' })).history)
  await client.subscribe('b', { data: { allow: [] } })
  t.strictSame((await client.call('publish', { channel: 'b', data: 1 })).error, DENIED)
  t.strictSame((await client.subscribe('c', { data: { allow: ['all'] } })).error, INTERNAL)
  t.strictSame((await client.subscribe('d', { data: { allow: 'pub' } })).error, INTERNAL)
})

t.test('of a hooks module', async t => {
  const folder = testdir(t, {
    'hooks.mjs': `
      const cap = (...channels) => ({ channels, allow: ['sub'] })
      const soon = s => Math.floor(Date.now() / 1000) + s
      export const connect = ({ data }) => ({
        ...{ user: 'u1', expireAt: data?.expires ? soon(1) : 0, caps: data.caps },
        subscriptions: data.subscriptions,
      })
      let go
      const gate = new Promise(resolve => (go = resolve))
      export const rpc = { go: () => void go() }
      export const refresh = async () => {
        await gate
        return { expireAt: soon(1000), caps: [cap('b', 'c')] }
      }
      export const subscribe = ({ data }) => data
      export function publish() { throw new Error('not asked') }`,
  })
  const gateway = await startGateway(t, {
    workers: 1,
    client: tokenClient(),
    hooks: { module: `${folder}/hooks.mjs` },
    channel: { without_namespace: stream },
  })
  const client = await anonymous(t, gateway, { data: { expires: true, caps: CAPS } })
  for (const channel of ['a', 'b']) t.ok((await client.subscribe(channel)).subscribe, channel)
  t.strictSame((await client.subscribe('c')).error, DENIED)
  await client.call('rpc', { method: 'go' })
  t.strictSame(await client.push(), { channel: 'a', unsubscribe: SERVER })
  t.ok((await client.subscribe('c')).subscribe)
  await gateway.api('publish', { channel: 'b', data: 1 })
  t.equal((await client.push('pub')).channel, 'b')
  const other = await anonymous(t, gateway, { data: { caps: [cap(['p'], ['pub'])] } })
  t.ok((await other.call('publish', { channel: 'p', data: 1 })).publish, 'the hook is not asked')
  t.ok((await other.subscribe('x', { data: { allow: ['pub'] } })).subscribe)
  t.ok((await other.call('publish', { channel: 'x', data: 1 })).publish)
  t.strictSame((await other.call('publish', { channel: 'y', data: 1 })).error, INTERNAL)
  t.strictSame((await other.subscribe('z', { data: { allow: ['all'] } })).error, INTERNAL)
  const filter = { key: 'team', cmp: 'eq', val: 'a' }
  const claims = { sub: 'u1', subs: { f: { server_tags_filter: filter } } }
  const filtered = await user(t, gateway, claims, { data: { subscriptions: { f: {} } } })
  for (const team of ['b', 'a']) await gateway.api('publish', { channel: 'f', data: team, tags: { team } })
  t.equal((await filtered.push('pub')).pub.data, 'a', 'the filter of the token stays')
  const invalid = await opened(t, gateway)
  t.strictSame((await invalid.call('connect', { data: { caps: [{ channels: 'a' }] } })).error, INTERNAL)
  await until(() => gateway.lines.some(({ reason }) => /caps\[0\]\.channels is not a list/.test(reason)))
})
