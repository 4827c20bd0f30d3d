// The lifecycle log in a real Redis: stream and takeover, without gateways.

import { pino } from 'pino'
import t from 'tap'
import { LifecycleLog } from '../../../src/backends/lifecycle/index.js'
import { JournalClient } from '../../../src/backends/lifecycle/journal.js'
import { Takeover } from '../../../src/backends/lifecycle/takeover.js'
import { openLifecycleStore } from '../../../src/channels/broker/index.js'
import { loadConfig } from '../../../src/config/load.js'
import { withoutProgram } from '../../kit/needs.js'
import { startRedis } from '../../kit/servers/redis.js'
import { until } from '../../kit/wait.js'
import { Endpoint } from './endpoint.js'

const skip = withoutProgram('redis-server')
const log = pino({ level: 'silent' })
const STREAM = 'halley.lifecycle.stream'

/**
 * @param {any} t ends with this test @param {import('../../kit/servers/redis.js').RedisServer} server
 * @param {string} node @param {(up: boolean) => void} [onChange]
 */
async function storeOf(t, server, node, onChange = () => {}) {
  const { config } = loadConfig({
    base: { engine: { type: 'redis', redis: { address: server.address, connect_timeout: '10s' } } },
  })
  const store = await openLifecycleStore({ redis: config.engine.redis, node, onChange, log })
  t.teardown(() => store.close())
  store.connect()
  await until(() => store.up)
  return store
}

let started = null

/** The server of all tests. */
async function emptyRedis() {
  const server = await (started ??= startRedis(t))
  await server.call('FLUSHALL')
  return server
}

/** @param {import('../../kit/servers/redis.js').RedisServer} server @returns {Promise<string[]>} records */
const streamOf = async server => (await server.call('XRANGE', STREAM, '-', '+')).map(([, [, text]]) => text)

/** @param {import('../../kit/servers/redis.js').RedisServer} server */
const takenOver = server =>
  until(async () => (await server.call('ZSCORE', 'halley.lifecycle.nodes', 'dead')) === null, 'takeover')

/** @param {any} store @param {object} [parts] @returns {Takeover} */
const takeoverOf = (store, parts) =>
  new Takeover({
    store,
    delay: 60_000,
    log,
    readAll: () => [],
    disconnected: () => {},
    settled: async () => {},
    recorded: async () => {},
    ...parts,
  })

t.test('a batch is stored once, however often it is sent, and the stream is bounded', { skip }, async t => {
  const server = await emptyRedis()
  const [a, b] = [await storeOf(t, server, 'a'), await storeOf(t, server, 'b')]
  await a.append(1, ['one', 'two'], 0)
  await a.append(1, ['one', 'two'], 0)
  await b.append(1, ['three'], 0)
  await a.append(2, ['four'], 0)
  t.same(await streamOf(server), ['one', 'two', 'three', 'four'])
  for (let n = 3; n < 23; n++) await a.append(n, Array(500).fill('x'), 1000)
  const length = await server.call('XLEN', STREAM)
  t.ok(length >= 1000 && length < 2000, `${length}`)
})

t.test('a batch refused by Redis is not stored partly', { skip }, async t => {
  const server = await emptyRedis()
  const store = await storeOf(t, server, 'a')
  await server.call('SET', STREAM, 'something else')
  t.equal(await store.append(1, ['one'], 0).catch(({ code }) => code), 100)
  await server.call('DEL', STREAM)
  await store.append(1, ['one'], 0)
  t.same(await streamOf(server), ['one'])
})

t.test('Redis keeps a client until its disconnect is in the stream', { skip }, async t => {
  const server = await emptyRedis()
  const store = await storeOf(t, server, 'a')
  let record = () => {}
  /** @type {Promise<void>} */
  const recorded = new Promise(resolve => (record = resolve))
  const takeover = takeoverOf(store, { recorded: () => recorded })
  t.teardown(() => takeover.close())
  const client = new JournalClient(0, 1, 'anna', 'sse')
  const has = async id => (await server.call('HEXISTS', 'halley.lifecycle.journal.a', id)) === 1
  takeover.set('gone', client)
  await until(() => has('gone'))
  takeover.delete('gone', client)
  takeover.flush()
  // Changes have an order: this one is later.
  takeover.set('later', new JournalClient(0, 1, 'ben', 'sse'))
  await until(() => has('later'))
  t.ok(await has('gone'))
  record()
  await until(async () => !(await has('gone')))
  t.ok(await has('later'))
})

t.test('another node takes over from a dead one', { skip }, async t => {
  const server = await emptyRedis()
  const taken = []
  const nodeOf = async node => {
    let takeover = null
    const store = await storeOf(t, server, node, up => takeover?.changed(up))
    takeover = takeoverOf(store, {
      delay: 500,
      disconnected: (dead, id, client) => taken.push([dead, id, client]),
    })
    takeover.changed(true)
    return { store, takeover }
  }
  const dead = await nodeOf('dead')
  for (let n = 0; n < 1200; n++) {
    const client = new JournalClient(n % 2, 1000 + n, `user ${n}`, 'websocket')
    client.channels = new Set(['news', `personal ${n}`])
    dead.takeover.set(`client-${n}`, client)
    if (n % 100 === 0) dead.takeover.delete(`client-${n}`, client)
  }
  dead.takeover.flush()
  await until(
    async () => (await server.call('HLEN', 'halley.lifecycle.journal.dead')) === 1188,
    'the journal',
  )
  // As after SIGKILL: it sends nothing more.
  dead.store.close()

  const living = [await nodeOf('b'), await nodeOf('c')]
  t.teardown(() => Promise.all(living.map(({ takeover }) => takeover.close())))
  t.teardown(() => dead.takeover.close())
  await takenOver(server)
  // If this process is blocked, both may take over the same clients, with the same event ids.
  t.ok(taken.length >= 1188)
  t.equal(new Set(taken.map(([, id]) => id)).size, 1188)
  const [node, , client] = taken.find(([, id]) => id === 'client-1') ?? []
  t.equal(node, 'dead')
  t.match(client, { worker: 1, time: 1001, user: 'user 1', transport: 'websocket' })
  t.same(client?.channelList, ['news', 'personal 1'])
  t.equal(await server.call('EXISTS', 'halley.lifecycle.journal.dead', 'halley.lifecycle.taker.dead'), 0)
})

t.test('a takeover reads each part of the journal once', { skip }, async t => {
  const server = await emptyRedis()
  const [dead, store] = [await storeOf(t, server, 'dead'), await storeOf(t, server, 'living')]
  const [total, each] = [20_000, 200]
  for (let at = 0; at < total; at += 500)
    await dead.change(new Map(Array.from({ length: 500 }, (_, n) => [`client-${at + n}`, 'x'])))
  await dead.beat(1)
  await until(async () => (await store.beat(60_000)).dead.includes('dead'))
  await server.call('CONFIG', 'RESETSTAT')
  let cursor = '0'
  let taken = 0
  let calls = 0
  for (;;) {
    const part = await store.take('dead', 60_000, each, cursor)
    calls++
    if (part === null || part.clients.length === 0) break
    taken += part.clients.length
    cursor = part.cursor
    await store.forget(
      'dead',
      part.clients.map(([id]) => id),
    )
  }
  t.equal(taken, total)
  const scans = Number(/cmdstat_hscan:calls=(\d+)/.exec(await server.call('INFO', 'commandstats'))?.[1])
  t.ok(scans < 2 * calls + 10, `${scans} scans for ${calls} calls`)
  t.equal(await server.call('EXISTS', 'halley.lifecycle.journal.dead', 'halley.lifecycle.taker.dead'), 0)
})

t.test('a failing sink does not delay a takeover for the others', { skip }, async t => {
  const server = await emptyRedis()
  const dead = await storeOf(t, server, 'dead')
  const known = new JournalClient(0, 1, 'anna', 'sse').toText()
  await dead.change(new Map(Array.from({ length: 1200 }, (_, n) => [`client-${n}`, known])))
  await dead.beat(1)

  const endpoint = await Endpoint.start(t)
  endpoint.answer = () => 500
  const { config } = loadConfig({
    base: {
      engine: { type: 'redis', redis: { address: server.address } },
      lifecycle: { webhook: { url: endpoint.url, secret: 'hush' }, redis: { stream: true } },
    },
  })
  const redis = { ...config.lifecycle.redis, takeover_delay: 500 }
  const lifecycle = await LifecycleLog.open(
    { ...config, lifecycle: { ...config.lifecycle, redis } },
    { uid: 'living', name: 'living', version: '', startedAt: 0 },
    log,
  )
  t.teardown(() => {
    endpoint.answer = () => 204
    return lifecycle?.close()
  })
  await takenOver(server)
  const ends = (await streamOf(server)).map(text => JSON.parse(text)).filter(({ node }) => node === 'dead')
  t.equal(new Set(ends.map(({ client }) => client)).size, 1200)
  t.match(lifecycle?.figures.sinks, { webhook: { failing: true }, redis: { failing: false } })
})
