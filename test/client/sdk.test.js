// The JavaScript SDK over LongPollSocket. guarantees/ tests its recovery.

import { Centrifuge } from 'centrifuge'
import { Centrifuge as ProtobufCentrifuge } from 'centrifuge/build/protobuf'
import { LongPollSocket } from 'halley-gateway/client'
import t from 'tap'
import { at, history, open, token, tokenClient } from '../clients/session/support.js'
import { drivers } from '../kit/drivers.js'
import { startGateway } from '../kit/gateway.js'
import { until } from '../kit/wait.js'

const config = {
  poll: { enabled: true },
  client: tokenClient({ allow_anonymous_connect_without_token: true }),
  channel: {
    without_namespace: { ...open, ...history, force_push_join_leave: true, join_leave: true },
  },
  rpc: { ping: { enabled: true } },
}

const codecs = [
  {
    name: 'JSON',
    Client: Centrifuge,
    data: (/** @type {any} */ value) => value,
    read: (/** @type {any} */ data) => data,
  },
  {
    name: 'Protobuf',
    Client: ProtobufCentrifuge,
    data: (/** @type {any} */ value) => Buffer.from(JSON.stringify(value)),
    read: (/** @type {Uint8Array} */ data) => JSON.parse(Buffer.from(data).toString()),
  },
]

/** @param {any} t @param {any} Client @param {number} port @param {object} [options] */
function connect(t, Client, port, options = {}) {
  const client = new Client(`ws://127.0.0.1:${port}/connection/poll`, {
    websocket: LongPollSocket,
    minReconnectDelay: 20,
    maxReconnectDelay: 200,
    ...options,
  })
  t.teardown(() => client.disconnect())
  client.connect()
  return client
}

/** @param {any} emitter @param {string} type @param {(event: any) => boolean} [matches] @returns {Promise<any>} */
const event = (emitter, type, matches = () => true) =>
  new Promise(resolve => {
    const listener = (/** @type {any} */ context) => {
      if (!matches(context)) return
      emitter.off(type, listener)
      resolve(context)
    }
    emitter.on(type, listener)
  })

for (const driver of drivers) {
  t.test(`the official SDK on ${driver}`, async t => {
    const gateway = await startGateway(t, { ...config, http_server: { driver } })
    for (const { name, Client, data, read } of codecs) {
      t.test(`${name}: subscribes, publishes, reads presence and history, calls rpc`, async t => {
        const channel = `sdk-${name}`
        const client = connect(t, Client, gateway.port, { token: token({ sub: 'anna', exp: at(3600) }) })
        await client.ready()
        const subscription = client.newSubscription(channel)
        const joined = event(subscription, 'join')
        subscription.subscribe()
        await subscription.ready()
        t.equal((await joined).info.user, 'anna')
        const published = event(subscription, 'publication')
        await subscription.publish(data({ text: 'é🎈 <&>' }))
        const publication = await published
        t.same(read(publication.data), { text: 'é🎈 <&>' })
        t.equal(Number(publication.offset), 1)
        const presence = await subscription.presence()
        t.same(
          Object.values(presence.clients).map(({ user }) => user),
          ['anna'],
        )
        t.match(await subscription.presenceStats(), { numClients: 1, numUsers: 1 })
        const { publications } = await subscription.history({ limit: 10 })
        t.same(read(publications[0].data), { text: 'é🎈 <&>' })
        await client.rpc('ping', data({}))
        await t.rejects(client.rpc('unknown', data({})), { code: 104 })
        const got = []
        const all = event(subscription, 'publication', ({ data }) => got.push(read(data)) === 300)
        const numbers = [...Array(300).keys()]
        await Promise.all(numbers.map(n => subscription.publish(data(n))))
        await all
        t.same(got, numbers)
        const left = event(subscription, 'unsubscribed')
        subscription.unsubscribe()
        await left
      })

      t.test(`${name}: a client that disconnects leaves immediately`, async t => {
        const channel = `leave-${name}`
        const stays = connect(t, Client, gateway.port)
        const watched = stays.newSubscription(channel)
        watched.subscribe()
        await watched.ready()
        const goes = connect(t, Client, gateway.port)
        const subscription = goes.newSubscription(channel)
        const joined = event(watched, 'join')
        subscription.subscribe()
        await Promise.all([joined, subscription.ready()])
        const left = event(watched, 'leave')
        // Its last publication is still sent.
        const said = event(watched, 'publication')
        subscription.publish(data('bye')).catch(() => {})
        // The SDK sends it in a later microtask.
        await Promise.resolve().then(() => {})
        goes.disconnect()
        t.equal(read((await said).data), 'bye')
        t.ok((await left).info)
      })

      t.test(`${name}: disconnects by the server have code and reason`, async t => {
        const client = connect(t, Client, gateway.port, { token: token({ sub: 'ben' }) })
        await client.ready()
        const back = event(client, 'connecting')
        const disconnect = { code: 3011, reason: 'force reconnect' }
        await gateway.api('disconnect', { user: 'ben', disconnect })
        t.match(await back, disconnect)
        await client.ready()
        const end = event(client, 'disconnected')
        await gateway.api('disconnect', { user: 'ben' })
        t.match(await end, { code: 3503, reason: 'force disconnect' })
      })
    }

    t.test('tokens are refreshed', async t => {
      const refreshed = codecs.map(async ({ Client }) => {
        let count = 0
        const getToken = async () => token({ sub: 'anna', exp: at(2), n: count++ })
        const client = connect(t, Client, gateway.port, { getToken })
        await client.ready()
        await until(() => count >= 2)
        await client.rpc('ping', Buffer.from('{}'))
        t.equal(client.state, 'connected')
      })
      await Promise.all(refreshed)
    })
  })
}
