// Signatures, limits and lifetimes of tracked keys.

import t from 'tap'
import { RawClient } from '../../kit/raw-client.js'
import { until } from '../../kit/wait.js'
import { at, error, token, tokenClient } from '../session/support.js'
import { RefreshBackend, sign } from './refresh-backend.js'
import { namespace, newChannel, Poller, startPolls } from './rig.js'

const DENIED = error(103, 'permission denied')
const LIMIT = error(106, 'limit exceeded')
const BAD = error(107, 'bad request')
const EXPIRED = error(109, 'token expired')
const PREVIOUS = 'the secret before the rotation, long enough'

const backend = await RefreshBackend.start(t)
const start = (namespaces, shared_poll = {}) =>
  startPolls(t, { endpoint: backend.url }, namespaces, {
    shared_poll,
    client: tokenClient({ allow_anonymous_connect_without_token: true, concurrency: 8 }),
  })
const [gateway, rotating] = await Promise.all([
  start(
    [
      namespace('poll'),
      namespace('few', { max_keys_per_connection: 3 }),
      namespace('brief', { track_expired_extra_delay: '0s' }),
      namespace('closed', {}, { allow_subscribe_for_client: false }),
      { name: 'stream', allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true },
    ],
    { hmac_previous_secret_key: PREVIOUS },
  ),
  start([namespace('poll')], {
    hmac_previous_secret_key: PREVIOUS,
    hmac_previous_secret_key_valid_until: at(-100),
  }),
])

/** @param {any} t @param {string} [channel] @param {object} [options] */
const open = (t, channel = newChannel(), options = {}) => Poller.open(t, gateway, channel, options)

/** Values of version 1. @param {string} channel @param {...string} keys */
const put = (channel, ...keys) =>
  backend.put(channel, Object.fromEntries(keys.map(key => [key, { data: `of ${key}`, version: 1 }])))

t.test('types of subscriptions', async t => {
  const client = await RawClient.connected(gateway.ws)
  t.teardown(() => client.socket.terminate())
  const refused = async (channel, type) => (await client.subscribe(channel, { type })).error.code
  t.equal(await refused('poll:x', 0), 107)
  t.equal(await refused('poll:x', 1), 107)
  t.equal(await refused('stream:x', 4), 108)
  t.equal(await refused('none:x', 4), 102)
  t.equal(await refused('closed:x', 4), 103)
  t.strictSame((await client.subscribe('poll:x', { type: 4 })).subscribe, { type: 4 })
  t.equal(await refused('poll:x', 4), 105)
})

t.test('a subscription token permits and expires', async t => {
  const client = await RawClient.connected(gateway.ws, { token: token({ sub: 'ann' }) })
  t.teardown(() => client.socket.terminate())
  const channel = newChannel('closed')
  const pass = token({ sub: 'ann', channel, exp: at(100) })
  const { subscribe } = await client.subscribe(channel, { type: 4, token: pass })
  t.match(subscribe, { type: 4, expires: true, ttl: Number })
  const renewed = token({ sub: 'ann', channel, exp: at(1000) })
  const { sub_refresh } = await client.call('sub_refresh', { channel, token: renewed })
  t.match(sub_refresh, { expires: true })
  t.ok(sub_refresh.ttl > 100)
})

t.test('a track answers with the lifetime of its signature', async t => {
  const poller = await open(t)
  const { expires, ttl } = await poller.track({ a: 0 }, { ttl: 100 })
  t.equal(expires, true)
  t.ok(ttl > 90 && ttl <= 100, ttl)
  t.strictSame(await poller.track({ b: 0 }, { exp: 0 }), {}, 'for ever')
  const batches = [poller.batch({ c: 0 }, { ttl: 300 }), poller.batch({ d: 0 }, { ttl: 200 })]
  const shortest = await poller.refresh({ type: 1, track: batches })
  t.ok(shortest.ttl > 190 && shortest.ttl <= 200, 'the shortest of the batches')
  t.strictSame(await poller.untrack(['a']), {})
})

t.test('signatures of others are refused', async t => {
  const channel = newChannel()
  const ann = await open(t, channel, { user: 'ann' })
  const signed = async (signature, keys = ['a', 'b']) =>
    ann.refresh({ type: 1, track: [{ signature, items: keys.map(key => ({ key })) }] })
  const user = 'ann'
  const good = sign(channel, ['a', 'b'], { user })
  for (const [what, signature] of Object.entries({
    'another channel': sign(newChannel(), ['a', 'b'], { user }),
    'another user': sign(channel, ['a', 'b'], { user: 'ben' }),
    'no user': sign(channel, ['a', 'b']),
    'fewer keys': sign(channel, ['a'], { user }),
    'more keys': sign(channel, ['a', 'b', 'c'], { user }),
    'another order': sign(channel, ['b', 'a'], { user }),
    'another secret': sign(channel, ['a', 'b'], { user, secret: 'another secret, long enough for this' }),
    'a changed lifetime': good.replace(/:\d+:/, ':0:'),
    'a changed time of issue': good.replace(/^\d+/, '1'),
    'a cut signature': good.slice(0, -1),
    'upper case': good.toUpperCase(),
    'a prefix': `0:${good}`,
    'no HMAC': good.replace(/[^:]*$/, ''),
    'no text': '',
    'other text': 'x:y:z',
  }))
    t.strictSame(await signed(signature), DENIED, what)
  t.match(await signed(good), { expires: true })
})

t.test('user and channel cannot be shifted', async t => {
  const channel = newChannel()
  const user = 'a\0b'
  const poller = await open(t, channel, { user })
  t.match(await poller.track({ a: 0 }), { expires: true })
  t.strictSame(await poller.track({ a: 0 }, { user: 'a' }), DENIED)
})

t.test('an expired signature has five seconds of grace', async t => {
  const poller = await open(t)
  put(poller.channel, 'a')
  t.match(await poller.track({ a: 0 }, { exp: at(-2) }), { expires: true })
  t.match(await poller.next(), { key: 'a' })
  t.strictSame(await poller.track({ b: 0 }, { exp: at(-8) }), EXPIRED)
  t.strictSame(
    await poller.track({ b: 0 }, { exp: at(-8), user: 'ben' }),
    DENIED,
    'an invalid one stays invalid',
  )
})

t.test('the previous secret signs too', async t => {
  const poller = await open(t)
  t.match(await poller.track({ a: 0 }, { secret: PREVIOUS }), { expires: true })
  t.strictSame(await poller.track({ a: 0 }, { secret: PREVIOUS, ttl: -60 }), EXPIRED)
  const other = await Poller.open(t, rotating, newChannel())
  const signing = { secret: PREVIOUS, exp: at(1000) }
  t.match(await other.track({ a: 0 }, { ...signing, iat: at(-200) }), { expires: true })
  t.strictSame(await other.track({ a: 0 }, { ...signing, iat: at(-50) }), DENIED, 'after the rotation')
  t.match(await other.track({ a: 0 }, { iat: at(-50), exp: at(1000) }), { expires: true })
})

t.test('all batches are taken, or none', async t => {
  const poller = await open(t)
  put(poller.channel, 'a', 'b', 'c', 'end')
  const refused = await poller.refresh({
    type: 1,
    track: [poller.batch({ a: 0 }), poller.batch({ b: 0 }, { user: 'ben' })],
  })
  t.strictSame(refused, DENIED)
  const expired = [poller.batch({ a: 0 }), poller.batch({ b: 0 }, { ttl: -60 })]
  t.strictSame(await poller.refresh({ type: 1, track: expired }), EXPIRED)
  await poller.track({ end: 0 })
  t.match(await poller.next(), { key: 'end' })
  await backend.next(poller.channel, 2)
  t.same(backend.of(poller.channel, 'a'), [])
  t.match(await poller.refresh({ type: 1, track: [poller.batch({ a: 0 }), poller.batch({ b: 0, c: 0 })] }), {
    expires: true,
  })
  const pubs = [await poller.next(), await poller.next(), await poller.next()]
  t.same(pubs.map(({ key }) => key).sort(), ['a', 'b', 'c'])
})

t.test('the last of equal keys wins, and untracks come after tracks', async t => {
  const poller = await open(t)
  put(poller.channel, 'a', 'b', 'end')
  const track = [poller.batch({ a: 0, b: 0 }), poller.batch({ a: 1, end: 0 })]
  t.match(await poller.refresh({ type: 1, track, untrack: ['b'] }), { expires: true })
  t.match(await poller.next(), { key: 'end' }, 'the client has version 1 of a, and does not track b')
  backend.put(poller.channel, { a: { data: 'new', version: 2 }, b: { data: 'new', version: 2 } })
  t.match(await poller.next(), { key: 'a', data: 'new', version: 2 })
})

t.test('a connection tracks a limited number of keys', async t => {
  const poller = await open(t, newChannel('few'))
  t.match(await poller.track({ a: 0, b: 0, c: 0 }), { expires: true })
  t.strictSame(await poller.track({ d: 0 }), LIMIT)
  t.match(await poller.track({ a: 0, b: 0, c: 0 }), { expires: true }, 'the same keys again')
  t.match(await poller.track({ d: 0 }, {}, { untrack: ['a'] }), { expires: true }, 'after the untracks')
  t.strictSame(await poller.track({ a: 0 }), LIMIT)
  t.strictSame(await poller.untrack(['b', 'none']), {})
  t.match(await poller.track({ a: 0 }), { expires: true })
  t.strictSame(await poller.track({ e: 0 }), LIMIT)
  const other = await open(t, poller.channel)
  t.match(await other.track({ x: 0, y: 0, z: 0 }), { expires: true }, 'each connection')
})

t.test('concurrent requests do not exceed the limit', async t => {
  const poller = await open(t, newChannel('few'))
  const { channel } = poller
  const requests = ['a', 'b', 'c', 'd', 'e'].map((key, n) => ({
    id: 100 + n,
    sub_refresh: { channel, type: 1, track: [poller.batch({ [key]: 0 })] },
  }))
  poller.client.send(...requests)
  const replies = []
  for (const { id } of requests) replies.push(await poller.client.next(message => message.id === id))
  t.same(
    replies.map(({ error }) => error?.code ?? 0),
    [0, 0, 0, 106, 106],
  )
})

t.test('versions that are no versions', async t => {
  const poller = await open(t)
  for (const version of [-1, 1.5, 1e300, 2 ** 64, '7', 'x', null, {}]) {
    const other = await open(t, poller.channel)
    const batch = other.batch({ a: 0 })
    const track = [{ ...batch, items: [{ key: 'a', version }] }]
    other.client.send({ id: 7, sub_refresh: { channel: other.channel, type: 1, track } })
    const end = await Promise.race([other.client.closed, other.client.next(({ id }) => id === 7)])
    t.ok(end, JSON.stringify(version))
  }
  put(poller.channel, 'end')
  await poller.track({ end: 0 })
  t.match(await poller.next(), { key: 'end' }, 'nobody else is disturbed')
})

t.test('requests without keys are bad', async t => {
  const poller = await open(t)
  t.strictSame(await poller.refresh({ type: 1, track: [] }), BAD)
  t.strictSame(await poller.refresh({ type: 1 }), BAD)
  t.strictSame(await poller.refresh({ type: 1, track: [poller.batch({})] }), BAD)
  t.strictSame(await poller.refresh({ type: 2, untrack: [] }), BAD)
  t.strictSame(await poller.refresh({ type: 2 }), BAD)
  t.strictSame(await poller.track({ '': 0 }), BAD)
  t.ok('code' in (await poller.refresh({ type: 3, untrack: ['a'] })))
})

t.test('only subscribers track', async t => {
  const poller = await open(t)
  await poller.client.call('unsubscribe', { channel: poller.channel })
  t.strictSame(await poller.track({ a: 0 }), DENIED)
  t.strictSame(await poller.untrack(['a']), DENIED)
  await poller.client.subscribe('stream:tracks')
  const { error: reason } = await poller.client.call('sub_refresh', {
    channel: 'stream:tracks',
    type: 1,
    track: [{ signature: sign('stream:tracks', ['a']), items: [{ key: 'a' }] }],
  })
  t.ok(reason, 'not in a stream')
})

t.test('a subscription that starts again tracks nothing', async t => {
  const poller = await open(t)
  put(poller.channel, 'a', 'end')
  await poller.track({ a: 0 })
  t.match(await poller.next(), { key: 'a' })
  await poller.client.call('unsubscribe', { channel: poller.channel })
  await poller.subscribe()
  await poller.track({ end: 0 })
  t.match(await poller.next(), { key: 'end' })
  const { items } = await backend.next(poller.channel, 2)
  t.same(
    items.map(({ key }) => key),
    ['end'],
  )
})

t.test('the answer comes before the first publication', async t => {
  const poller = await open(t)
  const keys = Array.from({ length: 30 }, (_, n) => `k${n}`)
  put(poller.channel, ...keys)
  const other = await open(t, poller.channel)
  for (const [n, key] of keys.entries()) {
    // Half of the keys have a value in the node.
    if (n % 2) {
      await other.track({ [key]: 0 })
      await other.until(key)
    }
    poller.client.send({
      id: 1000 + n,
      sub_refresh: { channel: poller.channel, type: 1, track: [poller.batch({ [key]: 0 })] },
    })
    t.equal((await poller.client.next()).id, 1000 + n)
    t.match(await poller.next(), { key })
  }
})

t.test('tracks without a renewal expire silently', async t => {
  const poller = await open(t, newChannel('brief'))
  const { channel } = poller
  put(channel, 'a', 'b', 'end')
  await poller.track({ a: 0 }, { exp: at(1) })
  await poller.track({ b: 0 }, { exp: at(1) })
  await poller.track({ end: 0 })
  await poller.track({ b: 1 }, { ttl: 100 })
  await until(
    async () => (await backend.next(channel)).items.every(({ key }) => key !== 'a'),
    () => 'a round without the expired key',
  )
  backend.put(channel, { a: { data: 2, version: 2 }, b: { data: 2, version: 2 } })
  const pubs = await poller.until('b', 2)
  t.same(
    pubs.filter(({ key, removed, version }) => key === 'a' && (removed || version === 2)),
    [],
    'the client gets nothing',
  )
  t.match(await poller.track({ a: 0 }), { expires: true })
  t.match(await poller.until('a'), [{ key: 'a', data: 2 }])
})

t.test('a track expires after the extra delay', async t => {
  const poller = await open(t)
  put(poller.channel, 'a')
  await poller.track({ a: 0 }, { exp: at(-3) })
  t.match(await poller.next(), { key: 'a' })
  backend.put(poller.channel, { a: { data: 'later', version: 2 } })
  t.match(await poller.next(), { data: 'later' }, 'by default it has 25 s')
})
