// client.rate_limit.redis_user_command: two gateways that share nothing else count the commands of a user together.

import t from 'tap'
import { fetch } from '../../kit/fetch.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { needsRedis, startRedis } from '../../kit/servers/redis.js'
import { until } from '../../kit/wait.js'
import { anonymous, error, open, SECRET, token, user } from './support.js'

needsRedis(t)

const REFUSED = error(111, 'too many requests', true)
const redis = await startRedis(t)

/** @param {number} rate an hour */
const limit = rate => ({ enabled: true, buckets: [{ interval: '1h', rate }] })

/** @param {object} [options] of the layer @param {object} [client] */
const start = (options, client) =>
  startGateway(t, {
    workers: 1,
    prometheus: { enabled: true },
    uni_websocket: { enabled: true },
    client: {
      token: { hmac_secret_key: SECRET },
      allow_anonymous_connect_without_token: true,
      rate_limit: {
        redis_user_command: {
          enabled: true,
          publish: limit(10),
          presence: { enabled: true, buckets: [{ interval: '1s', rate: 10 }] },
          subscribe: limit(100),
          history: {
            enabled: true,
            buckets: [
              { interval: '1h', rate: 100 },
              { interval: '2h', rate: 3 },
            ],
          },
          connect: limit(5),
          redis: { address: redis.address, io_timeout: '1h' },
          timeout: '10s',
          ...options,
        },
      },
      ...client,
    },
    channel: { without_namespace: open },
  })

const [a, b] = await Promise.all([start(), start({ fail_closed: true }, { concurrency: 8 })])
const nodes = [a, b]

/**
 * The codes of the replies, 0: no error.
 * @param {import('../../kit/protocol-client.js').ProtocolClient} client @param {string} method @param {number} count
 */
const repeat = async (client, method, count) =>
  (
    await Promise.all(Array.from({ length: count }, () => client.call(method, { channel: 'room', data: 1 })))
  ).map(reply => reply.error?.code ?? 0)

// Before the workers are connected to Redis, they check nothing.
for (const gateway of nodes) {
  await until(async () => {
    const client = await user(t, gateway, { sub: `ready on ${gateway.port}` })
    await repeat(client, 'publish', 11)
    return (await repeat(client, 'publish', 1))[0] === 111
  })
}

t.test('two nodes count together', async t => {
  const clients = await Promise.all(nodes.map(gateway => user(t, gateway, { sub: 'ann' })))
  const codes = (await Promise.all(clients.map(client => repeat(client, 'publish', 6)))).flat()
  t.strictSame(codes.sort(), [...Array(10).fill(0), 111, 111])
  t.match(await clients[0].call('publish', { channel: 'room', data: 1 }), { error: REFUSED })
  const other = await user(t, a, { sub: 'bob' })
  t.strictSame(await repeat(other, 'publish', 10), Array(10).fill(0), 'another user')
  const nobody = await anonymous(t, a)
  t.strictSame(await repeat(nobody, 'publish', 30), Array(30).fill(0), 'anonymous users have no limit')
})

t.test('replies keep their order', async t => {
  const client = await user(t, a, { sub: 'orderly' })
  const channel = 'room'
  const commands = Array.from({ length: 24 }, (_, i) => ({
    id: i + 10,
    ...(i % 2 === 0 ? { publish: { channel, data: i } } : { presence_stats: { channel } }),
  }))
  client.send(...commands)
  const ids = []
  for (let i = 0; i < commands.length; i++) ids.push((await client.next()).id)
  t.strictSame(
    ids,
    commands.map(({ id }) => id),
  )
})

t.test('a refusal by one bucket takes no token of the others', async t => {
  const client = await user(t, a, { sub: 'two' })
  t.strictSame(await repeat(client, 'history', 6), [108, 108, 108, 111, 111, 111])
  const [, first, second] = (await redis.call('HGET', 'halley.rate.two', 'redis_user_command history')).split(
    ' ',
  )
  t.match([Math.floor(first), Math.floor(second)], [97, 0])
})

t.test('users may have any names', async t => {
  for (const sub of ['a b', '🎈', '__proto__', '{x}', 'x'.repeat(500)]) {
    const client = await user(t, a, { sub })
    t.strictSame(await repeat(client, 'publish', 11), [...Array(10).fill(0), 111], sub.slice(0, 20))
  }
})

t.test('the tokens of a user expire when all buckets are full', async t => {
  const client = await user(t, a, { sub: 'brief' })
  // Connects count, too: without their tokens the key expires after 3 tenths of a second.
  await redis.call('DEL', 'halley.rate.brief')
  t.strictSame(await repeat(client, 'presence', 3), [0, 0, 0])
  const left = await redis.call('PTTL', 'halley.rate.brief')
  t.ok(left <= 300, `${left} ms`)
  await until(async () => (await redis.call('EXISTS', 'halley.rate.brief')) === 0)
})

t.test('connects of a user on all nodes', async t => {
  const request = { token: token({ sub: 'often' }) }
  for (let i = 0; i < 5; i++) await user(t, nodes[i % 2], { sub: 'often' })
  for (const { ws } of nodes) {
    const client = await RawClient.open(ws)
    t.teardown(() => client.socket.terminate())
    t.strictSame((await client.call('connect', request)).error, REFUSED)
    const oneWay = await RawClient.open(ws.replace('websocket', 'uni_websocket'))
    oneWay.send(request)
    t.strictSame(await oneWay.closed, { code: 3013, reason: 'too many requests' })
  }
})

t.test(
  'with client.concurrency an unsubscribe does not overtake a subscribe that waits for Redis',
  async t => {
    const client = await user(t, b, { sub: 'quick' })
    const channel = 'left'
    for (let round = 0; round < 5; round++) {
      client.send({ id: 10, subscribe: { channel } }, { id: 11, unsubscribe: { channel } })
      t.match(await client.next(), { id: 10, subscribe: {} })
      t.match(await client.next(), { id: 11, unsubscribe: {} })
      t.strictSame((await b.api('presence', { channel })).result.presence, {})
    }
  },
)

t.test('without Redis commands pass, or fail with error 100 (fail_closed)', async t => {
  const unchecked = async (/** @type {string} */ url) =>
    Number(/^halley_rate_unchecked_total (\d+)$/m.exec(await (await fetch(`${url}/metrics`)).text())?.[1])
  const [open, closed] = await Promise.all(nodes.map(gateway => user(t, gateway, { sub: 'cut off' })))
  t.strictSame(await repeat(open, 'publish', 9), Array(9).fill(0))
  const before = await unchecked(a.url)
  await redis.end()
  await Promise.all(nodes.map(gateway => gateway.line(({ msg }) => msg === 'redis is unreachable')))
  t.strictSame(await repeat(open, 'publish', 3), [0, 0, 0])
  t.strictSame(await repeat(closed, 'publish', 3), [100, 100, 100])
  await user(t, a, { sub: 'new' })
  await until(async () => (await unchecked(a.url)) >= before + 4)
})
