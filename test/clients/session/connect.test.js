// A connection until its connect reply (client protocol).

import t from 'tap'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { until } from '../../kit/wait.js'
import { anonymous, at, error, forged, open, opened, roundTrip, token, tokenClient, user } from './support.js'

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
    t.equal(Object.keys(client.connect).length, 6)
    await client.subscribe('who')
    const { presence } = await client.call('presence', { channel: 'who' })
    t.strictSame(presence.presence, {
      [client.connect.client]: { user: 'valid', client: client.connect.client, conn_info: { n: 1 } },
    })
  })

  t.test('a connection whose token has no exp does not expire', async t => {
    const client = await user(t, gateway, { sub: 'forever' })
    t.strictSame(Object.keys(client.connect).sort(), ['client', 'ping', 'pong', 'version'])
    const other = await user(t, gateway, { sub: 'forever', exp: at(60), expire_at: 0 })
    t.notOk(other.connect.expires, 'nor does one whose expire_at is 0')
  })

  t.test('expire_at overrides exp, and a ttl is limited to a year', async t => {
    const client = await user(t, gateway, { sub: 'year', exp: at(60), expire_at: at(10 * 365 * 86400) })
    t.equal(client.connect.ttl, 365 * 86400)
  })

  t.test('a refused token is answered with an error, and the rest of the frame is dropped', async t => {
    /** @type {[string, object, object][]} */
    const table = [
      ['expired', { exp: at(-10) }, error(109, 'token expired')],
      ['not valid yet', { nbf: at(60) }, error(109, 'token expired')],
      ['expire_at has passed', { exp: at(60), expire_at: at(-5) }, error(110, 'expired')],
      ['a channel of an unknown namespace', { channels: ['nope:a'] }, error(102, 'unknown channel')],
      ['subs of an unknown namespace', { subs: { 'nope:a': {} } }, error(102, 'unknown channel')],
    ]
    for (const [name, claims, refusal] of table) {
      const client = await opened(
        t,
        gateway,
        { id: 1, connect: { token: token({ sub: 'u', ...claims }) } },
        { id: 2, subscribe: { channel: 'known:a' } },
        { id: 3, publish: { channel: 'known:a', data: 1 } },
        { id: 4, connect: { token: token({ sub: 'u' }) } },
      )
      t.strictSame(await client.next(), { id: 1, error: refusal }, name)
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

  t.test('any other invalid connect command closes the connection', async t => {
    const invalid = { code: 3500, reason: 'invalid token' }
    const bad = { code: 3501, reason: 'bad request' }
    const denied = { code: 3507, reason: 'permission denied' }
    const limit = { code: 3505, reason: 'channel limit' }
    const of = (/** @type {object} */ claims, subs = {}) => ({ token: token({ sub: 'u', ...claims }), subs })
    /** @type {[string, object, object][]} */
    const table = [
      ['no token', {}, bad],
      ['an empty token', { token: '' }, bad],
      ['no JWT', { token: 'x' }, invalid],
      ['a token of three empty parts', { token: '..' }, invalid],
      ['a bad signature', { token: forged({ sub: 'u' }) }, invalid],
      ['a bad signature of an expired token', { token: forged({ sub: 'u', exp: 1 }) }, invalid],
      ['a subscription token', of({ channel: 'known:a' }), invalid],
      ['a user that is a number', of({ sub: 1 }), invalid],
      ['an anonymous token where they are disallowed', { token: token({}) }, denied],
      ['subs with a channel of an unknown namespace', of({}, { 'nope:a': {} }), bad],
      ['subs with an empty channel', of({}, { '': {} }), bad],
      ['more channels than allowed', of({ channels: ['a', 'b', 'c', 'd'] }), limit],
      ['more channels and subs than allowed', of({ channels: ['a', 'b'] }, { c: {}, d: {} }), limit],
    ]
    for (const [name, request, closed] of table) {
      const commands = [
        { id: 1, connect: request },
        { id: 2, unsubscribe: { channel: 'a' } },
      ]
      const client = await opened(t, gateway, ...commands)
      t.strictSame(await client.closed, closed, name)
      t.strictSame(client.messages, [], 'nothing is answered')
    }
  })

  t.test('user_connection_limit counts all workers; a closed connection frees a place', async t => {
    const first = await user(t, gateway, { sub: 'busy' })
    await user(t, gateway, { sub: 'busy' })
    const request = { id: 1, connect: { token: token({ sub: 'busy' }) } }
    for (let i = 0; i < 8; i++) {
      const client = await opened(t, gateway, request)
      t.strictSame(await client.closed, { code: 3504, reason: 'connection limit' })
    }
    await user(t, gateway, { sub: 'somebody else' })
    await first.close()
    // Its worker informs the others later.
    t.ok(await until(() => user(t, gateway, { sub: 'busy' })))
  })

  t.test('subscribe commands may follow connect in the same frame', async t => {
    const client = await opened(
      t,
      gateway,
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

  t.test('the connect reply has client id, version, ping interval and time', async t => {
    const before = Date.now()
    const details = { name: 'js', version: '1', data: { a: 1 }, headers: { h: 'x' }, flag: 1 }
    const client = await anonymous(t, gateway, details)
    t.match(client.connect, { client: UUID, version: /^halley /, ping: 600, pong: true })
    t.ok(client.connect.time >= before && client.connect.time <= Date.now())
    t.strictSame(Object.keys(client.connect).sort(), ['client', 'ping', 'pong', 'time', 'version'])
    const other = await anonymous(t, gateway)
    t.not(other.connect.client, client.connect.client)
  })

  t.test('a client that sends no connect command in time is closed with 3502', async t => {
    const prompt = await anonymous(t, gateway)
    const late = await opened(t, gateway)
    t.strictSame(await late.closed, { code: 3502, reason: 'stale' })
    await roundTrip(prompt)
  })

  t.test('an invalid token is refused even where no token is required', async t => {
    const client = await opened(t, gateway, { id: 1, connect: { token: 'x' } })
    t.strictSame(await client.closed, { code: 3500, reason: 'invalid token' })
  })
})

t.test('the trusted header names the user, even if anonymous clients are refused', async t => {
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

  const emulated = await opened(t, gateway, { id: 1, connect: { headers: { 'X-User-Id': 'emulated' } } })
  t.strictSame(await emulated.closed, { code: 3501, reason: 'bad request' }, 'an emulated header')

  const refused = await opened(t, gateway, { id: 1, connect: { token: token({ sub: 'u', exp: 1 }) } })
  t.strictSame(await refused.next(), { id: 1, error: error(109, 'token expired') })
  t.strictSame(await refused.closed, { code: 3502, reason: 'stale' }, 'after a refused connect')
})

t.test('insecure mode accepts all clients, without expiry', async t => {
  const gateway = await startGateway(t, { workers: 1, client: tokenClient({ insecure: true }) })
  const client = await anonymous(t, gateway)
  t.match(await client.subscribe('anything'), { subscribe: {} })
  t.strictSame((await client.subscribe('$private')).error, error(103, 'permission denied'))
  t.strictSame((await client.subscribe('nope:a')).error, error(102, 'unknown channel'))
  t.strictSame((await client.call('presence', { channel: 'a' })).error, error(108, 'not available'))
  const expiring = await user(t, gateway, { sub: 'u', exp: at(60) })
  t.notOk(expiring.connect.expires)
  const refused = await opened(t, gateway, { id: 1, connect: { token: forged({ sub: 'u' }) } })
  t.strictSame(await refused.closed, { code: 3500, reason: 'invalid token' })
})
