// Filters of the backend (docs/access.md): publications that do not match never reach the client.

import t from 'tap'
import { Backend, result } from '../../backends/hooks/backend.js'
import { startGateway } from '../../kit/gateway.js'
import { StreamClient } from '../../kit/stream-client.js'
import { poll } from '../../kit/uni-poll-client.js'
import { ProtobufClient } from '../transport/protobuf-client.js'
import { at, error, history, opened, token, tokenClient, user } from './support.js'

const DENIED = error(103, 'permission denied')
const INTERNAL = error(100, 'internal server error', true)
const LIMIT = error(106, 'limit exceeded')
const UNAVAILABLE = error(108, 'not available')
const BAD = error(107, 'bad request')

/** @param {string} val */
const team = val => ({ key: 'team', cmp: 'eq', val })
const A = { team: 'a' }
const B = { team: 'b' }
/** Invalid in every place. */
const WRONG = [
  {},
  'x',
  false,
  [],
  { ...team('a'), cmp: 'is' },
  { op: 'and', nodes: [] },
  { ...team('a'), vals: 'x' },
  { ...team('a'), vals: ['b'] },
  { ...team('a'), nodes: [{ key: 'role', cmp: 'ex' }] },
  { ...team('a'), value: 'b' },
  { ...team('a'), op: 'and', nodes: [{ key: 'role', cmp: 'ex' }] },
  { ...team('a'), cmp: 'ex' },
  { cmp: 'nex' },
]

/** @param {string} channel @param {any} filter @param {object} [more] claims */
const sub = (channel, filter, more) => token({ sub: 'u1', channel, server_tags_filter: filter, ...more })

const map = { subscription_type: 'map', map: { mode: 'persistent' } }

t.test('filters of tokens and the API', async t => {
  const gateway = await startGateway(t, {
    workers: 1,
    client: tokenClient(),
    uni_sse: { enabled: true },
    uni_poll: { enabled: true },
    channel: {
      server_tags_filters_max_size: 20_000,
      without_namespace: {
        ...history,
        force_recovery: true,
        allow_tags_filter: true,
        presence: true,
        allow_presence_for_subscriber: true,
      },
      namespaces: [
        { name: 'plain', allow_subscribe_for_client: true, allow_history_for_client: true },
        {
          name: 'cache',
          history_size: 10,
          history_ttl: '60s',
          force_recovery: true,
          force_recovery_mode: 'cache',
          auto_cache_recover: true,
        },
        {
          name: 'delta',
          ...history,
          force_recovery: true,
          allowed_delta_types: ['fossil'],
          delta_publish: true,
        },
        { name: 'latest', batch_max_delay: '10ms', batch_flush_latest: true },
        { name: 'batch', batch_max_size: 4, batch_max_delay: '10s' },
        { name: 'must', ...history, allow_subscribe_for_client: true, require_server_tags_filter: true },
        { name: 'map', ...map },
        { name: 'open', ...map, map: { ...map.map, allow_publish_for_client: true } },
        {
          name: 'hidden',
          ...map,
          map: { ...map.map, allow_publish_for_client: true },
          require_server_tags_filter: true,
        },
      ],
    },
  })
  /** @param {string} channel @param {any} tags @param {any} [data] */
  const publish = (channel, tags, data = tags) => gateway.api('publish', { channel, data, tags })
  /** @param {any} client @returns {Promise<any>} tags of its next publication */
  const next = async client => (await client.push('pub')).pub.tags

  t.test('live publications', async t => {
    const client = await user(t, gateway)
    t.ok((await client.subscribe('live', { token: sub('live', team('a')) })).subscribe)
    const binary = await ProtobufClient.connected(gateway.ws, { token: token({ sub: 'u1' }) })
    await binary.subscribe('live', { token: sub('live', team('a')) })
    for (const tags of [A, B, undefined, { team: 'a', n: '2' }]) await publish('live', tags, 1)
    for (const each of [client, binary]) {
      t.same(await next(each), A)
      t.same(await next(each), { team: 'a', n: '2' })
    }
    await binary.close()
  })

  t.test('the filter of the client is applied within it', async t => {
    const client = await user(t, gateway)
    const tf = { key: 'role', cmp: 'eq', val: 'x' }
    await client.subscribe('both', { token: sub('both', team('a')), tf })
    for (const tags of [{ ...A, role: 'y' }, { ...B, role: 'x' }, A, { ...A, role: 'x' }])
      await publish('both', tags)
    t.strictSame(await next(client), { ...A, role: 'x' })
    await client.call('sub_refresh', { channel: 'both', token: sub('both', team('b')) })
    for (const tags of [
      { ...A, role: 'x' },
      { ...B, role: 'y' },
      { ...B, role: 'x' },
    ])
      await publish('both', tags)
    t.strictSame(await next(client), { ...B, role: 'x' }, 'also after a refresh')
  })

  t.test('numbers', async t => {
    const client = await user(t, gateway)
    await client.subscribe('numbers', { token: sub('numbers', { key: 'n', cmp: 'gte', val: '5' }) })
    for (const n of ['x', '4.9', '5']) await publish('numbers', { n })
    t.strictSame(await next(client), { n: '5' })
  })

  t.test('recovery, and the position after it', async t => {
    const client = await user(t, gateway)
    const { epoch } = (await client.subscribe('missed', { token: sub('missed', team('a')) })).subscribe
    await client.call('unsubscribe', { channel: 'missed' })
    for (const tags of [A, B, A, B]) await publish('missed', tags)
    const request = { token: sub('missed', team('a')), recover: true, epoch, offset: 0 }
    const { subscribe } = await client.subscribe('missed', request)
    t.equal(subscribe.recovered, true)
    t.same(
      subscribe.publications.map((/** @type {any} */ { offset }) => offset),
      [1, 3],
    )
    await publish('missed', A)
    t.equal((await client.push('pub')).pub.offset, 5)
  })

  t.test('cache recovery sends the newest match', async t => {
    for (const [n, tags] of [A, B].entries()) await publish('cache:c', tags, n)
    const client = await user(t, gateway)
    const { subscribe } = await client.subscribe('cache:c', { token: sub('cache:c', team('a')) })
    t.match(subscribe.publications, [{ data: 0, tags: A }])
    t.equal(subscribe.publications.length, 1)
  })

  t.test('history of the subscription', async t => {
    for (const tags of [A, B, A]) await publish('read', tags)
    const client = await user(t, gateway)
    await client.subscribe('read', { token: sub('read', team('a')) })
    const { publications, offset } = (await client.call('history', { channel: 'read', limit: 10 })).history
    t.same(
      publications.map((/** @type {any} */ { tags }) => tags),
      [A, A],
    )
    t.equal(offset, 3)
  })

  t.test('a refresh replaces it, one without keeps it', async t => {
    const client = await user(t, gateway)
    await client.subscribe('swap', { token: sub('swap', team('a')) })
    const refreshed = await client.call('sub_refresh', { channel: 'swap', token: sub('swap', team('b')) })
    t.ok(refreshed.sub_refresh)
    for (const tags of [A, B]) await publish('swap', tags)
    t.strictSame(await next(client), B)
    await client.call('sub_refresh', { channel: 'swap', token: token({ sub: 'u1', channel: 'swap' }) })
    for (const tags of [A, B]) await publish('swap', tags)
    t.strictSame(await next(client), B)
    const { presence } = (await client.call('presence', { channel: 'swap' })).presence
    t.strictSame(Object.keys(presence), [client.connect.client])
    client.send({ id: 99, sub_refresh: { channel: 'swap', token: sub('swap', {}) } })
    t.match(await client.closed, { code: 3500 })
  })

  t.test('a refresh does not affect what was published before, in a batch', async t => {
    const client = await user(t, gateway)
    await client.subscribe('batch:b', { token: sub('batch:b', team('a')) })
    for (const tags of [A, B]) await publish('batch:b', tags)
    await client.call('sub_refresh', { channel: 'batch:b', token: sub('batch:b', team('b')) })
    t.strictSame(await next(client), A)
    for (const tags of [A, B, A, B]) await publish('batch:b', tags)
    t.strictSame(await next(client), B)
    t.strictSame(await next(client), B)
    t.strictSame(client.messages, [])
  })

  t.test('excludes deltas', async t => {
    const client = await user(t, gateway)
    const delta = 'fossil'
    const { subscribe } = await client.subscribe('delta:d', { token: sub('delta:d', team('a')), delta })
    t.notOk(subscribe.delta)
    const other = await user(t, gateway)
    t.ok((await other.subscribe('delta:e', { token: sub('delta:e'), delta })).subscribe.delta)
    await other.call('sub_refresh', { channel: 'delta:e', token: sub('delta:e', team('a')) })
    t.match(
      await other.push(),
      { channel: 'delta:e', unsubscribe: { code: 2500 } },
      'the SDK subscribes again',
    )
  })

  t.test('maps', async t => {
    for (const [key, tags] of Object.entries({ a: A, b: B }))
      await gateway.api('map_publish', { channel: 'map:m', key, data: key, tags })
    const client = await user(t, gateway)
    const request = { type: 1, phase: 2, token: sub('map:m', team('a')) }
    const { subscribe } = await client.subscribe('map:m', request)
    t.same(
      subscribe.state.map((/** @type {any} */ { key }) => key),
      ['a'],
    )
    for (const [key, tags] of Object.entries({ c: B, d: A }))
      await gateway.api('map_publish', { channel: 'map:m', key, data: key, tags })
    t.equal((await client.push('pub')).pub.key, 'd')
  })

  t.test('a failed write of a map does not show what it hides', async t => {
    const channel = 'open:m'
    for (const [key, tags] of Object.entries({ a: A, b: B }))
      await gateway.api('map_publish', { channel, key, data: key, tags })
    const client = await user(t, gateway)
    /** @param {string} key */
    const write = async key => {
      const request = { channel, type: 1, key, data: 1, expected_offset: 0 }
      const { publish } = await client.call('publish', request)
      t.equal(publish.suppress_reason, 'position_mismatch')
      return publish.current?.data
    }
    t.same([await write('a'), await write('b')], ['a', 'b'], 'without a filter')
    await client.subscribe(channel, { type: 1, phase: 2, token: sub(channel, team('a')) })
    t.same([await write('a'), await write('b')], ['a', undefined])
    const required = { channel: 'hidden:m', type: 1, key: 'a', data: 1, expected_offset: 0 }
    await gateway.api('map_publish', { channel: 'hidden:m', key: 'a', data: 'a', tags: A })
    const { publish } = await client.call('publish', required)
    t.equal(publish.suppress_reason, 'position_mismatch')
    t.equal(publish.current, undefined, 'the namespace requires a filter')
  })

  t.test('an invalid one is refused', async t => {
    const client = await user(t, gateway)
    for (const filter of WRONG) {
      t.strictSame(
        (await client.subscribe('x', { token: sub('x', filter) })).error,
        DENIED,
        JSON.stringify(filter),
      )
      const subs = { x: { server_tags_filter: filter } }
      const other = await opened(t, gateway, { id: 1, connect: { token: token({ sub: 'u1', subs }) } })
      t.match(await other.closed, { code: 3500 })
      const api = await gateway.api('subscribe', { user: 'u1', channel: 'x', server_tags_filter: filter })
      t.match(api.error, BAD)
    }
    const { presence } = (await gateway.api('presence', { channel: 'x' })).result
    t.strictSame(presence, {}, 'nobody is subscribed')
    t.strictSame(
      (await client.subscribe('latest:x', { token: sub('latest:x', team('a')) })).error,
      UNAVAILABLE,
    )
    const late = await gateway.api('subscribe', {
      user: 'u1',
      channel: 'latest:x',
      server_tags_filter: team('a'),
    })
    t.strictSame(late.error, UNAVAILABLE)
  })

  t.test('a namespace may require one', async t => {
    const client = await user(t, gateway)
    t.strictSame((await client.subscribe('must:a')).error, DENIED, 'options allow it')
    for (const none of [null, undefined])
      t.strictSame((await client.subscribe('must:a', { token: sub('must:a', none) })).error, DENIED)
    t.strictSame((await client.call('history', { channel: 'must:a', limit: 1 })).error, DENIED)
    t.strictSame((await gateway.api('subscribe', { user: 'u1', channel: 'must:a' })).error, DENIED)
    const bare = await opened(t, gateway)
    const channels = { token: token({ sub: 'u1', channels: ['must:a'] }) }
    t.strictSame((await bare.call('connect', channels)).error, DENIED)
    const wish = await user(t, gateway, { sub: 'u1' }, { subs: { 'must:a': {} } })
    t.notOk(wish.connect.subs)
    const polled = { channel: 'must:a', timeout: 0, token: token({ sub: 'u1' }) }
    t.equal((await poll(gateway, polled)).status, 403)
    t.ok((await client.subscribe('must:a', { token: sub('must:a', team('a')) })).subscribe)
    t.ok((await client.call('history', { channel: 'must:a', limit: 1 })).history)
  })

  t.test('subs of connection tokens, two-way and one-way', async t => {
    const claims = { sub: 'u1', subs: { listed: { server_tags_filter: team('a') } } }
    const client = await user(t, gateway, claims)
    const query = encodeURIComponent(JSON.stringify({ token: token(claims) }))
    const sse = await StreamClient.open(gateway.url, `/connection/uni_sse?cf_connect=${query}`)
    t.teardown(() => sse.close())
    await sse.next()
    for (const tags of [B, A]) await publish('listed', tags)
    t.strictSame(await next(client), A)
    t.match(await sse.next(({ pub }) => pub), { pub: { tags: A } })
  })

  t.test('one-way long-poll', async t => {
    for (const [n, tags] of [A, B, A].entries()) await publish('polled', tags, n)
    /** @param {string} val @param {object} [more] */
    const ask = (val, more) => {
      const subs = { polled: { server_tags_filter: team(val) } }
      return poll(gateway, { channel: 'polled', timeout: 0, token: token({ sub: 'u1', subs }), ...more })
    }
    const since = { since: 'earliest' }
    const answers = await Promise.all([ask('a', since), ask('b', since), ask('a', since)])
    t.same(
      answers.map(({ data }) => data),
      [[0, 2], [1], [0, 2]],
    )
    for (const [n, tags] of [B, A].entries()) await publish('polled', tags, n + 3)
    t.same((await ask('a', { cursor: answers[0].cursor })).data, [4])
    t.same((await ask('a', { cursor: answers[1].cursor })).data, [4], 'the filter is that of the token')
  })

  t.test('subscribe of the API keeps it, or brings its own', async t => {
    const client = await user(t, gateway, { sub: 'u2' })
    await client.subscribe('api', { token: sub('api', team('a'), { sub: 'u2' }) })
    t.strictSame((await gateway.api('subscribe', { user: 'u2', channel: 'api' })).result, {})
    await client.push('subscribe')
    for (const tags of [B, A]) await publish('api', tags)
    t.strictSame(await next(client), A)
    await gateway.api('subscribe', { user: 'u2', channel: 'api', server_tags_filter: team('b') })
    await client.push('subscribe')
    for (const tags of [A, B]) await publish('api', tags)
    t.strictSame(await next(client), B)
  })

  t.test('their size is limited', async t => {
    const client = await user(t, gateway)
    const other = await user(t, gateway)
    /** @param {number} n @param {string} letter */
    const long = (n, letter) => ({ key: 'k', cmp: 'in', vals: [letter.repeat(n)] })
    t.ok((await client.subscribe('size', { token: sub('size', long(15_000, 'x')) })).subscribe)
    t.strictSame((await other.subscribe('size', { token: sub('size', long(10_000, 'y')) })).error, LIMIT)
    t.ok((await other.subscribe('size', { token: sub('size', long(15_000, 'x')) })).subscribe, 'the same one')
    const refused = await other.call('sub_refresh', {
      channel: 'size',
      token: sub('size', long(10_000, 'y')),
    })
    t.strictSame(refused.error, LIMIT)
    t.strictSame((await client.subscribe('long', { token: sub('long', long(17_000, 'x')) })).error, DENIED)
  })
})

t.test('filters of proxies', async t => {
  const backend = await Backend.start(t)
  const names = ['subscribe', 'sub_refresh']
  const gateway = await startGateway(t, {
    workers: 1,
    client: tokenClient({ expired_sub_close_delay: '0s' }),
    channel: {
      proxy: Object.fromEntries(names.map(name => [name, { endpoint: `${backend.url}/${name}` }])),
      without_namespace: { subscribe_proxy_enabled: true, sub_refresh_proxy_enabled: true },
    },
  })
  /** @type {any} */
  let refresh = {}
  backend.answer = ({ event, json }) => result(event === 'subscribe' ? json.data : refresh)
  /** @param {string} channel @param {any} tags */
  const publish = (channel, tags) => gateway.api('publish', { channel, data: 1, tags })
  const client = await user(t, gateway)
  for (const filter of WRONG)
    t.strictSame((await client.subscribe('x', { data: { server_tags_filter: filter } })).error, INTERNAL)

  await client.subscribe('a', { data: { server_tags_filter: team('a'), expire_at: at(1) } })
  for (const tags of [B, A]) await publish('a', tags)
  t.strictSame((await client.push('pub')).pub.tags, A)
  refresh = { expire_at: at(1000), server_tags_filter: team('b') }
  await backend.request(({ event }) => event === 'sub_refresh')
  for (;;) {
    for (const tags of [A, B]) await publish('a', tags)
    // The answer of the backend may still be on its way.
    if ((await client.push('pub')).pub.tags.team === 'b') break
  }

  refresh = { expire_at: at(1000), server_tags_filter: {} }
  await client.subscribe('kept', { data: { server_tags_filter: team('a'), expire_at: at(1) } })
  await gateway.line(({ msg, hook }) => msg === 'hook call failed' && /sub_refresh/.test(hook))
  for (const tags of [B, A]) await publish('kept', tags)
  t.strictSame(
    (await client.next(({ push }) => push?.channel === 'kept')).push.pub.tags,
    A,
    'the former one stays',
  )
})
