// The life of a connection up to its connect reply (client protocol).

import t from 'tap'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { until } from '../../kit/wait.js'
import {
  anonymous,
  at,
  error,
  forged,
  open,
  roundTrip,
  stranger,
  token,
  tokenClient,
  user,
} from './support.js'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

t.test('with tokens', async t => {
  const gateway = await startGateway(t, {
    client: tokenClient({
      user_connection_limit: 2,
      channel_limit: 3,
      disallow_anonymous_connection_tokens: true,
    }),
    channel: { without_namespace: open, namespaces: [{ name: 'known', ...open }] },
  })

  t.test('a valid token connects its user', async t => {
    const client = await user(t, gateway, { sub: 'valid', exp: at(3600), info: { n: 1 } })
    t.match(client.connect, { client: UUID, version: /^halley /, expires: true, ping: 600, pong: true })
    t.ok(client.connect.ttl > 3590 && client.connect.ttl <= 3600)
    t.strictSame(Object.keys(client.connect).sort(), ['client', 'expires', 'ping', 'pong', 'ttl', 'version'])
    await client.subscribe('who')
    const { presence } = await client.call('presence', { channel: 'who' })
    t.strictSame(presence.presence, {
      [client.connect.client]: { user: 'valid', client: client.connect.client, conn_info: { n: 1 } },
    })
  })

  t.test('a token without exp makes a connection that does not expire', async t => {
    const client = await user(t, gateway, { sub: 'forever' })
    t.strictSame(Object.keys(client.connect).sort(), ['client', 'ping', 'pong', 'version'])
    const other = await user(t, gateway, { sub: 'forever', exp: at(60), expire_at: 0 })
    t.notOk(other.connect.expires, 'nor does one whose expire_at is 0')
  })

  t.test('expire_at overrides exp, and a ttl is at most a year', async t => {
    const client = await user(t, gateway, { sub: 'year', exp: at(60), expire_at: at(10 * 365 * 86400) })
    t.equal(client.connect.ttl, 365 * 86400)
  })

  t.test('a refused token is answered with its error, and the rest of the frame is dropped', async t => {
    const table = [
      ['expired', { sub: 'u', exp: at(-10) }, error(109, 'token expired')],
      ['not valid yet', { sub: 'u', nbf: at(60) }, error(109, 'token expired')],
      ['expire_at has passed', { sub: 'u', exp: at(60), expire_at: at(-5) }, error(110, 'expired')],
      [
        'a channel of an unknown namespace',
        { sub: 'u', channels: ['nope:a'] },
        error(102, 'unknown channel'),
      ],
      ['subs of an unknown namespace', { sub: 'u', subs: { 'nope:a': {} } }, error(102, 'unknown channel')],
    ]
    for (const [name, claims, refusal] of table) {
      const client = await stranger(t, gateway)
      client.send(
        { id: 1, connect: { token: token(/** @type {object} */ (claims)) } },
        { id: 2, subscribe: { channel: 'known:a' } },
        { id: 3, publish: { channel: 'known:a', data: 1 } },
        { id: 4, connect: { token: token({ sub: 'u' }) } },
      )
      t.strictSame(await client.next(), { id: 1, error: refusal }, /** @type {string} */ (name))
      client.send({ id: 5, subscribe: { channel: 'known:a' } }, { id: 6, presence: { channel: 'known:a' } })
      // The pong comes after all replies to earlier frames.
      await new Promise(resolve => {
        client.socket.once('pong', resolve)
        client.socket.ping()
      })
      t.strictSame(client.messages, [], 'later commands are ignored')
    }
    const watcher = await user(t, gateway, { sub: 'watcher' })
    const { presence_stats } = await watcher.call('presence_stats', { channel: 'known:a' })
    t.strictSame(presence_stats, { num_clients: 0, num_users: 0 })
  })

  t.test('any other invalid connect closes the connection', async t => {
    const anonymousToken = token({})
    /** @type {[string, object, number, string][]} */
    const table = [
      ['no token', {}, 3501, 'bad request'],
      ['an empty token', { token: '' }, 3501, 'bad request'],
      ['no JWT', { token: 'x' }, 3500, 'invalid token'],
      ['a token of three empty parts', { token: '..' }, 3500, 'invalid token'],
      ['a bad signature', { token: forged({ sub: 'u' }) }, 3500, 'invalid token'],
      ['a bad signature of an expired one', { token: forged({ sub: 'u', exp: 1 }) }, 3500, 'invalid token'],
      ['a subscription token', { token: token({ sub: 'u', channel: 'known:a' }) }, 3500, 'invalid token'],
      ['a user that is a number', { token: token({ sub: 1 }) }, 3500, 'invalid token'],
      ['an anonymous token where they are disallowed', { token: anonymousToken }, 3507, 'permission denied'],
      [
        'subs with a channel of an unknown namespace',
        { token: token({ sub: 'u' }), subs: { 'nope:a': {} } },
        3501,
        'bad request',
      ],
      ['subs with an empty channel', { token: token({ sub: 'u' }), subs: { '': {} } }, 3501, 'bad request'],
      [
        'more server-side channels than allowed',
        { token: token({ sub: 'u', channels: ['a', 'b', 'c', 'd'] }) },
        3505,
        'channel limit',
      ],
      [
        'more subs than allowed, with those of the token',
        { token: token({ sub: 'u', channels: ['a', 'b'] }), subs: { c: {}, d: {} } },
        3505,
        'channel limit',
      ],
    ]
    for (const [name, request, code, reason] of table) {
      const client = await stranger(t, gateway)
      client.send({ id: 1, connect: request }, { id: 2, unsubscribe: { channel: 'a' } })
      t.strictSame(await client.closed, { code, reason }, name)
      t.strictSame(client.messages, [], 'nothing is answered')
    }
  })

  t.test('channel_limit counts server-side channels, and then refuses those of the client', async t => {
    const client = await user(t, gateway, { sub: 'full', channels: ['a', 'b', 'c'] })
    t.strictSame(Object.keys(client.connect.subs), ['a', 'b', 'c'])
    t.strictSame((await client.subscribe('d')).error, error(106, 'limit exceeded'))
  })

  t.test('user_connection_limit counts over all workers, and a closed connection makes room', async t => {
    const first = await user(t, gateway, { sub: 'busy' })
    await user(t, gateway, { sub: 'busy' })
    const request = { id: 1, connect: { token: token({ sub: 'busy' }) } }
    for (let i = 0; i < 8; i++) {
      const client = await stranger(t, gateway)
      client.send(request)
      t.strictSame(await client.closed, { code: 3504, reason: 'connection limit' })
    }
    await user(t, gateway, { sub: 'somebody else' })
    await first.close()
    // Its worker informs the others later.
    t.ok(await until(() => user(t, gateway, { sub: 'busy' })))
  })

  t.test('subscribe commands may follow connect in the same frame', async t => {
    const client = await stranger(t, gateway)
    client.send(
      { id: 1, connect: { token: token({ sub: 'pipelined', channels: ['s'] }) } },
      { id: 2, subscribe: { channel: 'a' } },
      { id: 3, subscribe: { channel: 'b' } },
      { id: 4, publish: { channel: 'a', data: 'x' } },
    )
    await client.next(({ id }) => id === 4)
    t.match(client.messages, [
      { id: 1, connect: { subs: { s: {} } } },
      { id: 2, subscribe: {} },
      { id: 3, subscribe: {} },
      { push: { channel: 'a', pub: { data: 'x' } } },
    ])
    t.match(client.frames[0], /^\{"id":1,"connect":/, 'the connect reply is the first thing written')
  })
})

t.test('without tokens', async t => {
  const gateway = await startGateway(t, {
    workers: 1,
    client: {
      allow_anonymous_connect_without_token: true,
      connect_include_server_time: true,
      stale_close_delay: '4s',
    },
    channel: { without_namespace: open },
  })

  t.test(
    'an anonymous client is welcomed with its id, the version, the ping interval and the time',
    async t => {
      const before = Date.now()
      const client = await anonymous(t, gateway, {
        name: 'js',
        version: '1',
        data: { a: 1 },
        headers: { h: 'x' },
        flag: 1,
      })
      t.match(client.connect, { client: UUID, version: /^halley /, ping: 600, pong: true })
      t.ok(client.connect.time >= before && client.connect.time <= Date.now())
      t.strictSame(Object.keys(client.connect).sort(), ['client', 'ping', 'pong', 'time', 'version'])
      const other = await anonymous(t, gateway)
      t.not(other.connect.client, client.connect.client)
    },
  )

  t.test('a client without a connect in time is closed with 3502, another one stays', async t => {
    const prompt = await anonymous(t, gateway)
    const silent = await stranger(t, gateway)
    t.strictSame(await silent.closed, { code: 3502, reason: 'stale' })
    await roundTrip(prompt)
  })

  t.test('an invalid token is refused where none is required, too', async t => {
    const client = await stranger(t, gateway)
    client.send({ id: 1, connect: { token: 'x' } })
    t.strictSame(await client.closed, { code: 3500, reason: 'invalid token' })
  })
})

t.test('a trusted header names the user, where anonymous clients are refused', async t => {
  const gateway = await startGateway(t, {
    workers: 1,
    client: tokenClient({ user_id_http_header: 'X-User-Id', stale_close_delay: '4s' }),
    channel: { without_namespace: open },
  })
  const client = await RawClient.connected(gateway.ws, {}, { headers: { 'X-User-Id': 'behind the proxy' } })
  t.teardown(() => client.socket.terminate())
  await client.subscribe('who')
  const { presence } = await client.call('presence', { channel: 'who' })
  t.equal(presence.presence[client.connect.client].user, 'behind the proxy')

  const nameless = await stranger(t, gateway)
  nameless.send({ id: 1, connect: { headers: { 'X-User-Id': 'emulated' } } })
  t.strictSame(
    await nameless.closed,
    { code: 3501, reason: 'bad request' },
    'an emulated header is not trusted',
  )

  const refused = await stranger(t, gateway)
  refused.send({ id: 1, connect: { token: token({ sub: 'u', exp: 1 }) } })
  t.strictSame(await refused.next(), { id: 1, error: error(109, 'token expired') })
  t.strictSame(
    await refused.closed,
    { code: 3502, reason: 'stale' },
    'after a refused connect the connection becomes stale',
  )
})

t.test('insecure mode accepts everybody, and nothing expires', async t => {
  const gateway = await startGateway(t, { workers: 1, client: tokenClient({ insecure: true }) })
  const client = await anonymous(t, gateway)
  t.match(await client.subscribe('anything'), { subscribe: {} })
  t.strictSame((await client.subscribe('$private')).error, error(103, 'permission denied'))
  t.strictSame((await client.subscribe('nope:a')).error, error(102, 'unknown channel'))
  t.strictSame((await client.call('presence', { channel: 'a' })).error, error(108, 'not available'))
  const expiring = await user(t, gateway, { sub: 'u', exp: at(60) })
  t.notOk(expiring.connect.expires)
  const refused = await stranger(t, gateway)
  refused.send({ id: 1, connect: { token: forged({ sub: 'u' }) } })
  t.strictSame(await refused.closed, { code: 3500, reason: 'invalid token' })
})
