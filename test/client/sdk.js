import { Centrifuge } from 'centrifuge'
import { Centrifuge as ProtobufCentrifuge } from 'centrifuge/build/protobuf'
import { LongPollSocket } from 'halley-gateway/client'
import { at, history, open, SECRET, token } from '../clients/session/support.js'
import { startGateway } from '../kit/gateway.js'
import { TcpProxy } from '../kit/tcp-proxy.js'
import { until } from '../kit/wait.js'

const config = (/** @type {string} */ driver, /** @type {any} */ more = {}) => ({
  poll: { enabled: true },
  http_server: { driver },
  client: {
    token: { hmac_secret_key: SECRET },
    allow_anonymous_connect_without_token: true,
    ...more.client,
  },
  channel: {
    without_namespace: {
      ...open,
      ...history,
      force_recovery: true,
      force_push_join_leave: true,
      join_leave: true,
      ...more.channel,
    },
  },
  rpc: { ping: { enabled: true } },
})

const upTo = (/** @type {number} */ count, from = 0) => Array.from({ length: count }, (_, i) => from + i)

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

/**
 * @param {any} t
 * @param {any} Client
 * @param {number} port
 * @param {object} [options]
 */
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

/**
 * @param {any} t
 * @param {'uws' | 'node'} driver
 */
export function sdkSuite(t, driver) {
  t.test('the official SDK', async t => {
    const gateway = await startGateway(t, config(driver))
    for (const { name, Client, data, read } of codecs) {
      t.test(`the official SDK over ${name}: all that it can do`, async t => {
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
        await Promise.all(upTo(300).map(i => subscription.publish(data(i))))
        await all
        t.same(got, upTo(300))
        const left = event(subscription, 'unsubscribed')
        subscription.unsubscribe()
        await left
      })

      t.test(`${name}: a client that disconnects leaves presence at once`, async t => {
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
        // What it says last still goes out.
        const said = event(watched, 'publication')
        subscription.publish(data('bye')).catch(() => {})
        // The SDK sends it a little later.
        await Promise.resolve().then(() => {})
        goes.disconnect()
        t.equal(read((await said).data), 'bye')
        t.ok((await left).info)
      })

      t.test(`${name}: the server's disconnects are obeyed`, async t => {
        const client = connect(t, Client, gateway.port, { token: token({ sub: 'ben' }) })
        await client.ready()
        const back = event(client, 'connecting')
        await gateway.api('disconnect', {
          user: 'ben',
          disconnect: { code: 3011, reason: 'force reconnect' },
        })
        t.match(await back, { code: 3011, reason: 'force reconnect' })
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

    t.test('a killed worker: its clients come back and miss nothing', async t => {
      const clients = []
      for (let i = 0; i < 8; i++) {
        const client = connect(t, Centrifuge, gateway.port)
        const subscription = client.newSubscription('killed')
        const got = []
        subscription.on('publication', ({ data }) => got.push(data))
        subscription.subscribe()
        await subscription.ready()
        clients.push({ client, subscription, got })
      }
      await gateway.api('publish', { channel: 'killed', data: 1 })
      const [pid] = gateway.workerPids
      process.kill(pid, 'SIGKILL')
      await gateway.line(({ msg }) => msg === 'worker died')
      for (let n = 2; n <= 20; n++) {
        const publish = () => gateway.api('publish', { channel: 'killed', data: n, idempotency_key: `${n}` })
        // Connections of the dead worker may still be in use.
        await until(publish)
      }
      const whole = upTo(20, 1)
      for (const { subscription, got } of clients) {
        if (got.length < 20) await event(subscription, 'publication', () => got.length >= 20)
        t.same(got, whole)
      }
    })
  })
}

/**
 * @param {any} t
 * @param {'uws' | 'node'} driver
 */
export function sdkStorm(t, driver) {
  t.test(
    `${driver}: thousands of messages over a network that cuts connections: each once, in order`,
    async t => {
      const gateway = await startGateway(t, config(driver, { channel: { history_size: 5000 } }))
      const proxy = await TcpProxy.start(t, gateway.port)
      const receivers = codecs.map(({ Client, read, name }) => {
        const client = connect(t, Client, proxy.port)
        const receiver = { name, connects: 0 }
        client.on('connected', () => receiver.connects++)
        const subscription = client.newSubscription('storm')
        /** @type {number[]} */
        const offsets = []
        const numbers = new Set()
        subscription.on('publication', (/** @type {any} */ { data, offset }) => {
          offsets.push(Number(offset))
          numbers.add(read(data))
        })
        subscription.on('subscribed', (/** @type {any} */ { wasRecovering, recovered }) => {
          if (wasRecovering && !recovered) t.fail('it was told that it missed something')
        })
        subscription.subscribe()
        return Object.assign(receiver, { subscription, offsets, numbers })
      })
      for (const { subscription } of receivers) await subscription.ready()
      // The same cuts in each run.
      let seed = 42
      const random = () => (seed = (seed * 1103515245 + 12345) % 2 ** 31) / 2 ** 31
      const COUNT = 1500
      for (let n = 0; n < COUNT; n += 10) {
        await Promise.all(upTo(10, n).map(data => gateway.api('publish', { channel: 'storm', data })))
        if (random() < 0.25) proxy.cut(() => random() < 0.7)
      }
      for (const receiver of receivers) {
        const { name, subscription, offsets, numbers } = receiver
        if (offsets.at(-1) !== COUNT)
          await event(subscription, 'publication', ({ offset }) => Number(offset) === COUNT)
        t.same(offsets, upTo(COUNT, 1), `${name}: each offset once, in order`)
        t.equal(numbers.size, COUNT, `${name}: all of them`)
        t.equal(receiver.connects, 1, `${name}: the session outlived all connections`)
      }
      t.ok(proxy.cuts > 15, `${proxy.cuts} cuts`)
    },
  )
}
