// Permissions as in the reference server: insecure mode, tokens, refreshes.

import t from 'tap'
import { at, history, open, roundTrip, token, tokenClient } from '../clients/session/support.js'
import { drivers } from '../kit/drivers.js'
import { startGateway } from '../kit/gateway.js'
import { codecs } from './support.js'

const refused = (/** @type {number} */ code) => ({ error: { code } })

for (const driver of drivers) {
  t.test(`insecure: ${driver}`, async t => {
    const gateway = await startGateway(t, {
      workers: 1,
      http_server: { driver },
      client: tokenClient({ insecure: true }),
      channel: {
        without_namespace: { presence: true, join_leave: true, history_size: 10, history_ttl: '60s' },
        namespaces: [{ name: 'off' }],
      },
    })

    for (const connect of Object.values(codecs)) {
      const client = await connect(t, gateway)

      t.test('presence and history are readable if the channel has them', async t => {
        await client.call('subscribe', { channel: 'a' })
        t.match((await client.call('presence', { channel: 'a' })).presence.presence, {
          [client.connect.client]: { client: client.connect.client },
        })
        t.ok((await client.call('presence_stats', { channel: 'a' })).presence_stats.num_clients >= 1)
        t.match((await client.call('history', { channel: 'a', limit: 1 })).history, { epoch: String })
        t.match(await client.call('presence', { channel: 'off:a' }), refused(108))
        t.match(await client.call('history', { channel: 'off:a' }), refused(108))
        await client.call('unsubscribe', { channel: 'a' })
      })

      t.test('positioned, recoverable and join_leave are granted', async t => {
        const positioned = await client.call('subscribe', { channel: 'p', positioned: true })
        t.match(positioned.subscribe, { positioned: true })
        const recoverable = await client.call('subscribe', { channel: 'r', recoverable: true })
        t.match(recoverable.subscribe, { positioned: true, recoverable: true })
        await client.call('subscribe', { channel: 'j', join_leave: true })
        t.match((await client.push('join')).channel, 'j')
      })

      t.test('a connection token sets no expiry; a refresh and a subscription token do', async t => {
        const user = await connect(t, gateway, {
          token: token({ sub: 'u1', exp: at(60), expire_at: at(-9) }),
        })
        t.notOk(user.connect.expires)
        const expires = { expires: true, ttl: /^\d+$/ }
        const claims = { sub: 'u1', channel: '$own', exp: at(60) }
        const own = { channel: '$own', token: token(claims) }
        t.match((await user.call('subscribe', own)).subscribe, expires)
        const past = token({ ...claims, channel: '$past', expire_at: at(-9) })
        t.match(await user.subscribe('$past', { token: past }), refused(110))
        t.match((await user.call('sub_refresh', own)).sub_refresh, expires)
        t.match((await user.call('refresh', { token: token({ sub: 'u1', exp: at(60) }) })).refresh, expires)
      })
    }
  })

  t.test(`tokens: ${driver}`, async t => {
    const gateway = await startGateway(t, {
      workers: 1,
      http_server: { driver },
      client: tokenClient({
        subscribe_to_user_personal_channel: { enabled: true, personal_channel_namespace: 'own' },
      }),
      channel: {
        without_namespace: open,
        namespaces: [{ name: 'own' }, { name: 'rec', ...open, ...history }],
      },
    })

    for (const connect of Object.values(codecs)) {
      /** @param {any} t @param {object} [claims] */
      const user = (t, claims = {}) => connect(t, gateway, { token: token({ sub: 'u1', ...claims }) })
      const renewed = (/** @type {object} */ claims = {}) => ({ token: token({ sub: 'u1', ...claims }) })
      const insufficient = { code: 3010, reason: 'insufficient state' }

      t.test('times may be numeric strings', async t => {
        const client = await user(t, { exp: '4102444800', nbf: '1000000000' })
        t.match(client.connect, { expires: true })
        /** @type {[any, object][]} */
        const table = [
          [{ channel: '$x', exp: '4.1024448e9', nbf: '1' }, { subscribe: {} }],
          [{ channel: '$y', exp: '1000000000' }, refused(109)],
          [{ channel: '$y', jti: 1 }, refused(103)],
        ]
        for (const [claims, reply] of table) {
          const request = { channel: claims.channel, ...renewed(claims) }
          t.match(await client.call('subscribe', request), reply, JSON.stringify(claims))
        }
      })

      t.test('a refresh compares the channels of its token with the subscriptions', async t => {
        const client = await user(t, { channels: ['a'] })
        await gateway.api('subscribe', { user: 'u1', client: client.connect.client, channel: 'rec:api' })
        await client.push('subscribe')
        await client.subscribe('b')
        for (const channels of [
          ['a', 'rec:api'],
          ['a', 'b'],
          ['a', 'own:#u1'],
        ])
          t.strictSame((await client.call('refresh', renewed({ channels }))).refresh, {}, String(channels))
        t.match(await client.call('refresh', renewed({ channels: ['a', 'nope:x'] })), refused(102))
        t.match(await client.call('refresh', renewed({ channels: ['a'], expire_at: at(-5) })), refused(110))
        await client.call('unsubscribe', { channel: 'a' })
        client.send({ id: 99, refresh: renewed({ channels: ['a'] }) })
        t.strictSame(await client.closed, insufficient, 'the client has left the channel')

        const fewer = await user(t, { channels: ['a', 'own:#u1'] })
        fewer.send({ id: 99, refresh: renewed() })
        t.strictSame(await fewer.closed, insufficient)
        const personal = await user(t, { channels: ['own:#u1'] })
        t.strictSame((await personal.call('refresh', renewed())).refresh, {}, 'a personal channel stays')
      })

      t.test('the server API refuses expired subscriptions', async t => {
        const client = await user(t, { sub: 'u2' })
        const request = { user: 'u2', channel: 'late', expire_at: at(-5) }
        t.match(await gateway.api('subscribe', request), refused(100))
        t.strictSame(await gateway.api('subscribe', { ...request, user: 'nobody' }), { result: {} })
        await gateway.api('publish', { channel: 'late', data: 1 })
        await roundTrip(client)
        t.strictSame(client.messages, [])
        t.strictSame(await gateway.api('subscribe', { ...request, expire_at: at(60) }), { result: {} })
        t.equal((await client.push('subscribe')).channel, 'late')
        client.socket.terminate()
        await client.closed
      })
    }
  })
}
