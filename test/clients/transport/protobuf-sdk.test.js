// The JavaScript SDK in Protobuf mode over WebSocket. guarantees/ tests its recovery.

import { once } from 'node:events'
import { Centrifuge } from 'centrifuge/build/protobuf'
import t from 'tap'
import WebSocket from 'ws'
import { drivers, onDriver } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'
import { until } from '../../kit/wait.js'
import { at, forged, history, open, token, tokenClient } from '../session/support.js'

const config = {
  client: tokenClient({ expired_close_delay: '25s' }),
  rpc: { ping: { enabled: true } },
  channel: {
    without_namespace: { ...open, ...history, join_leave: true, force_push_join_leave: true },
    namespaces: [{ name: 'rec', ...open, ...history, force_recovery: true }, { name: 'shut' }],
  },
}

/** @param {any} data */
const bytes = data => Buffer.from(JSON.stringify(data))
/** @param {Uint8Array} data */
const text = data => Buffer.from(data).toString()

t.jobs = 2

for (const driver of drivers) {
  t.test(driver, async t => {
    const gateway = await startGateway(t, onDriver(driver, config))

    /** @param {any} t @param {object} [options] @returns {any} */
    function sdk(t, options = {}) {
      const client = new Centrifuge(gateway.ws, {
        websocket: WebSocket,
        token: token({ sub: 'u1', info: { n: 1 } }),
        minReconnectDelay: 1,
        maxReconnectDelay: 20,
        ...options,
      })
      t.teardown(() => client.disconnect())
      return client
    }

    /** Collects publications. @param {any} emitter a subscription, or a client @returns {any[]} */
    function collect(emitter) {
      /** @type {any[]} */
      const publications = []
      emitter.on('publication', (/** @type {any} */ publication) => publications.push(publication))
      return publications
    }

    t.test('connects, subscribes, publishes, reads presence and history, calls rpc', async t => {
      const client = sdk(t, { data: bytes({ hello: 1 }), name: 'test', version: '1' })
      const connected = once(client, 'connected')
      client.connect()
      const [context] = await connected
      t.match(context, { client: /^[0-9a-f-]{36}$/, transport: 'websocket' })
      const subscription = client.newSubscription('room')
      const got = collect(subscription)
      const joined = once(/** @type {any} */ (subscription), 'join')
      subscription.subscribe()
      await subscription.ready()
      const [{ info }] = await joined
      t.equal(info.user, 'u1')
      t.equal(text(info.connInfo), '{"n":1}')

      await subscription.publish(bytes({ é: '日本' }))
      await client.publish('room', Buffer.from([0, 255, 10]))
      await gateway.api('publish', { channel: 'room', data: [1.5], tags: { k: 'v' } })
      await gateway.api('publish', { channel: 'room', b64data: Buffer.from([10, 0]).toString('base64') })
      await until(() => got.length === 4)
      t.equal(text(got[0].data), '{"é":"日本"}')
      t.strictSame([...got[1].data], [0, 255, 10])
      t.equal(text(got[2].data), '[1.5]')
      t.strictSame(got[2].tags, { k: 'v' })
      t.strictSame([...got[3].data], [10, 0])
      t.strictSame(
        got.map(({ offset }) => offset),
        [1, 2, 3, 4],
      )
      t.equal(got[0].info.client, context.client)
      t.notOk(got[2].info)

      const { clients } = await subscription.presence()
      t.strictSame(Object.keys(clients), [context.client])
      t.equal(text(clients[context.client].connInfo), '{"n":1}')
      t.strictSame(await subscription.presenceStats(), { numClients: 1, numUsers: 1 })
      const list = await subscription.history({ limit: 2, since: { offset: 1, epoch: '' } })
      t.match(list, { offset: 4, publications: [{ offset: 2 }, { offset: 3, tags: { k: 'v' } }] })
      t.equal((await client.rpc('ping', new Uint8Array(0))).data?.length ?? 0, 0)

      const left = once(/** @type {any} */ (subscription), 'unsubscribed')
      subscription.unsubscribe()
      t.equal((await left)[0].code, 0)
    })

    t.test('a large payload arrives completely', async t => {
      const client = sdk(t)
      const subscription = client.newSubscription('big')
      const got = collect(subscription)
      subscription.subscribe()
      client.connect()
      await subscription.ready()
      const data = Buffer.alloc(60_000, Buffer.from([1, 2, 3, 10, 0, 255, 254]))
      await subscription.publish(data)
      await until(() => got.length === 1)
      t.ok(data.equals(got[0].data))
    })

    t.test('server-side subscriptions recover', async t => {
      const claims = { sub: 'u5', subs: { 'rec:server': { data: { w: 1 } } } }
      const client = sdk(t, { token: token(claims) })
      const subscribed = once(client, 'subscribed')
      const got = collect(client)
      client.connect()
      const [context] = await subscribed
      t.match(context, { channel: 'rec:server', recoverable: true, positioned: true })
      t.equal(text(context.data), '{"w":1}')
      client.disconnect()
      await gateway.api('publish', { channel: 'rec:server', data: 'missed' })
      client.connect()
      await until(() => got.length === 1)
      t.match(got, [{ channel: 'rec:server', offset: 1, data: Buffer.from('"missed"') }])
    })

    t.test('tokens are refreshed', async t => {
      let tokens = 0
      const client = sdk(t, {
        token: token({ sub: 'u1', exp: at(5) }),
        getToken: async () => {
          tokens++
          return token({ sub: 'u1', exp: at(60) })
        },
      })
      let subscriptionTokens = 0
      const subscription = client.newSubscription('$private', {
        getToken: async () =>
          token({ sub: 'u1', channel: '$private', exp: at(++subscriptionTokens === 1 ? 5 : 60) }),
      })
      /** @type {any[]} */
      const faults = []
      for (const type of ['error', 'disconnected'])
        client.on(type, (/** @type {any} */ it) => faults.push(it))
      subscription.on('error', (/** @type {any} */ it) => faults.push(it))
      subscription.subscribe()
      client.connect()
      await subscription.ready()
      await until(() => tokens >= 1 && subscriptionTokens >= 2)
      await client.publish('room', bytes(1))
      t.strictSame(faults, [])
    })

    t.test('errors and disconnects have their codes', async t => {
      const client = sdk(t)
      client.connect()
      await client.ready()
      const refused = client.newSubscription('shut:a')
      const unsubscribed = once(refused, 'unsubscribed')
      refused.subscribe()
      t.match((await unsubscribed)[0], { code: 103, reason: 'permission denied' })
      await t.rejects(client.publish('nope:a', bytes(1)), { code: 102, message: 'unknown channel' })
      await t.rejects(client.rpc('nope', bytes(1)), { code: 104 })
      const ended = once(client, 'disconnected')
      await gateway.api('disconnect', { user: 'u1', disconnect: { code: 4501, reason: 'that was it' } })
      t.match((await ended)[0], { code: 4501, reason: 'that was it' })

      const refusedClient = sdk(t, { token: forged({ sub: 'u1' }) })
      const out = once(refusedClient, 'disconnected')
      refusedClient.connect()
      t.match((await out)[0], { code: 3500, reason: 'invalid token' })
    })
  })
}
