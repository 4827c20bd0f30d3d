// What the reference server lets pass and what it refuses: insecure mode, tokens, refreshes.

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

    for (const { client: connect } of Object.values(codecs)) {
      const client = await connect(t, gateway)

      t.test('everything that is on may be read', async t => {
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

      t.test('flags are granted', async t => {
        const positioned = await client.call('subscribe', { channel: 'p', positioned: true })
        t.match(positioned.subscribe, { positioned: true })
        const recoverable = await client.call('subscribe', { channel: 'r', recoverable: true })
        t.match(recoverable.subscribe, { positioned: true, recoverable: true })
        await client.call('subscribe', { channel: 'j', join_leave: true })
        t.match((await client.push('join')).channel, 'j')
      })

      t.test(
        'a connection does not end by its token; a refresh and a subscription token say when it does',
        async t => {
          const user = await connect(t, gateway, {
            token: token({ sub: 'u1', exp: at(60), expire_at: at(-9) }),
          })
          t.notOk(user.connect.expires)
          const claims = { sub: 'u1', channel: '$own', exp: at(60) }
          const { subscribe } = await user.call('subscribe', { channel: '$own', token: token(claims) })
          t.match(subscribe, { expires: true, ttl: /^\d+$/ })
          const past = token({ ...claims, channel: '$past', expire_at: at(-9) })
          t.match(await user.call('subscribe', { channel: '$past', token: past }), refused(110))
          const { sub_refresh } = await user.call('sub_refresh', { channel: '$own', token: token(claims) })
          t.match(sub_refresh, { expires: true, ttl: /^\d+$/ })
          const { refresh } = await user.call('refresh', { token: token({ sub: 'u1', exp: at(60) }) })
          t.match(refresh, { expires: true, ttl: /^\d+$/ })
        },
      )
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

    for (const { client: connect } of Object.values(codecs)) {
      /** @param {any} t @param {object} [claims] */
      const user = (t, claims = {}) => connect(t, gateway, { token: token({ sub: 'u1', ...claims }) })
      const renewed = (/** @type {object} */ claims = {}) => ({ token: token({ sub: 'u1', ...claims }) })
      const insufficient = { code: 3010, reason: 'insufficient state' }

      t.test('rpc without anything to answer it', async t => {
        const client = await user(t)
        t.match(await client.call('rpc', { method: 'x', data: 1 }), refused(108))
      })

      t.test('times may be texts of numbers', async t => {
        const client = await user(t, { exp: '4102444800', nbf: '1000000000' })
        t.match(client.connect, { expires: true })
        const claims = { sub: 'u1', channel: '$x', exp: '4.1024448e9', nbf: '1' }
        t.match(await client.call('subscribe', { channel: '$x', token: token(claims) }), { subscribe: {} })
        const late = { sub: 'u1', channel: '$y', exp: '1000000000' }
        t.match(await client.call('subscribe', { channel: '$y', token: token(late) }), refused(109))
        const bad = { sub: 'u1', channel: '$y', jti: 1 }
        t.match(await client.call('subscribe', { channel: '$y', token: token(bad) }), refused(103))
      })

      t.test('a refresh compares the channels of its token with those that are held', async t => {
        const client = await user(t, { channels: ['a'] })
        await gateway.api('subscribe', { user: 'u1', client: client.connect.client, channel: 'rec:api' })
        await client.push('subscribe')
        t.strictSame((await client.call('refresh', renewed({ channels: ['a', 'rec:api'] }))).refresh, {})
        await client.call('subscribe', { channel: 'b' })
        t.strictSame((await client.call('refresh', renewed({ channels: ['a', 'b'] }))).refresh, {}, 'its own')
        t.strictSame(
          (await client.call('refresh', renewed({ channels: ['a', 'own:#u1'] }))).refresh,
          {},
          'personal',
        )
        t.match(await client.call('refresh', renewed({ channels: ['a', 'nope:x'] })), refused(102))
        t.match(await client.call('refresh', renewed({ channels: ['a'], expire_at: at(-5) })), refused(110))
        await client.call('unsubscribe', { channel: 'a' })
        client.call('refresh', renewed({ channels: ['a'] })).catch(() => {})
        t.strictSame(await client.closed, insufficient, 'it comes back and has the channel again')

        const fewer = await user(t, { channels: ['a', 'own:#u1'] })
        fewer.call('refresh', renewed()).catch(() => {})
        t.strictSame(await fewer.closed, insufficient)
        const personal = await user(t, { channels: ['own:#u1'] })
        t.strictSame((await personal.call('refresh', renewed())).refresh, {}, 'not by its token alone')
      })

      t.test('the server API does not subscribe until a time that is over', async t => {
        const client = await user(t, { sub: 'u2' })
        const request = { user: 'u2', channel: 'late', expire_at: at(-5) }
        t.match(await gateway.api('subscribe', request), refused(100))
        t.strictSame(await gateway.api('subscribe', { ...request, user: 'nobody' }), { result: {} })
        await gateway.api('publish', { channel: 'late', data: 1 })
        await roundTrip(/** @type {any} */ (client))
        t.strictSame(client.raw.messages, [])
        t.strictSame(await gateway.api('subscribe', { ...request, expire_at: at(60) }), { result: {} })
        t.equal((await client.push('subscribe')).channel, 'late')
        client.raw.socket.terminate()
        await client.closed
      })
    }
  })
}
