// refresh and sub_refresh (client protocol), and the expiry of connections and subscriptions.

import t from 'tap'
import { startGateway } from '../../kit/gateway.js'
import { until } from '../../kit/wait.js'
import { at, error, forged, open, roundTrip, token, tokenClient, user } from './support.js'

const INVALID_TOKEN = { code: 3500, reason: 'invalid token' }
const BAD_REQUEST = { code: 3501, reason: 'bad request' }

t.test('refresh and sub_refresh', async t => {
  const gateway = await startGateway(t, { client: tokenClient(), channel: { without_namespace: open } })

  t.test('refresh extends the connection', async t => {
    const client = await user(t, gateway, { sub: 'u1', exp: at(10) })
    const { refresh } = await client.call('refresh', { token: token({ sub: 'u1', exp: at(100) }) })
    t.equal(refresh.expires, true)
    t.ok(refresh.ttl > 90 && refresh.ttl <= 100)
    for (const claims of [{ sub: 'u1' }, { sub: 'u1', exp: at(60), expire_at: 0 }])
      t.strictSame((await client.call('refresh', { token: token(claims) })).refresh, {}, 'never expires')
    const later = await client.call('refresh', { token: token({ sub: 'u1', exp: at(100) }) })
    t.match(later, { refresh: { expires: true } })
  })

  t.test('an invalid refresh closes the connection', async t => {
    const listed = { sub: 'u1', channels: ['a', 'b'] }
    const expired = { code: 3005, reason: 'connection expired' }
    const insufficient = { code: 3010, reason: 'insufficient state' }
    const of = (/** @type {object} */ claims) => ({ token: token({ sub: 'u1', ...claims }) })
    /** @type {[string, object, {code: number, reason: string}, object?][]} */
    const table = [
      ['no token', {}, BAD_REQUEST],
      ['an empty token', { token: '' }, BAD_REQUEST],
      ['no JWT', { token: 'x' }, INVALID_TOKEN],
      ['a bad signature', { token: forged({ sub: 'u1' }) }, INVALID_TOKEN],
      ['another user', of({ sub: 'u2' }), INVALID_TOKEN],
      ['the anonymous user', { token: token({}) }, INVALID_TOKEN],
      ['a subscription token', of({ channel: 'a' }), INVALID_TOKEN],
      ['an expired token', of({ exp: at(-5) }), expired],
      ['more channels', of({ channels: ['a'] }), insufficient],
      ['fewer channels', of({}), insufficient, listed],
      ['other channels', of({ channels: ['a', 'c'] }), insufficient, listed],
    ]
    for (const [name, request, closed, claims] of table) {
      const client = await user(t, gateway, claims)
      client.send({ id: 9, refresh: request })
      t.strictSame(await client.closed, closed, name)
    }
    const client = await user(t, gateway, listed)
    const reordered = await client.call('refresh', of({ channels: ['b', 'a'] }))
    t.strictSame(reordered.refresh, {}, 'the order of channels is irrelevant')
  })

  /**
   * Presence of a client, read by its own worker: another one may read it too early.
   * @param {any} client @param {string} channel @returns {Promise<any>}
   */
  const shown = async (client, channel) =>
    (await client.call('presence', { channel })).presence.presence[client.connect.client]

  t.test('presence shows the info of the new token after a refresh', async t => {
    const client = await user(t, gateway, { sub: 'u1', info: { i: 1 }, channels: ['of-the-token'] })
    const id = client.connect.client
    const again = { sub: 'u1', channels: ['of-the-token'] }
    await client.subscribe('refreshed')
    const claims = { sub: 'u1', channel: '$refreshed', info: { c: 1 } }
    await client.subscribe('$refreshed', { token: token(claims) })
    await client.call('refresh', { token: token({ ...again, info: { i: 2 } }) })
    await client.subscribe('later')
    for (const channel of ['refreshed', 'of-the-token', 'later'])
      t.strictSame(await shown(client, channel), { user: 'u1', client: id, conn_info: { i: 2 } }, channel)
    t.match(await shown(client, '$refreshed'), { conn_info: { i: 2 }, chan_info: { c: 1 } })
    await client.call('refresh', { token: token(again) })
    t.match(await shown(client, 'refreshed'), { conn_info: { i: 2 } }, 'a token without info keeps it')
    await client.call('unsubscribe', { channel: 'refreshed' })
    await client.call('refresh', { token: token({ ...again, info: { i: 3 } }) })
    t.match(await shown(client, '$refreshed'), { conn_info: { i: 3 } })
    t.strictSame((await gateway.api('presence', { channel: 'refreshed' })).result.presence, {})
    await gateway.api('refresh', { user: 'u1', client: id, info: { i: 4 } })
    await until(async () => (await shown(client, '$refreshed')).conn_info.i === 4)
  })

  t.test('presence shows the channel info of the new token after a sub_refresh', async t => {
    const client = await user(t, gateway, { sub: 'u1', info: { i: 1 } })
    const id = client.connect.client
    const claims = { sub: 'u1', channel: '$info' }
    await client.subscribe('$info', { token: token({ ...claims, info: { c: 1 } }) })
    await client.call('sub_refresh', { channel: '$info', token: token({ ...claims, info: { c: 2 } }) })
    const expected = { user: 'u1', client: id, conn_info: { i: 1 }, chan_info: { c: 2 } }
    t.strictSame(await shown(client, '$info'), expected)
    await client.call('sub_refresh', { channel: '$info', token: token(claims) })
    t.strictSame(await shown(client, '$info'), expected, 'a token without info keeps it')
  })

  t.test('sub_refresh extends a subscription', async t => {
    const client = await user(t, gateway)
    const claims = { sub: 'u1', channel: '$a' }
    await client.subscribe('$a', { token: token({ ...claims, exp: at(10) }) })
    const longer = { channel: '$a', token: token({ ...claims, exp: at(100) }) }
    const { sub_refresh } = await client.call('sub_refresh', longer)
    t.equal(sub_refresh.expires, true)
    t.ok(sub_refresh.ttl > 90 && sub_refresh.ttl <= 100)
    t.strictSame((await client.call('sub_refresh', { channel: '$a', token: token(claims) })).sub_refresh, {})
    const unknown = token({ sub: 'u1', channel: '$b' })
    const late = token({ ...claims, expire_at: at(-5) })
    /** @type {[string, string, string | undefined, object][]} */
    const table = [
      ['not subscribed', '$b', unknown, error(103, 'permission denied')],
      ['no token', '$a', undefined, error(107, 'bad request')],
      ['an empty token', '$a', '', error(107, 'bad request')],
      ['expired', '$a', token({ ...claims, exp: at(-5) }), error(109, 'token expired')],
      ['expire_at has passed', '$a', late, error(110, 'expired')],
    ]
    for (const [name, channel, token, refusal] of table)
      t.strictSame((await client.call('sub_refresh', { channel, token })).error, refusal, name)
  })

  t.test('a sub_refresh with an invalid token closes with 3500', async t => {
    const claims = { sub: 'u1', channel: '$a' }
    const wrong = [
      'x',
      forged(claims),
      token({ sub: 'u1' }),
      token({ ...claims, sub: 'u2' }),
      token({ ...claims, channel: '$b' }),
      token({ ...claims, client: 'x' }),
    ]
    for (const other of wrong) {
      const client = await user(t, gateway)
      await client.subscribe('$a', { token: token(claims) })
      client.send({ id: 9, sub_refresh: { channel: '$a', token: other } })
      t.strictSame(await client.closed, INVALID_TOKEN)
    }
  })
})

t.test('expiry', async t => {
  t.jobs = 5
  const gateway = await startGateway(t, {
    workers: 1,
    client: tokenClient({
      expired_close_delay: '1s',
      expired_sub_close_delay: '1s',
      presence_update_interval: '1s',
    }),
    channel: { without_namespace: open },
  })
  const claims = { sub: 'u1', channel: '$a' }

  t.test('an expired connection is closed with 3005 after the delay', async t => {
    const end = at(4)
    const client = await user(t, gateway, { sub: 'u1', exp: end })
    t.strictSame(await client.closed, { code: 3005, reason: 'connection expired' })
    t.ok(Date.now() >= (end + 1) * 1000)
  })

  t.test('a refresh keeps the connection open', async t => {
    const client = await user(t, gateway, { sub: 'u1', exp: at(4) })
    const other = await user(t, gateway, { sub: 'u1', exp: at(4) })
    await client.call('refresh', { token: token({ sub: 'u1', exp: at(60) }) })
    t.equal((await other.closed).code, 3005)
    await roundTrip(client)
  })

  t.test('an expired subscription ends with 2501 and can be renewed', async t => {
    const client = await user(t, gateway)
    const end = at(4)
    const kept = (/** @type {number} */ exp) => token({ sub: 'u1', channel: '$kept', exp })
    await client.subscribe('$kept', { token: kept(end) })
    await client.subscribe('$a', { token: token({ ...claims, exp: end }) })
    await client.call('sub_refresh', { channel: '$kept', token: kept(at(60)) })
    const unsubscribe = { code: 2501, reason: 'subscription expired' }
    t.strictSame(await client.push('unsubscribe'), { channel: '$a', unsubscribe })
    t.ok(Date.now() >= (end + 1) * 1000)
    t.match(await client.subscribe('$a', { token: token(claims) }), { subscribe: {} })
    t.match(await client.subscribe('$kept'), { error: { code: 105 } }, 'the refreshed one is still there')
  })

  t.test('a server-side subscription that expires closes the connection with 3006', async t => {
    const client = await user(t, gateway, { sub: 'temporary' })
    await gateway.api('subscribe', { user: 'temporary', channel: 'for a while', expire_at: at(4) })
    t.match(await client.push('subscribe'), { channel: 'for a while' })
    t.strictSame(await client.closed, { code: 3006, reason: 'subscription expired' })
  })

  t.test('the server API changes the expiry of connections', async t => {
    const client = await user(t, gateway, { sub: 'moved', exp: at(4) })
    await gateway.api('refresh', { user: 'moved', expire_at: at(60) })
    const { refresh } = await client.push('refresh')
    t.equal(refresh.expires, true)
    t.ok(refresh.ttl > 50 && refresh.ttl <= 60)
    await gateway.api('refresh', { user: 'moved' })
    t.strictSame(await client.push('refresh'), { refresh: {} })
    await gateway.api('refresh', { user: 'moved', expired: true })
    t.strictSame(await client.closed, { code: 3005, reason: 'connection expired' })
  })
})
