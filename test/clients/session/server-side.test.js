// Server-side subscriptions (client protocol): by token, personal channel, connect request, server API.

import t from 'tap'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { anonymous, at, error, history, open, roundTrip, token, tokenClient, user } from './support.js'

const personal = {
  enabled: true,
  personal_channel_namespace: 'own',
}

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

  t.test('channels of a token need no permission of the client', async t => {
    const client = await user(t, gateway, { sub: 't1', channels: ['a', 'shut:b', '$c'] })
    const { 'own:#t1': own, ...subs } = client.connect.subs
    t.strictSame(subs, { a: {}, 'shut:b': {}, $c: {} })
    t.match(own, { recoverable: true, positioned: true, epoch: String })
    await gateway.api('publish', { channel: 'shut:b', data: 1 })
    t.strictSame(await client.push('pub'), { channel: 'shut:b', pub: { data: 1 } })
  })

  t.test('a filter in a token that would not be applied refuses', async t => {
    const client = await user(t, gateway, { sub: 't3' })
    for (const server_tags_filter of [{ key: 'team', cmp: 'eq', val: 'a' }, {}, 'x', false]) {
      const name = JSON.stringify(server_tags_filter)
      const subscription = token({ sub: 't3', channel: '$f', server_tags_filter })
      const refused = await client.subscribe('$f', { token: subscription })
      t.strictSame(refused.error, error(103, 'permission denied'), name)
      const newcomer = await RawClient.open(gateway.ws)
      newcomer.send({ id: 1, connect: { token: token({ sub: 't3', subs: { a: { server_tags_filter } } }) } })
      t.strictSame(await newcomer.closed, { code: 3500, reason: 'invalid token' }, name)
      const refreshing = await user(t, gateway, { sub: 't3' })
      await refreshing.subscribe('$f', { token: token({ sub: 't3', channel: '$f' }) })
      refreshing.send({ id: 9, sub_refresh: { channel: '$f', token: subscription } })
      t.strictSame(await refreshing.closed, { code: 3500, reason: 'invalid token' }, name)
    }
    const none = token({ sub: 't3', channel: '$f', server_tags_filter: null })
    t.ok((await client.subscribe('$f', { token: none })).subscribe, 'null is none')
  })

  t.test('claims that only add are logged once, and are ignored', async t => {
    const caps = [{ channels: ['x'], allow: ['pub'] }]
    for (const n of [1, 2]) {
      const client = await user(t, gateway, { sub: `t4-${n}`, caps, labels: { tier: 'pro' } })
      const subscription = token({ sub: `t4-${n}`, channel: '$allow', allow: ['pub'] })
      t.ok((await client.subscribe('$allow', { token: subscription })).subscribe)
    }
    for (const claim of ['caps', 'labels', 'allow']) await gateway.line(line => line.claim === claim)
    const claims = gateway.lines.filter(({ msg }) => /^tokens have a claim/.test(msg))
    // Each worker says it.
    for (const claim of ['caps', 'labels', 'allow']) {
      const workers = claims.filter(line => line.claim === claim).map(({ worker }) => worker)
      t.ok(workers.length > 0, claim)
      t.equal(new Set(workers).size, workers.length, claim)
    }
  })

  t.test('subs of a token have data, info and overridden options for each channel', async t => {
    const subs = {
      a: { data: { w: 1 }, info: { seat: 1 } },
      'shut:b': {
        override: {
          join_leave: { value: true },
          force_push_join_leave: { value: true },
          presence: { value: false },
        },
      },
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

  t.test('a user has a personal channel, an anonymous client has none', async t => {
    const client = await user(t, gateway, { sub: 'alone' })
    t.strictSame(Object.keys(client.connect.subs), ['own:#alone'])
    await gateway.api('publish', { channel: 'own:#alone', data: 'for you' })
    t.match(await client.push('pub'), { channel: 'own:#alone', pub: { data: 'for you', offset: 1 } })
    const nobody = await anonymous(t, gateway)
    t.notOk(nobody.connect.subs)
  })

  t.test('permitted subs of a connect request become server-side, others are left out', async t => {
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

  t.test('a returning client gets what it missed', async t => {
    const claims = { sub: 'back', channels: ['rec:a'] }
    const client = await user(t, gateway, claims)
    const { epoch } = client.connect.subs['rec:a']
    await client.close()
    for (let n = 1; n <= 3; n++) await gateway.api('publish', { channel: 'rec:a', data: n })
    const position = { recover: true, recoverable: true, offset: 1, epoch }
    const again = await user(t, gateway, claims, { subs: { 'rec:a': position } })
    t.strictSame(again.connect.subs['rec:a'], {
      recoverable: true,
      epoch,
      publications: [
        { data: 2, offset: 2 },
        { data: 3, offset: 3 },
      ],
      recovered: true,
      offset: 1,
      positioned: true,
      was_recovering: true,
    })
    const lost = await user(t, gateway, claims, { subs: { 'rec:a': { ...position, epoch: 'other' } } })
    t.strictSame(lost.connect.subs['rec:a'], {
      recoverable: true,
      epoch,
      offset: 3,
      positioned: true,
      was_recovering: true,
    })
    const { 'own:#back': own } = lost.connect.subs
    t.notOk(own.was_recovering, 'a channel without a position in the request is not recovered')
  })

  t.test('the server API subscribes the connections of a user in all workers', async t => {
    const clients = []
    for (let i = 0; i < 4; i++) clients.push(await user(t, gateway, { sub: 'api' }))
    await gateway.api('subscribe', { user: 'api', channel: 'rec:b', data: { hello: 1 } })
    for (const client of clients) {
      const { channel, subscribe } = await client.push('subscribe')
      t.equal(channel, 'rec:b')
      t.match(subscribe, { recoverable: true, positioned: true, epoch: /^[A-Za-z]{8}$/, data: { hello: 1 } })
    }
    await gateway.api('publish', { channel: 'rec:b', data: 1 })
    for (const client of clients) t.match(await client.push('pub'), { channel: 'rec:b', pub: { data: 1 } })

    await gateway.api('unsubscribe', { user: 'api', channel: 'rec:b' })
    for (const client of clients) {
      t.strictSame(await client.push('unsubscribe'), {
        channel: 'rec:b',
        unsubscribe: { code: 2000, reason: 'server unsubscribe' },
      })
    }
    await gateway.api('publish', { channel: 'rec:b', data: 2 })
    for (const client of clients) {
      await roundTrip(client)
      t.strictSame(client.messages, [], 'nothing comes afterwards')
    }
  })

  t.test('a subscribe push is followed by the missed publications, then by the join', async t => {
    const client = await user(t, gateway, { sub: 'since' })
    const { epoch } = (await gateway.api('publish', { channel: 'rec:since', data: 1 })).result
    await gateway.api('publish', { channel: 'rec:since', data: 2 })
    await gateway.api('subscribe', {
      user: 'since',
      channel: 'rec:since',
      recover_since: { offset: 1, epoch },
      override: { join_leave: { value: true }, force_push_join_leave: { value: true } },
    })
    t.match(await client.next(), { push: { channel: 'rec:since', subscribe: { offset: 1, epoch } } })
    t.strictSame(await client.next(), { push: { channel: 'rec:since', pub: { data: 2, offset: 2 } } })
    t.match(await client.next(), { push: { channel: 'rec:since', join: { info: { user: 'since' } } } })
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

  t.test('a client may leave a server-side channel', async t => {
    const client = await user(t, gateway, { sub: 'leaver', channels: ['a'] })
    t.strictSame((await client.call('unsubscribe', { channel: 'a' })).unsubscribe, {})
    await gateway.api('publish', { channel: 'a', data: 1 })
    await roundTrip(client)
    t.strictSame(client.messages, [])
    t.match(await client.subscribe('a'), { subscribe: {} })
  })

  t.test('server-side and client-side channels count together', async t => {
    const client = await user(t, gateway, { sub: 'many', channels: ['a', 'b'] })
    t.match(await client.subscribe('c'), { subscribe: {} })
    t.strictSame((await client.subscribe('d')).error, error(106, 'limit exceeded'))
    await gateway.api('subscribe', { user: 'many', channel: 'a' })
    t.match(await client.push('subscribe'), { channel: 'a' }, 'a channel that it has is not counted again')
    await gateway.api('subscribe', { user: 'many', channel: 'd' })
    t.strictSame(await client.closed, { code: 3505, reason: 'channel limit' })
  })

  t.test('an empty user means the anonymous connections', async t => {
    const nobody = await anonymous(t, gateway)
    const somebody = await user(t, gateway, { sub: 'somebody' })
    await gateway.api('subscribe', { user: '', channel: 'everybody:c' })
    t.match(await nobody.push('subscribe'), { channel: 'everybody:c' })
    await gateway.api('subscribe', { user: '', client: somebody.connect.client, channel: 'everybody:d' })
    await roundTrip(somebody)
    t.strictSame(somebody.messages, [], 'a client id without its user matches nothing')
  })

  t.test('publications during connect come after the connect reply, each once', async t => {
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

  t.test('no worker has died', async t => t.notOk(gateway.lines.some(({ msg }) => msg === 'worker died')))
})

t.test('single_connection: a new connection of a user closes the older one', async t => {
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

  t.test('a user whose channel would be in an unknown namespace is refused', async t => {
    const client = await RawClient.open(gateway.ws)
    t.teardown(() => client.socket.terminate())
    const reply = await client.call('connect', { token: token({ sub: 'tenant:42', exp: at(60) }) })
    t.strictSame(reply.error, error(102, 'unknown channel'))
  })
})
