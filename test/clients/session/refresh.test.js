// refresh and sub_refresh: how clients keep connections and subscriptions alive (client protocol), and what
// happens to those who do not.

import t from 'tap'
import { startGateway } from '../../kit/gateway.js'
import { until } from '../../kit/wait.js'
import { at, error, forged, open, roundTrip, token, tokenClient, user } from './support.js'

const INVALID_TOKEN = { code: 3500, reason: 'invalid token' }
const BAD_REQUEST = { code: 3501, reason: 'bad request' }

t.test('refresh and sub_refresh', async t => {
  const gateway = await startGateway(t, { client: tokenClient(), channel: { without_namespace: open } })

  t.test('refresh moves the end of the connection', async t => {
    const client = await user(t, gateway, { sub: 'u1', exp: at(10) })
    const { refresh } = await client.call('refresh', { token: token({ sub: 'u1', exp: at(100) }) })
    t.equal(refresh.expires, true)
    t.ok(refresh.ttl > 90 && refresh.ttl <= 100)
    t.strictSame((await client.call('refresh', { token: token({ sub: 'u1' }) })).refresh, {})
    t.strictSame(
      (await client.call('refresh', { token: token({ sub: 'u1', exp: at(60), expire_at: 0 }) })).refresh,
      {},
    )
    const forever = await user(t, gateway, { sub: 'u1' })
    t.match(await forever.call('refresh', { token: token({ sub: 'u1', exp: at(100) }) }), {
      refresh: { expires: true },
    })
  })

  t.test('a refresh that is not right closes', async t => {
    const listed = { sub: 'u1', channels: ['a', 'b'] }
    /** @type {[string, object, {code: number, reason: string}, object?][]} */
    const table = [
      ['no token', {}, BAD_REQUEST],
      ['an empty token', { token: '' }, BAD_REQUEST],
      ['no JWT', { token: 'x' }, INVALID_TOKEN],
      ['a bad signature', { token: forged({ sub: 'u1' }) }, INVALID_TOKEN],
      ['another user', { token: token({ sub: 'u2' }) }, INVALID_TOKEN],
      ['the anonymous user', { token: token({}) }, INVALID_TOKEN],
      ['a subscription token', { token: token({ sub: 'u1', channel: 'a' }) }, INVALID_TOKEN],
      [
        'an expired one',
        { token: token({ sub: 'u1', exp: at(-5) }) },
        { code: 3005, reason: 'connection expired' },
      ],
      [
        'more channels',
        { token: token({ sub: 'u1', channels: ['a'] }) },
        { code: 3010, reason: 'insufficient state' },
      ],
      [
        'fewer channels',
        { token: token({ sub: 'u1' }) },
        { code: 3010, reason: 'insufficient state' },
        listed,
      ],
      [
        'other channels',
        { token: token({ sub: 'u1', channels: ['a', 'c'] }) },
        { code: 3010, reason: 'insufficient state' },
        listed,
      ],
    ]
    for (const [name, request, ending, claims] of table) {
      const client = await user(t, gateway, claims)
      client.send({ id: 9, refresh: request })
      t.strictSame(await client.closed, ending, name)
    }
    const client = await user(t, gateway, listed)
    const same = { sub: 'u1', channels: ['b', 'a'] }
    t.strictSame(
      (await client.call('refresh', { token: token(same) })).refresh,
      {},
      'the order of channels is no difference',
    )
  })

  t.test('refresh takes over the info of the new token', async t => {
    const client = await user(t, gateway, { sub: 'u1', info: { n: 1 } })
    await client.call('refresh', { token: token({ sub: 'u1', info: { n: 2 } }) })
    await client.subscribe('renewed')
    const { presence } = await client.call('presence', { channel: 'renewed' })
    t.strictSame(presence.presence[client.connect.client].conn_info, { n: 2 })
  })

  /**
   * Asks the worker of the client: another one may ask the broker before the news of this one is there.
   * @param {any} client @param {string} channel @returns {Promise<any>} what presence shows of it
   */
  const shown = async (client, channel) =>
    (await client.call('presence', { channel })).presence.presence[client.connect.client]

  t.test('presence shows the info of a refreshed token', async t => {
    const client = await user(t, gateway, { sub: 'u1', info: { i: 1 }, channels: ['of-the-token'] })
    const id = client.connect.client
    const again = { sub: 'u1', channels: ['of-the-token'] }
    await client.subscribe('refreshed')
    await client.subscribe('$refreshed', {
      token: token({ sub: 'u1', channel: '$refreshed', info: { c: 1 } }),
    })
    await client.call('refresh', { token: token({ ...again, info: { i: 2 } }) })
    t.strictSame(await shown(client, 'refreshed'), { user: 'u1', client: id, conn_info: { i: 2 } })
    t.strictSame(await shown(client, 'of-the-token'), { user: 'u1', client: id, conn_info: { i: 2 } })
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

  t.test('presence shows the channel info of a refreshed subscription token', async t => {
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

  t.test('sub_refresh moves the end of a subscription', async t => {
    const client = await user(t, gateway)
    const claims = { sub: 'u1', channel: '$a' }
    await client.subscribe('$a', { token: token({ ...claims, exp: at(10) }) })
    const { sub_refresh } = await client.call('sub_refresh', {
      channel: '$a',
      token: token({ ...claims, exp: at(100) }),
    })
    t.equal(sub_refresh.expires, true)
    t.ok(sub_refresh.ttl > 90 && sub_refresh.ttl <= 100)
    t.strictSame((await client.call('sub_refresh', { channel: '$a', token: token(claims) })).sub_refresh, {})
    /** @type {[string, object, object][]} */
    const table = [
      [
        'not subscribed',
        { channel: '$b', token: token({ sub: 'u1', channel: '$b' }) },
        error(103, 'permission denied'),
      ],
      ['no token', { channel: '$a' }, error(107, 'bad request')],
      ['an empty token', { channel: '$a', token: '' }, error(107, 'bad request')],
      ['expired', { channel: '$a', token: token({ ...claims, exp: at(-5) }) }, error(109, 'token expired')],
      [
        'expire_at has passed',
        { channel: '$a', token: token({ ...claims, expire_at: at(-5) }) },
        error(110, 'expired'),
      ],
    ]
    for (const [name, request, refusal] of table)
      t.strictSame((await client.call('sub_refresh', request)).error, refusal, name)
  })

  t.test('a sub_refresh with a token that is not right closes with 3500', async t => {
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

t.test('what is not refreshed ends', async t => {
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

  t.test('a connection closes with 3005 when its time and the delay have passed', async t => {
    const end = at(4)
    const client = await user(t, gateway, { sub: 'u1', exp: end })
    t.strictSame(await client.closed, { code: 3005, reason: 'connection expired' })
    t.ok(Date.now() >= (end + 1) * 1000)
  })

  t.test('a refresh keeps it open', async t => {
    const client = await user(t, gateway, { sub: 'u1', exp: at(4) })
    const other = await user(t, gateway, { sub: 'u1', exp: at(4) })
    await client.call('refresh', { token: token({ sub: 'u1', exp: at(60) }) })
    t.equal((await other.closed).code, 3005)
    await roundTrip(client)
  })

  t.test('a subscription ends with 2501, and can be made again', async t => {
    const client = await user(t, gateway)
    const end = at(4)
    await client.subscribe('$kept', { token: token({ ...claims, channel: '$kept', exp: at(4) }) })
    await client.subscribe('$a', { token: token({ ...claims, exp: end }) })
    await client.call('sub_refresh', {
      channel: '$kept',
      token: token({ ...claims, channel: '$kept', exp: at(60) }),
    })
    t.strictSame(await client.push('unsubscribe'), {
      channel: '$a',
      unsubscribe: { code: 2501, reason: 'subscription expired' },
    })
    t.ok(Date.now() >= (end + 1) * 1000)
    t.match(await client.subscribe('$a', { token: token(claims) }), { subscribe: {} })
    t.match(await client.subscribe('$kept'), { error: { code: 105 } }, 'what was refreshed is still there')
  })

  t.test('a server-side subscription that expires closes the connection with 3006', async t => {
    const client = await user(t, gateway, { sub: 'temporary' })
    await gateway.api('subscribe', { user: 'temporary', channel: 'for a while', expire_at: at(4) })
    t.match(await client.push('subscribe'), { channel: 'for a while' })
    t.strictSame(await client.closed, { code: 3006, reason: 'subscription expired' })
  })

  t.test('the server API moves the end of connections', async t => {
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
