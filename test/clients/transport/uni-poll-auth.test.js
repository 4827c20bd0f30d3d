import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import http from 'node:http'
import t from 'tap'
import { startGateway } from '../../kit/gateway.js'
import { poll } from '../../kit/uni-poll-client.js'
import { until } from '../../kit/wait.js'
import { makeToken } from '../auth/jwt.js'
import { at, forged, history, open, token, tokenClient } from '../session/support.js'

const kept = { allow_subscribe_for_client: true, history_size: 10, history_ttl: '60s' }
const closed = { ...history, allow_subscribe_for_client: false }
const base = {
  uni_poll: { enabled: true },
  channel: {
    without_namespace: { ...open, ...history, allow_user_limited_channels: true },
    namespaces: [
      { name: 'closed', ...closed },
      { name: 'users', ...open, allow_subscribe_for_anonymous: false },
      { name: 'unread', ...kept },
      { name: 'recover', ...kept, force_recovery: true },
      { name: 'personal' },
      { name: 'odd', ...open, channel_regex: '^[a-zü]+$' },
    ],
  },
}
const now = { timeout: 0 }

t.test('with tokens', async t => {
  const client = tokenClient({
    user_id_http_header: 'X-User',
    subscribe_to_user_personal_channel: { enabled: true, personal_channel_namespace: 'personal' },
    disallow_anonymous_connection_tokens: true,
  })
  const gateway = await startGateway(t, { ...base, workers: 1, client })
  const bearer = (/** @type {string} */ token) => ({ headers: { Authorization: `Bearer ${token}` } })
  const ann = token({ sub: 'ann' })

  t.test('a token may be in the header, the query or the body', async t => {
    t.equal((await poll(gateway, { channel: 'a', ...now }, bearer(ann))).status, 200)
    t.equal((await poll(gateway, { channel: 'a', ...now, token: ann })).status, 200)
    const post = (/** @type {string} */ body) => poll(gateway, {}, { method: 'POST', body })
    t.equal((await post(JSON.stringify({ channel: 'a', ...now, token: ann }))).status, 200)
    t.equal((await post(`channel=a&timeout=0&token=${ann}`)).status, 200)
    const both = await poll(gateway, { channel: 'a', ...now, token: 'bad' }, bearer(ann))
    t.equal(both.status, 200, 'the header comes first')
  })

  t.test('an invalid, expired or missing token gets 401', async t => {
    /** @type {[string, number][]} */
    const table = [
      [forged({ sub: 'ann' }), 3500],
      ['nonsense', 3500],
      [token({ sub: 'ann', channel: 'a' }), 3500],
      [token({ sub: 'ann', exp: at(-1) }), 109],
      [token({ sub: 'ann', nbf: at(100) }), 109],
      [token({ sub: 'ann', expire_at: at(-1) }), 110],
    ]
    for (const [bad, code] of table) {
      const answer = await poll(gateway, { channel: 'a', ...now }, bearer(bad))
      t.match(answer, { status: 401, headers: { 'www-authenticate': 'Bearer' }, body: { error: { code } } })
    }
    t.match(await poll(gateway, { channel: 'a' }), { status: 401, body: { error: { code: 101 } } })
    const anonymous = await poll(gateway, { channel: 'a' }, bearer(token({})))
    t.match(anonymous, { status: 403, body: { error: { code: 103 } } })
  })

  t.test('the trusted header replaces the token', async t => {
    const answer = await poll(gateway, { channel: 'users:a', ...now }, { headers: { 'X-User': 'bob' } })
    t.equal(answer.status, 200)
  })

  t.test('channel rules are those of subscriptions without a subscription token', async t => {
    /** @type {[number, string, object?][]} */
    const table = [
      ...['users:a', 'room#ann', 'room#ann,bob', 'personal:#ann', 'odd:ü'].map(
        name => /** @type {[number, string]} */ ([200, name]),
      ),
      ...['closed:a', '$private', 'room#bob', 'personal:#bob'].map(
        name => /** @type {[number, string]} */ ([403, name]),
      ),
      [400, 'odd:7'],
      [404, 'nope:a'],
      [200, 'closed:a', { channels: ['closed:a'] }],
      [200, '$private', { subs: { $private: {} } }],
      [403, 'closed:b', { channels: ['closed:a', 'nope:x'] }],
    ]
    for (const [status, channel, claims] of table) {
      const params = { channel, ...now, token: token({ sub: 'ann', ...claims }) }
      t.equal((await poll(gateway, params)).status, status, channel)
    }
    const mixed = await poll(gateway, { channel: ['a', 'closed:a'], ...now, token: ann })
    t.match(mixed, { status: 403, body: { error: { code: 103, message: /"closed:a"/ } } })
  })

  t.test('channels of the token are polled only if they are named', async t => {
    const claims = { sub: 'ann', channels: ['closed:listed'] }
    const params = { channel: 'a', since: 'earliest', token: token(claims) }
    await gateway.api('publish', { channel: 'closed:listed', data: 1 })
    t.same((await poll(gateway, { ...params, ...now })).data, [])
    t.same((await poll(gateway, { ...params, channel: 'closed:listed' })).data, [1])
  })

  t.test('since requires history access, a cursor does not', async t => {
    await gateway.api('publish', { channel: 'unread:a', data: 1 })
    await gateway.api('publish', { channel: 'recover:a', data: 1 })
    const params = { since: 'earliest', ...now, token: ann }
    const refused = await poll(gateway, { channel: 'unread:a', ...params })
    t.match(refused, { status: 403, body: { error: { code: 103, message: /since/ } } })
    t.same((await poll(gateway, { channel: 'recover:a', ...params })).data, [1])
    const { cursor } = await poll(gateway, { channel: 'unread:a', ...now, token: ann })
    await gateway.api('publish', { channel: 'unread:a', data: 2 })
    const next = await poll(gateway, { channel: 'unread:a', cursor, token: ann })
    t.same(next.data, [2], 'with a cursor')
  })

  t.test('a cursor grants no access, and is valid for all users', async t => {
    const claims = { sub: 'ann', channels: ['closed:c'] }
    const { cursor } = await poll(gateway, { channel: ['closed:c', 'a'], ...now, token: token(claims) })
    t.equal((await poll(gateway, { channel: 'closed:c', cursor, ...now, token: ann })).status, 403)
    const bob = token({ sub: 'bob' })
    t.equal((await poll(gateway, { channel: 'a', cursor, ...now, token: bob })).status, 200)
  })

  t.test('a poll ends when its token expires', async t => {
    const answer = await poll(gateway, { channel: 'a', token: token({ sub: 'ann', exp: at(5) }) })
    t.match(answer, { status: 200, body: { publications: [] } })
  })
})

t.test('without tokens', async t => {
  t.test('anonymous clients may poll if the configuration allows it', async t => {
    const gateway = await startGateway(t, {
      ...base,
      workers: 1,
      client: tokenClient({ allow_anonymous_connect_without_token: true }),
    })
    t.equal((await poll(gateway, { channel: 'a', ...now })).status, 200)
    t.equal((await poll(gateway, { channel: 'users:a', ...now })).status, 403)
    t.equal((await poll(gateway, { channel: 'a', ...now, token: 'bad' })).status, 401)
    t.equal((await poll(gateway, { channel: 'users:a', ...now, token: token({ sub: 'u' }) })).status, 200)
  })

  t.test('in insecure mode, all channels except private ones may be polled', async t => {
    const gateway = await startGateway(t, { ...base, workers: 1, client: { insecure: true } })
    t.equal((await poll(gateway, { channel: ['closed:a', 'users:a'], since: 0, ...now })).status, 200)
    t.equal((await poll(gateway, { channel: '$a', ...now })).status, 403)
  })
})

t.test('keys are fetched before the first poll', async t => {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  let up = true
  const jwks = http.createServer((_request, response) => {
    response.statusCode = up ? 200 : 500
    response.end(JSON.stringify({ keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'k', use: 'sig' }] }))
  })
  await once(jwks.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => jwks.close())
  const { port } = /** @type {import('node:net').AddressInfo} */ (jwks.address())
  const client = { token: { jwks_public_endpoint: `http://127.0.0.1:${port}/` } }
  const gateway = await startGateway(t, { ...base, workers: 1, client })
  const signed = (/** @type {string} */ kid) => makeToken({ sub: 'ann' }, privateKey, { alg: 'RS256', kid })
  up = false
  const unreachable = await poll(gateway, { channel: 'a', ...now, token: signed('k') })
  t.match(unreachable, { status: 503, headers: { 'retry-after': '1' }, body: { error: { code: 100 } } })
  up = true
  await gateway.line(({ msg }) => msg === 'cannot fetch token keys')
  await until(async () => {
    const { status } = await poll(gateway, { channel: 'a', ...now, token: signed('k') })
    if (status !== 200) t.equal(status, 503)
    return status === 200
  })
  t.equal((await poll(gateway, { channel: 'a', ...now, token: token({ sub: 'ann' }) })).status, 401)
})

t.test('connection limits include polls', async t => {
  const client = { insecure: true, connection_rate_limit: 1 }
  const gateway = await startGateway(t, { ...base, workers: 1, client })
  const statuses = await Promise.all(
    Array.from({ length: 8 }, async () => (await poll(gateway, { channel: 'a', ...now })).status),
  )
  t.ok(statuses.includes(200))
  t.ok(statuses.includes(503), 'connection_rate_limit')
})
