// A node cannot reach Redis for longer than its lease, or is frozen; meanwhile a backend gives orders about its clients
// through another node.

import './enter.js'
import t from 'tap'
import { config, connect, counts, missedOrders, numbers } from '../channels/broker/redis/orders.js'
import { pause, until } from '../kit/wait.js'
import { freeze, Network } from './network.js'
import { startNodeOn, startRedisOn } from './programs.js'

const network = new Network('redis', 'a', 'b')
const [redisHost, hostA, hostB] = ['redis', 'a', 'b'].map(name => network.host(name))
const redis = await startRedisOn(t, redisHost)

/** @param {any} t @param {any} [more] of the configuration */
async function startNodes(t, more = {}) {
  t.teardown(() => network.clear())
  await redis.call('FLUSHALL')
  const both = { ...config, ...more, client: { ...config.client, ...more.client } }
  return Promise.all([hostA, hostB].map(host => startNodeOn(t, host, redis.address, { config: both })))
}

/** @type {Record<string, (node: import('../kit/gateway.js').TestGateway) => (() => void)>} begins it, returns its end */
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

for (const [name, fault] of Object.entries(faults)) {
  /** The fault also ends with the test. @param {any} t @param {import('../kit/gateway.js').TestGateway} node */
  const begin = (t, node) => {
    const end = fault(node)
    t.teardown(end)
    return end
  }

  t.test(
    `a node ${name} for longer than its lease: it executes all orders before it serves again`,
    async t => {
      const [a, b] = await startNodes(t)
      await missedOrders(t, a, b, () => begin(t, b))
    },
  )

  t.test(
    `a node ${name} while its single-connection user connects elsewhere: the newer connection stays`,
    async t => {
      const single = { subscribe_to_user_personal_channel: { enabled: true, single_connection: true } }
      const [a, b] = await startNodes(t, { client: single })
      const [first, other] = await Promise.all([connect(b, 'single'), connect(b, 'other')])
      const end = begin(t, b)
      await counts(a, 1)
      const second = await connect(a, 'single')
      end()
      t.equal((await first.closed).code, 3504)
      await counts(a, 2)
      const third = await connect(b, 'single')
      t.equal((await second.closed).code, 3504)
      for (const client of [third, other]) t.notOk((await client.subscribe('live:y')).error)
      t.equal(third.ended, null)
      t.equal(other.ended, null)
    },
  )
}

t.test('a user admitted again while the node is unreachable stays connected', async t => {
  const [a, b] = await startNodes(t)
  const banned = await connect(b, 'user')
  network.part(redisHost, hostB)
  await counts(a, 1)
  t.same(await a.api('disconnect', { user: 'user' }), { result: {} })
  await pause(50)
  const again = await connect(b, 'user')
  network.clear()
  t.equal((await banned.closed).code, 3503)
  await counts(a, 2)
  t.notOk((await again.subscribe('live:x')).error)
  t.equal(again.ended, null)
  t.same(await a.api('disconnect', { user: 'user' }), { result: {} })
  t.equal((await again.closed).code, 3503)
})

t.test('after a longer outage than orders are kept, the clients of the node reconnect', async t => {
  const [a, b] = await startNodes(t)
  const [banned, witness] = await Promise.all([connect(b, 'banned'), connect(b, 'witness', ['kept:1'])])
  network.part(redisHost, hostB)
  await counts(a, 1)
  t.same(await a.api('disconnect', { user: 'banned' }), { result: {} })
  t.ok((await a.api('publish', { channel: 'kept:1', data: { n: 1 } })).result)
  // As the retention time of orders does.
  await redis.call('DEL', 'halley.orders.log')
  network.clear()
  t.equal((await banned.closed).code, 3014)
  t.equal((await witness.closed).code, 3014)
  t.same(numbers(witness), [])
  await b.line(({ msg }) => /missed orders are lost/.test(msg))
})

t.test('a node without Redis accepts no orders', async t => {
  const [, b] = await startNodes(t)
  const client = await connect(b, 'user')
  network.part(redisHost, hostB)
  await until(async () => (await b.api('disconnect', { user: 'user' })).error?.code === 100)
  t.equal(client.ended, null)
  network.clear()
  await until(async () => !(await b.api('disconnect', { user: 'user' })).error)
  t.equal((await client.closed).code, 3503)
})
