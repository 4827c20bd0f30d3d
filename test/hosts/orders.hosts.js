// A node is out of reach of Redis for longer than its lease, or stands still; meanwhile a backend gives orders about
// its clients through another node.

import './enter.js'
import t from 'tap'
import { makeToken } from '../auth/jwt.js'
import { RawClient } from '../raw-client.js'
import { open } from '../redis/nodes.js'
import { pause, until } from '../redis/servers.js'
import { freeze, Network } from './network.js'
import { startNodeOn, startRedisOn } from './programs.js'

const SECRET = 'a secret of several hosts, 32 bytes'
const kept = { history_size: 1000, history_ttl: '300s', force_recovery: true }
const publishing = { allow_publish_for_client: true, allow_publish_for_anonymous: true }
const config = {
  client: { token: { hmac_secret_key: SECRET } },
  channel: {
    without_namespace: open,
    namespaces: [
      { name: 'kept', ...open, ...kept },
      { name: 'live', ...open, ...publishing },
    ],
  },
}

const network = new Network('redis', 'a', 'b')
const [redisHost, hostA, hostB] = ['redis', 'a', 'b'].map(name => network.host(name))
const redis = await startRedisOn(t, redisHost)

/** @param {any} t @param {any} [more] of the configuration */
async function startNodes(t, more = {}) {
  await redis.call('FLUSHALL')
  const both = { ...config, ...more, client: { ...config.client, ...more.client } }
  return Promise.all([hostA, hostB].map(host => startNodeOn(t, host, redis.address, { config: both })))
}

/**
 * @param {import('../gateway.js').TestGateway} node
 * @param {string} user
 * @param {string[]} [channels]
 */
async function connect(node, user, channels = []) {
  const client = await RawClient.connected(node.ws, { token: makeToken({ sub: user }, SECRET) })
  for (const channel of channels) {
    const { error } = await client.subscribe(channel)
    if (error) throw new Error(`subscribe: ${error.code}`)
  }
  return client
}

/** @param {RawClient} client @returns {number[]} what it has received of the channel so far */
const numbers = client =>
  client.messages
    .filter(({ push }) => push?.pub && push.channel === 'kept:1')
    .map(({ push }) => push.pub.data.n)

/** @type {Record<string, (node: import('../gateway.js').TestGateway) => (() => void)>} starts it, returns its end */
const faults = {
  'cannot reach Redis': () => {
    network.part(redisHost, hostB)
    return () => network.clear()
  },
  'has no link': () => {
    network.unplug(hostB)
    return () => network.plug(hostB)
  },
  'stands still': node => freeze(node.process.pid),
}

/** @param {import('../gateway.js').TestGateway} a @returns {Promise<any>} the other node does not count any more */
const alone = a => until(async () => (await a.api('info')).result?.nodes.length === 1)

for (const [name, begin] of Object.entries(faults)) {
  t.test(
    `a node ${name} for longer than its lease: it executes all orders before it serves again`,
    async t => {
      const [a, b] = await startNodes(t)
      const users = [
        'banned',
        'unsubscribed',
        'expired',
        'expiring',
        'subscribed',
        'both',
        'listed',
        'witness',
      ]
      const all = await Promise.all(users.map(user => connect(b, user, ['kept:1'])))
      const client = Object.fromEntries(users.map((user, i) => [user, all[i]]))
      const reader = await connect(a, 'reader', ['kept:1', 'live:banned'])

      const end = begin(b)
      await alone(a)
      const order = async (/** @type {string} */ method, /** @type {any} */ params) =>
        t.same(await a.api(method, params), { result: {} }, method)
      await order('disconnect', { user: 'banned' })
      await order('unsubscribe', { user: 'unsubscribed', channel: 'kept:1' })
      await order('refresh', { user: 'expired', expired: true })
      await order('refresh', { user: 'expiring', expire_at: Math.floor(Date.now() / 1000) - 1 })
      await order('subscribe', { user: 'subscribed', channel: 'live:new' })
      await order('subscribe', { user: 'both', channel: 'live:both' })
      await order('unsubscribe', { user: 'both', channel: 'live:both' })
      await order('disconnect', { user: 'listed', whitelist: [client.listed.connect.client] })
      client.banned.send({ id: 99, publish: { channel: 'live:banned', data: 'too late' } })
      const sent = Array.from({ length: 20 }, (_, n) => n)
      for (const n of sent) t.ok((await a.api('publish', { channel: 'kept:1', data: { n } })).result)
      await until(() => numbers(reader).length === sent.length)
      end()

      t.equal((await client.banned.closed).code, 3503)
      t.equal((await client.expired.closed).code, 3005)
      t.equal((await client.expiring.closed).code, 3005)
      t.match(await client.unsubscribed.push('unsubscribe'), {
        channel: 'kept:1',
        unsubscribe: { code: 2000 },
      })
      t.match(await client.subscribed.push('subscribe'), { channel: 'live:new' })
      await until(() => numbers(client.witness).length === sent.length)
      await until(() => numbers(client.listed).length === sent.length)
      t.same(numbers(client.witness), sent)
      t.same(numbers(client.listed), sent)
      for (const user of ['banned', 'expired', 'expiring', 'unsubscribed'])
        t.same(numbers(client[user]), [], `${user}: nothing that came after the order`)

      await until(async () => (await a.api('info')).result?.nodes.length === 2)
      for (const channel of ['live:new', 'live:both']) await a.api('publish', { channel, data: 'x' })
      const { push } = await client.subscribed.next(({ push }) => push?.channel === 'live:new' && push.pub)
      t.equal(push.pub.data, 'x')
      t.same((await a.api('channels')).result.channels, {
        'kept:1': { num_clients: 5 },
        'live:banned': { num_clients: 1 },
        'live:new': { num_clients: 1 },
      })
      t.notOk(
        reader.messages.some(({ push }) => push?.channel === 'live:banned'),
        'what a client sends after its ban is not published',
      )
      t.notOk(b.lines.some(({ msg }) => /orders to connections are lost/.test(msg)))
    },
  )

  t.test(
    `a node ${name} while a user with a single connection comes to another one: the newer one stays`,
    async t => {
      const single = { subscribe_to_user_personal_channel: { enabled: true, single_connection: true } }
      const [a, b] = await startNodes(t, { client: single })
      const [first, other] = await Promise.all([connect(b, 'single'), connect(b, 'other')])
      const end = begin(b)
      await alone(a)
      const second = await connect(a, 'single')
      end()
      t.equal((await first.closed).code, 3504)
      await until(async () => (await a.api('info')).result?.nodes.length === 2)
      const third = await connect(b, 'single')
      t.equal((await second.closed).code, 3504)
      for (const client of [third, other]) t.notOk((await client.subscribe('live:y')).error)
      t.equal(third.ended, null)
      t.equal(other.ended, null)
    },
  )
}

t.test('a user that is admitted again while the node is away stays', async t => {
  const [a, b] = await startNodes(t)
  const banned = await connect(b, 'user')
  network.part(redisHost, hostB)
  await alone(a)
  t.same(await a.api('disconnect', { user: 'user' }), { result: {} })
  await pause(50)
  const again = await connect(b, 'user')
  network.clear()
  t.equal((await banned.closed).code, 3503)
  await until(async () => (await a.api('info')).result?.nodes.length === 2)
  t.notOk((await again.subscribe('live:x')).error)
  t.equal(again.ended, null)
  t.same(await a.api('disconnect', { user: 'user' }), { result: {} })
  t.equal((await again.closed).code, 3503)
})

t.test('a node that was away for longer than orders are kept: its clients reconnect', async t => {
  const [a, b] = await startNodes(t)
  const [banned, witness] = await Promise.all([connect(b, 'banned'), connect(b, 'witness', ['kept:1'])])
  network.part(redisHost, hostB)
  await alone(a)
  t.same(await a.api('disconnect', { user: 'banned' }), { result: {} })
  t.ok((await a.api('publish', { channel: 'kept:1', data: { n: 1 } })).result)
  // As the time does that they are kept.
  await redis.call('DEL', 'halley.orders.log')
  network.clear()
  t.equal((await banned.closed).code, 3014)
  t.equal((await witness.closed).code, 3014)
  t.same(numbers(witness), [])
  await b.line(({ msg }) => /orders to connections are lost/.test(msg))
})

t.test('a node that cannot reach Redis takes no orders', async t => {
  const [, b] = await startNodes(t)
  const client = await connect(b, 'user')
  network.part(redisHost, hostB)
  await until(async () => (await b.api('disconnect', { user: 'user' })).error?.code === 100)
  t.equal(client.ended, null)
  network.clear()
  await until(async () => !(await b.api('disconnect', { user: 'user' })).error)
  t.equal((await client.closed).code, 3503)
})
