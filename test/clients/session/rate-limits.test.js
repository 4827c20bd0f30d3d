// client.rate_limit, seen by clients. Buckets refill in an hour, so that no test depends on time.

import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { codecs } from '../../compatibility/support.js'
import { fetch } from '../../kit/fetch.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { until } from '../../kit/wait.js'
import { anonymous, error, open, SECRET, token, user } from './support.js'

const REFUSED = error(111, 'too many requests', true)
const MAP = { subscription_type: 'map', ...open }
const STATE = { type: 1, phase: 2, limit: 1 }

const base = {
  workers: 1,
  http_api: { key: 'key' },
  log: { level: 'debug' },
  prometheus: { enabled: true },
  uni_websocket: { enabled: true },
  rpc: { ping: { enabled: true, method: 'ping' } },
  client: {
    allowed_origins: ['*'],
    ping_interval: '10m',
    token: { hmac_secret_key: SECRET },
    allow_anonymous_connect_without_token: true,
  },
  channel: {
    proxy: { subscribe: { endpoint: 'http://127.0.0.1:1/down' } },
    without_namespace: open,
    namespaces: [
      { name: 'chat', ...open },
      { name: 'down', ...open, subscribe_proxy_enabled: true },
      {
        name: 'board',
        ...MAP,
        map: {
          mode: 'persistent',
          min_page_size: 1,
          allow_publish_for_client: true,
          allow_publish_for_anonymous: true,
          allow_remove_for_client: true,
          allow_remove_for_anonymous: true,
        },
      },
    ],
  },
}

const gateway = await startGateway(t, base)

/** @param {number} rate an hour @param {object} [more] of the block */
const limit = (rate, more) => ({ enabled: true, buckets: [{ interval: '1h', rate }], ...more })

let reloads = 0
/** Applies `client.rate_limit`. @param {object} rate_limit */
async function use(rate_limit) {
  const file = join(gateway.folder, 'config.json')
  const { port } = gateway
  const config = {
    ...base,
    health: { enabled: true },
    overload: { max_tick: '0s' },
    http_server: { address: '127.0.0.1', port },
    client: { ...base.client, rate_limit },
  }
  await writeFile(`${file}.new`, JSON.stringify(config))
  await rename(`${file}.new`, file)
  gateway.process.kill('SIGHUP')
  reloads++
  await until(() => gateway.lines.filter(({ msg }) => msg === 'configuration reloaded').length === reloads)
}

/** @param {object} commands of the layer */
const useForClients = commands => use({ client_command: { enabled: true, ...commands } })

/** @typedef {import('../../kit/protocol-client.js').ProtocolClient} Client */

/** @param {Client} client @param {number} count @param {string} method @param {object} request */
async function repeat(client, count, method, request) {
  const replies = []
  for (let i = 0; i < count; i++) replies.push(client.call(method, request))
  return (await Promise.all(replies)).map(reply => reply.error?.code ?? 0)
}

/** @param {Client} client @param {number} count @param {string} [channel] */
const publish = (client, count, channel = 'room') => repeat(client, count, 'publish', { channel, data: 1 })

/** @param {number} code @param {number} count */
const times = (code, count) => Array(count).fill(code)

t.test('the second publish is refused, and may be tried again', async t => {
  await useForClients({ publish: limit(1) })
  for (const [codec, connect] of Object.entries(codecs)) {
    const client = await connect(t, gateway)
    const [first, second] = [
      client.call('publish', { channel: 'room', data: 1 }),
      client.call('publish', { channel: 'room', data: 2 }),
    ]
    t.match(await first, { publish: {} }, codec)
    t.strictSame({ ...(await second).error }, REFUSED, codec)
    t.strictSame(await repeat(client, 3, 'presence', { channel: 'room' }), [0, 0, 0], 'others have no limit')
    const other = await connect(t, gateway)
    t.strictSame(await publish(other, 1), [0], 'each connection has its own bucket')
  }
})

t.test('replies keep their order', async t => {
  await useForClients({ publish: limit(2) })
  const client = await anonymous(t, gateway)
  const channel = 'room'
  client.send(
    ...[1, 2, 3].map(id => ({ id, publish: { channel, data: id } })),
    { id: 4, presence: { channel } },
    { id: 5, publish: { channel, data: 5 } },
  )
  const replies = []
  for (let i = 0; i < 5; i++) replies.push(await client.next())
  t.strictSame(
    replies.map(({ id, error }) => [id, error?.code]),
    [
      [1, undefined],
      [2, undefined],
      [3, 111],
      [4, undefined],
      [5, 111],
    ],
  )
})

t.test('total counts the commands that are not refused', async t => {
  await useForClients({ total: limit(3), publish: limit(1) })
  const client = await anonymous(t, gateway)
  t.strictSame(await publish(client, 6), [0, 111, 111, 111, 111, 111])
  t.strictSame(await repeat(client, 3, 'rpc', { method: 'ping' }), [0, 0, 111])
})

t.test('a command refused by total takes no token of its own bucket', async t => {
  await useForClients({ total: limit(1), publish: limit(2) })
  const client = await anonymous(t, gateway)
  t.strictSame(await publish(client, 3), [0, 111, 111])
  await useForClients({ publish: limit(2) })
  t.strictSame(await publish(client, 2), [0, 111])
})

t.test('all buckets of a list must have a token', async t => {
  const buckets = [
    { interval: '1h', rate: 100 },
    { interval: '2h', rate: 20 },
  ]
  await useForClients({ publish: { enabled: true, buckets } })
  const client = await anonymous(t, gateway)
  t.strictSame(await publish(client, 22), [...times(0, 20), 111, 111])
})

t.test('the limit of a namespace replaces that of the command', async t => {
  const namespace_overrides = [{ namespace_name: 'chat', ...limit(20) }]
  await useForClients({ publish: limit(5, { namespace_overrides }) })
  const client = await anonymous(t, gateway)
  t.strictSame(await publish(client, 21, 'chat:1'), [...times(0, 20), 111])
  t.strictSame(await publish(client, 6), [...times(0, 5), 111])
  const outside = [{ namespace_name: '', ...limit(2) }]
  await useForClients({ publish: limit(5, { namespace_overrides: outside }) })
  const another = await anonymous(t, gateway)
  t.strictSame(await publish(another, 3), [0, 0, 111], 'an empty name is for channels without a namespace')
  t.strictSame(await publish(another, 6, 'chat:1'), [...times(0, 5), 111])
})

t.test('an override without buckets or not enabled counts as none', async t => {
  for (const override of [{ enabled: true }, { ...limit(5), enabled: false }]) {
    await useForClients({
      publish: limit(1, { namespace_overrides: [{ namespace_name: 'chat', ...override }] }),
    })
    const client = await anonymous(t, gateway)
    t.strictSame(await publish(client, 2, 'chat:1'), [0, 111])
  }
})

t.test('default is for commands without a limit, each of which has its own bucket', async t => {
  await useForClients({ default: limit(2), publish: limit(3), history: { enabled: true } })
  const client = await anonymous(t, gateway)
  t.strictSame(await publish(client, 4), [0, 0, 0, 111])
  const rpc = { method: 'ping' }
  t.strictSame(await repeat(client, 3, 'rpc', rpc), [0, 0, 111])
  t.strictSame(await repeat(client, 3, 'presence', { channel: 'room' }), [0, 0, 111])
  t.strictSame(await repeat(client, 3, 'history', { channel: 'room' }), [108, 108, 111], 'no buckets')
})

t.test('methods have limits, in both forms', async t => {
  const forms = {
    method_overrides: [{ method: 'ping', ...limit(1) }],
    method_override: { ping: limit(1) },
  }
  for (const [form, overrides] of Object.entries(forms)) {
    await useForClients({ rpc: limit(2, { [form]: overrides }) })
    const client = await anonymous(t, gateway)
    t.strictSame(await repeat(client, 2, 'rpc', { method: 'ping' }), [0, 111], form)
    t.strictSame(await repeat(client, 3, 'rpc', { method: 'other' }), [104, 104, 111], form)
  }
})

t.test('an acknowledgement counts in total and in its own override only', async t => {
  const ack = { method: '$ack' }
  await useForClients({ default: limit(1), rpc: limit(1), total: limit(3) })
  t.strictSame(await repeat(await anonymous(t, gateway), 4, 'rpc', ack), [104, 104, 104, 111])
  await useForClients({ rpc: limit(1, { method_overrides: [{ method: '$ack', ...limit(2) }] }) })
  t.strictSame(await repeat(await anonymous(t, gateway), 3, 'rpc', ack), [104, 104, 111])
})

t.test('writes to maps and tracking have their own limits', async t => {
  await useForClients({
    publish: limit(1),
    map_publish: limit(2),
    map_remove: limit(1),
    sub_refresh: limit(1),
    track: limit(2),
  })
  const client = await anonymous(t, gateway)
  const map = { channel: 'board:writes', key: 'k', type: 1 }
  t.strictSame(await repeat(client, 3, 'publish', { ...map, data: 1 }), [0, 0, 111])
  t.strictSame(await repeat(client, 2, 'publish', { ...map, removed: true }), [0, 111])
  t.strictSame(await publish(client, 2), [0, 111])
  const refresh = { channel: 'room', token: 'x' }
  t.strictSame(await repeat(client, 2, 'sub_refresh', refresh), [103, 111])
  t.strictSame(await repeat(client, 3, 'sub_refresh', { channel: 'room', type: 1 }), [103, 103, 111])
  t.strictSame(await repeat(client, 3, 'sub_refresh', { channel: 'room', type: 2 }), [103, 103, 103])
})

t.test('unsubscribe is never refused, and takes tokens', async t => {
  await useForClients({ unsubscribe: limit(1), total: limit(3) })
  const client = await anonymous(t, gateway)
  await client.subscribe('room')
  t.strictSame(await repeat(client, 5, 'unsubscribe', { channel: 'room' }), times(0, 5))
  t.strictSame(await publish(client, 1), [111])
  await useForClients({ total: limit(3) })
  const another = await anonymous(t, gateway)
  t.strictSame(await repeat(another, 5, 'unsubscribe', { channel: 'room' }), times(0, 5), 'only total')
  t.strictSame(await publish(another, 1), [111])
})

t.test('a client without the next page of a map begins again', async t => {
  await useForClients({ subscribe: limit(2) })
  const channel = 'board:pages'
  for (const key of ['a', 'b', 'c', 'd']) await gateway.api('map_publish', { channel, key, data: 1 })
  const client = await anonymous(t, gateway)
  const page = async (cursor = '') => client.subscribe(channel, { ...STATE, cursor })
  const first = await page()
  const second = await page(first.subscribe.cursor)
  t.strictSame((await page(second.subscribe.cursor)).error, REFUSED)
  await use({})
  t.strictSame((await page()).subscribe.state, first.subscribe.state)
})

t.test('limits of users: all connections together; anonymous users have none', async t => {
  await use({ user_command: { enabled: true, publish: limit(3), total: limit(5) } })
  const nobody = await anonymous(t, gateway)
  t.strictSame(await publish(nobody, 1000), times(0, 1000))
  // Each connect takes a token of total.
  const [a, b, c] = [
    await user(t, gateway, { sub: 'ann' }),
    await user(t, gateway, { sub: 'ann' }),
    await user(t, gateway, { sub: 'bob' }),
  ]
  t.strictSame([...(await publish(a, 2)), ...(await publish(b, 2))], [0, 0, 0, 111])
  t.strictSame(await repeat(a, 1, 'rpc', { method: 'ping' }), [111], 'total')
  t.strictSame(await publish(c, 3), [0, 0, 0])
})

t.test('the layer of connections comes first', async t => {
  await use({
    client_command: { enabled: true, publish: limit(1) },
    user_command: { enabled: true, publish: limit(2) },
  })
  const [a, b, c] = [
    await user(t, gateway, { sub: 'layers' }),
    await user(t, gateway, { sub: 'layers' }),
    await user(t, gateway, { sub: 'layers' }),
  ]
  t.strictSame(await publish(a, 3), [0, 111, 111], 'refused commands take no token of the user')
  t.strictSame(await publish(b, 1), [0])
  t.strictSame(await publish(c, 1), [111])
})

t.test('connects of a user', async t => {
  await use({ user_command: { enabled: true, connect: limit(1) } })
  const request = { token: token({ sub: 'often' }) }
  const client = await user(t, gateway, { sub: 'often' })
  t.strictSame(await publish(client, 2), [0, 0])
  const second = await RawClient.open(gateway.ws)
  t.teardown(() => second.socket.terminate())
  t.strictSame((await second.call('connect', request)).error, REFUSED)
  const oneWay = await RawClient.open(gateway.ws.replace('websocket', 'uni_websocket'))
  oneWay.send(request)
  t.strictSame(await oneWay.closed, { code: 3013, reason: 'too many requests' })
  await anonymous(t, gateway)
})

t.test('too many error replies close the connection after the last one', async t => {
  await use({
    client_error: { enabled: true, total: limit(20) },
    client_command: { enabled: true, publish: limit(1) },
  })
  const errors = async (
    /** @type {Client} */ client,
    /** @type {string} */ channel,
    /** @type {number} */ n,
  ) => repeat(client, n, 'subscribe', { channel })
  for (const [codec, connect] of Object.entries(codecs)) {
    const client = await connect(t, gateway)
    t.strictSame(await errors(client, 'unknown:1', 21), times(102, 21), codec)
    t.strictSame(await client.closed, { code: 3509, reason: 'too many errors' })
  }
  const limited = await anonymous(t, gateway)
  t.strictSame(await publish(limited, 22), [0, ...times(111, 21)], 'refusals by limits count')
  t.strictSame(await limited.closed, { code: 3509, reason: 'too many errors' })
  const unlucky = await anonymous(t, gateway)
  t.strictSame(await errors(unlucky, 'down:1', 30), times(100, 30), 'faults of the server do not')
  t.strictSame(await errors(unlucky, 'unknown:1', 20), times(102, 20))
  t.strictSame(await publish(unlucky, 1), [0], 'it is still connected')
})

t.test('a reload changes limits of connected clients; tokens remain, up to the new capacity', async t => {
  await useForClients({ publish: limit(10) })
  const client = await anonymous(t, gateway)
  t.strictSame(await publish(client, 2), [0, 0])
  await useForClients({ publish: limit(5) })
  t.strictSame(await publish(client, 6), [...times(0, 5), 111])
  await useForClients({ publish: limit(10) })
  t.strictSame(await publish(client, 1), [111], 'a larger bucket is not filled at once')
  await use({})
  t.strictSame(await publish(client, 30), times(0, 30))
  await useForClients({ publish: limit(1) })
  t.strictSame(await publish(client, 1), [111])
})

t.test('refusals are counted by limit', async t => {
  await use({
    client_command: { enabled: true, presence_stats: limit(1) },
    client_error: { enabled: true, total: limit(1) },
  })
  const read = async (/** @type {string} */ block, /** @type {string} */ command) => {
    const text = await (await fetch(`${gateway.url}/metrics`)).text()
    return Number(
      new RegExp(`^halley_rate_limited_total{block="${block}",command="${command}"} (\\d+)$`, 'm').exec(
        text,
      )?.[1] ?? 0,
    )
  }
  const client = await anonymous(t, gateway)
  t.strictSame(await repeat(client, 3, 'presence_stats', { channel: 'room' }), [0, 111, 111])
  await client.closed
  await until(async () => (await read('client_command', 'presence_stats')) === 2)
  // One in this test, three before.
  await until(async () => (await read('client_error', 'total')) === 4)
})
