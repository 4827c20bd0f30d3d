// Server-side subscriptions (client protocol): by token, personal channel, connect request, server API.

import t from 'tap'
import { startGateway } from '../../kit/gateway.js'
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

/** Options of a subscription that gets its own join. */
const joins = { join_leave: { value: true }, force_push_join_leave: { value: true } }
const personal = { enabled: true, personal_channel_namespace: 'own' }

t.test('server-side subscriptions', async t => {
  const gateway = await startGateway(t, {
    client: tokenClient({
      channel_limit: 4,
      subscribe_to_user_personal_channel: personal,
      allow_anonymous_connect_without_token: true,
    }),
    channel: {
      without_namespace: { ...open, allow_subscribe_for_anonymous: false },
      namespaces: [
        { name: 'own', ...open, ...history, force_recovery: true },
        { name: 'rec', ...open, ...history, force_recovery: true },
        { name: 'shut', presence: true, join_leave: true },
        { name: 'everybody', ...open },
        { name: 'dialog', allow_user_limited_channels: true },
      ],
    },
  })

  t.test('channels of a token need no permission for clients', async t => {
    const client = await user(t, gateway, { sub: 't1', channels: ['a', 'shut:b', '$c'] })
    const { 'own:#t1': own, ...subs } = client.connect.subs
    t.strictSame(subs, { a: {}, 'shut:b': {}, $c: {} })
    t.match(own, { recoverable: true, positioned: true, epoch: String })
    await gateway.api('publish', { channel: 'shut:b', data: 1 })
    t.strictSame(await client.push('pub'), { channel: 'shut:b', pub: { data: 1 } })
  })

  t.test('a token with a tags filter is refused, because the filter would not be applied', async t => {
    const client = await user(t, gateway, { sub: 't3' })
    for (const server_tags_filter of [{ key: 'team', cmp: 'is', val: 'a' }, {}, 'x', false]) {
      const name = JSON.stringify(server_tags_filter)
      const subscription = token({ sub: 't3', channel: '$f', server_tags_filter })
      const refused = await client.subscribe('$f', { token: subscription })
      t.strictSame(refused.error, error(103, 'permission denied'), name)
      const connect = { token: token({ sub: 't3', subs: { a: { server_tags_filter } } }) }
      const closing = await opened(t, gateway, { id: 1, connect })
      t.strictSame(await closing.closed, { code: 3500, reason: 'invalid token' }, name)
      const refreshing = await user(t, gateway, { sub: 't3' })
      await refreshing.subscribe('$f', { token: token({ sub: 't3', channel: '$f' }) })
      refreshing.send({ id: 9, sub_refresh: { channel: '$f', token: subscription } })
      t.strictSame(await refreshing.closed, { code: 3500, reason: 'invalid token' }, name)
    }
    const none = token({ sub: 't3', channel: '$f', server_tags_filter: null })
    t.ok((await client.subscribe('$f', { token: none })).subscribe, 'null means none')
  })

  t.test('subs of a token have data, info and overridden options for each channel', async t => {
    const subs = {
      a: { data: { w: 1 }, info: { seat: 1 } },
      'shut:b': { override: { ...joins, presence: { value: false } } },
    }
    const client = await user(t, gateway, { sub: 't2', channels: ['ignored'], subs })
    t.strictSame(Object.keys(client.connect.subs).sort(), ['a', 'own:#t2', 'shut:b'])
    t.strictSame(client.connect.subs.a, { data: { w: 1 } })
    t.match(await client.push('join'), { channel: 'shut:b', join: { info: { user: 't2' } } })
    const id = client.connect.client
    const { presence } = await client.call('presence', { channel: 'a' })
    t.strictSame(presence.presence, { [id]: { user: 't2', client: id, chan_info: { seat: 1 } } })
    t.strictSame((await gateway.api('presence', { channel: 'shut:b' })).result.presence, {})
  })

  t.test('a user has a personal channel, an anonymous client does not', async t => {
    const client = await user(t, gateway, { sub: 'alone' })
    t.strictSame(Object.keys(client.connect.subs), ['own:#alone'])
    await gateway.api('publish', { channel: 'own:#alone', data: 'for you' })
    t.match(await client.push('pub'), { channel: 'own:#alone', pub: { data: 'for you', offset: 1 } })
    const nobody = await anonymous(t, gateway)
    t.notOk(nobody.connect.subs)
  })

  t.test('permitted subs of a connect request become server-side, others are dropped', async t => {
    const subs = {
      a: {},
      'shut:b': {},
      $c: {},
      ä: {},
      'dialog:x#w1,w2': {},
      'dialog:x#w2': {},
      [`x${'x'.repeat(255)}`]: {},
    }
    const client = await user(t, gateway, { sub: 'w1' }, { subs })
    t.strictSame(Object.keys(client.connect.subs).sort(), ['a', 'dialog:x#w1,w2', 'own:#w1'])
    t.strictSame((await client.subscribe('a')).error, error(105, 'already subscribed'))
    const nobody = await anonymous(t, gateway, { subs: { a: {}, 'everybody:b': {} } })
    t.strictSame(Object.keys(nobody.connect.subs), ['everybody:b'])
  })

  t.test('a client-side subscription becomes server-side by the server API', async t => {
    const client = await user(t, gateway, { sub: 'holder' })
    await client.subscribe('a')
    await gateway.api('subscribe', { user: 'holder', channel: 'a' })
    t.strictSame(await client.push('subscribe'), { channel: 'a', subscribe: {} })
    t.strictSame((await client.subscribe('a')).error, error(105, 'already subscribed'))
    await gateway.api('publish', { channel: 'a', data: 1 })
    await roundTrip(client)
    t.strictSame(client.messages, [{ push: { channel: 'a', pub: { data: 1 } } }], 'and is delivered once')
    t.strictSame((await gateway.api('presence_stats', { channel: 'a' })).result, {
      num_clients: 1,
      num_users: 1,
    })
  })

  t.test('a client may unsubscribe from a server-side subscription', async t => {
    const client = await user(t, gateway, { sub: 'leaver', channels: ['left'] })
    t.strictSame((await client.call('unsubscribe', { channel: 'left' })).unsubscribe, {})
    const { presence_stats } = await client.call('presence_stats', { channel: 'left' })
    t.equal(presence_stats.num_clients, 0)
    t.match(await client.subscribe('left'), { subscribe: {} })
  })

  t.test('server-side and client-side subscriptions share the channel limit', async t => {
    const client = await user(t, gateway, { sub: 'many', channels: ['a', 'b'] })
    t.match(await client.subscribe('c'), { subscribe: {} })
    t.strictSame((await client.subscribe('d')).error, error(106, 'limit exceeded'))
    await gateway.api('subscribe', { user: 'many', channel: 'a' })
    t.match(await client.push('subscribe'), { channel: 'a' }, 'an existing channel is not counted again')
    await gateway.api('subscribe', { user: 'many', channel: 'd' })
    t.strictSame(await client.closed, { code: 3505, reason: 'channel limit' })
  })

  t.test('publications during connect arrive once, after the connect reply', async t => {
    let publishing = true
    const channel = 'rec:busy'
    const publisher = (async () => {
      for (let n = 1; publishing; n++) await gateway.api('publish', { channel, data: n })
    })()
    for (let i = 0; i < 20; i++) {
      const client = await user(t, gateway, { sub: 'busy', channels: [channel] })
      const offset = client.connect.subs[channel].offset ?? 0
      for (let next = 1; next <= 3; next++) t.equal((await client.push('pub')).pub.offset, offset + next)
      client.socket.terminate()
    }
    publishing = false
    await publisher
  })

  t.test('no worker has exited', async t => t.notOk(gateway.lines.some(({ msg }) => msg === 'worker died')))
})

t.test('single_connection: a new connection closes the older one of the user', async t => {
  const gateway = await startGateway(t, {
    client: tokenClient({ subscribe_to_user_personal_channel: { enabled: true, single_connection: true } }),
    channel: { without_namespace: { presence: true } },
  })
  const first = await user(t, gateway, { sub: 'single' })
  t.strictSame(Object.keys(first.connect.subs), ['#single'])
  const other = await user(t, gateway, { sub: 'other' })
  for (let i = 0, last = first; i < 4; i++) {
    const next = await user(t, gateway, { sub: 'single' })
    t.strictSame(await last.closed, { code: 3504, reason: 'connection limit' })
    last = next
  }
  await roundTrip(other)

  t.test('a user whose personal channel would be in an unknown namespace is refused', async t => {
    const client = await opened(t, gateway)
    const reply = await client.call('connect', { token: token({ sub: 'tenant:42', exp: at(60) }) })
    t.strictSame(reply.error, error(102, 'unknown channel'))
  })
})
