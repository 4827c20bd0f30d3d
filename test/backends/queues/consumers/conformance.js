// What every type of consumers promises, over a real server: each committed message has its effect at least once, and
// exactly once with an idempotency key, through outages, cut connections, deaths of the queue process and of nodes.

import { startGateway } from '../../../kit/gateway.js'
import { RawClient } from '../../../kit/raw-client.js'
import { startRedis } from '../../../kit/servers/redis.js'
import { TcpProxy } from '../../../kit/tcp-proxy.js'
import { pause, until } from '../../../kit/wait.js'
import { numbers, pluck } from '../../lists.js'
import { childOf, childrenOf } from '../gateways.js'
import { item } from './rig.js'

/**
 * @typedef {object} Source a started server with one queue
 * @property {number} port of the server, for a proxy before it
 * @property {TcpProxy} [proxy] where the server names its own address, and clients always come through a proxy
 * @property {(port: number, node?: string) => object} consumer block of a consumer that reaches the server at that
 *   port. node: name of one node, the same after its restart
 * @property {(payloads: string[]) => Promise<unknown>} send commits envelopes, in this order
 * @property {() => Promise<number>} pending messages that wait or are not acknowledged
 * @property {() => Promise<{payload: string, reason: string}[]>} [dead] takes messages from the dead-letter place
 * @property {() => void} pause the server hangs @property {() => void} resume
 * @property {() => Promise<void>} [restart] it ends and comes back with its messages
 *
 * @typedef {object} Adapter
 * @property {string} type @property {(t: any) => Promise<Source>} start
 * @property {boolean} ordered whether a failure keeps the order
 * @property {number} backlog messages of the backlog test, a multiple of 100
 * @property {number} [lot] messages that a fault hits; default: 500
 * @property {boolean} [restarts] whether its sources have `restart`
 * @property {string} [dead] reason of skipped messages in its dead-letter place
 * @property {boolean} [empty] whether messages may be empty; default: true
 * @property {number} [still] ms that the server hangs: longer than the time limit of connections
 * @property {number} [acknowledges] ms within which what was acknowledged has arrived; longer where that is a timer
 */

const CHANNEL = { without_namespace: { history_size: 200_000, history_ttl: '10m' } }
/** Messages of one call of `send`, and channels of a backlog. */
const SEND = 1000
const CHANNELS = 100
const POISON = ['x', 'null', '[]', '{"method":"nothing","payload":{}}', '{"method":"publish","payload":{}}']

/**
 * @param {number} from @param {number} count @param {string} [channel] @param {string} [mark] in each
 * @returns {string[]} envelopes with keys
 */
const envelopes = (from, count, channel = 'c', mark = '') =>
  Array.from({ length: count }, (_, i) => {
    const x = from + i
    const data = mark === '' ? { x } : { x, mark }
    return JSON.stringify({ method: 'publish', payload: { channel, data, idempotency_key: `k${x}` } })
  })

/** @param {number} count @param {string} mark in each @returns {string[]} envelopes without keys */
const marked = (count, mark) =>
  Array.from({ length: count }, (_, x) =>
    JSON.stringify({ method: 'publish', payload: { channel: 'c', data: { x, mark } } }),
  )

/**
 * @param {TcpProxy} proxy @param {string} mark @param {() => void} [now]
 * @returns {Promise<void>} when a server sends it
 */
const delivered = (proxy, mark, now = () => {}) =>
  new Promise(resolve => {
    proxy.onAnswer = bytes => {
      if (!bytes.includes(mark)) return
      proxy.onAnswer = () => {}
      now()
      resolve()
    }
  })

/** @returns {number} pid of the queue process; 0: none */
const queuePid = gateway => childOf(gateway, 'queues/main.js')

/** All processes at once: nothing is finished. @param {import('../../../kit/gateway.js').TestGateway} gateway */
async function killWhole(gateway) {
  const pids = [...childrenOf(gateway), /** @type {number} */ (gateway.process.pid)]
  for (const pid of pids) process.kill(pid, 'SIGKILL')
  await gateway.exited
}

/**
 * @param {import('../../../kit/gateway.js').TestGateway} gateway @param {string} [channel]
 * @returns {Promise<number>} publications
 */
const published = async (gateway, channel = 'c') =>
  (await gateway.api('history', { channel, limit: 0 })).result.offset ?? 0

/**
 * @param {import('../../../kit/gateway.js').TestGateway} gateway @param {number} limit
 * @returns {Promise<number[]>} in their order
 */
async function values(gateway, limit) {
  const { result } = await gateway.api('history', { channel: 'c', limit })
  return result.publications.map(({ data }) => data.x)
}

/** @param {RawClient} client @returns {any[]} publications that it has got */
const received = client => client.messages.flatMap(({ push }) => push?.pub ?? [])

const sorted = all => all.sort((a, b) => a - b)

/** @param {any} t tap @param {Adapter} adapter */
export function conformance(t, adapter) {
  const { type, start, ordered, backlog, lot = 500 } = adapter
  const gatewayOf = (t, source, port = source.proxy?.port ?? source.port, more = {}, node = 'node') =>
    startGateway(t, {
      ...more,
      workers: 1,
      log: { level: 'info' },
      channel: CHANNEL,
      consumers: [item(type, source.consumer(port, node))],
    })
  const proxyOf = async (t, source) => source.proxy ?? (await TcpProxy.start(t, source.port))
  const isEmpty = source => until(async () => (await source.pending()) === 0)
  const eachOnce = async (t, source, gateway, count) => {
    await until(async () => (await published(gateway)) === count)
    const got = await values(gateway, count)
    t.same(ordered ? got : sorted(got), numbers(count), 'each key was published once')
    await isEmpty(source)
  }

  t.test(
    `${type}: messages are handled in order, invalid ones skipped, pending ones left on stop`,
    async t => {
      const source = await start(t)
      const gateway = await gatewayOf(t, source, undefined, { client: { insecure: true } })
      const poison = adapter.empty === false ? POISON : ['', ...POISON]
      for (const [i, payload] of envelopes(0, 20).entries())
        await source.send([payload, ...poison.slice(i, i + 1)])
      await until(async () => (await published(gateway)) === 20)
      t.same(await values(gateway, 100), numbers(20))
      await isEmpty(source)
      if (adapter.dead !== undefined) {
        const dead = []
        await until(async () => dead.push(...((await source.dead?.()) ?? [])) === poison.length)
        t.same(
          dead,
          poison.map(payload => ({ payload, reason: adapter.dead })),
        )
      }
      const client = await RawClient.connected(gateway.ws)
      await client.subscribe('c')
      const total = Math.min(backlog, 2 * SEND)
      const sent = source.send(envelopes(20, total))
      await until(() => received(client).length > 0)
      t.same(await gateway.stop(), { code: 0, signal: null })
      await sent
      const got = received(client).map(({ data }) => data.x - 20)
      t.same(got, numbers(got.length), 'messages in progress reached a client in order, without a gap')
      await until(async () => (await source.pending()) === total - got.length)
    },
  )

  t.test(`${type}: no message is lost when connections are cut during responses`, async t => {
    const source = await start(t)
    const proxy = await proxyOf(t, source)
    const gateway = await gatewayOf(t, source, proxy.port)
    for (let round = 0; round < 5; round++) {
      const cut = delivered(proxy, `mark${round}.`, () => proxy.cut())
      await source.send(envelopes(round * lot, lot, 'c', `mark${round}.`))
      await cut
    }
    await eachOnce(t, source, gateway, 5 * lot)
  })

  t.test(`${type}: no message is lost when the server hangs`, async t => {
    const source = await start(t)
    const gateway = await gatewayOf(t, source)
    await source.send(envelopes(0, 10))
    await until(async () => (await published(gateway)) === 10)
    source.pause()
    await pause(adapter.still ?? 6000)
    t.ok((await gateway.api('publish', { channel: 'other', data: 1 })).result, 'clients are served')
    source.resume()
    await source.send(envelopes(10, 10))
    await until(async () => (await published(gateway)) === 20)
    await isEmpty(source)
    if (ordered) t.same(await values(gateway, 100), numbers(20))
  })

  if (adapter.restarts)
    t.test(`${type}: no message is lost when the server restarts`, async t => {
      const source = await start(t)
      const gateway = await gatewayOf(t, source)
      await source.send(envelopes(0, lot))
      await until(async () => (await published(gateway)) > 0)
      await source.restart?.()
      await source.send(envelopes(lot, lot))
      await eachOnce(t, source, gateway, 2 * lot)
    })

  t.test(`${type}: no message is lost when one of two nodes is killed`, async t => {
    const engine = { engine: { type: 'redis', redis: { address: (await startRedis(t)).address } } }
    const source = await start(t)
    const node = name => gatewayOf(t, source, undefined, { ...engine, client: { insecure: true } }, name)
    const victim = await node('victim')
    const other = await node('other')
    const client = await RawClient.connected(other.ws)
    t.teardown(() => client.close())
    await client.subscribe('c')
    await source.send(envelopes(0, lot))
    await until(async () => (await published(other)) === lot)
    t.same(sorted(await values(other, lot)), numbers(lot), 'two nodes publish each message once')
    await source.send(envelopes(lot, lot))
    await until(async () => (await published(other)) > lot)
    await killWhole(victim)
    await node('victim')
    await source.send(envelopes(2 * lot, lot))
    await until(async () => (await published(other)) === 3 * lot)
    await isEmpty(source)
    t.same(sorted(await values(other, 3 * lot)), numbers(3 * lot), 'the history has each key once')
    await until(() => received(client).length >= 3 * lot)
    const got = received(client)
    t.same(sorted(got.map(({ data }) => data.x)), numbers(3 * lot), 'a subscriber gets each once')
    t.same(pluck(got, 'offset'), numbers(3 * lot, 1), 'in the order of the channel')
  })

  t.test(`${type}: no message is lost when the queue process is killed or replaced`, async t => {
    const source = await start(t)
    const gateway = await gatewayOf(t, source)
    for (let round = 0; round < 2; round++) {
      await source.send(envelopes(round * lot, lot))
      await until(async () => (await published(gateway)) > round * lot)
      const pid = queuePid(gateway)
      process.kill(pid, 'SIGKILL')
      await gateway.line(line => line.msg === 'queue process died' && line.pid === pid)
      await until(() => queuePid(gateway) !== 0)
    }
    await source.send(envelopes(2 * lot, lot))
    // A process that is still starting is not replaced.
    await until(async () => (await published(gateway)) > 2 * lot)
    gateway.process.kill('SIGUSR2')
    await gateway.line(({ msg }) => msg === 'queue process replaced')
    await source.send(envelopes(3 * lot, lot))
    await eachOnce(t, source, gateway, 4 * lot)
  })

  t.test(`${type}: a killed gateway has acknowledged nothing before its publication`, async t => {
    const source = await start(t)
    const proxy = await proxyOf(t, source)
    const first = await gatewayOf(t, source, proxy.port)
    const before = delivered(proxy, 'marked')
    // Nothing can be published: the broker is in this process.
    process.kill(/** @type {number} */ (first.process.pid), 'SIGSTOP')
    await source.send(marked(20, 'marked'))
    await before
    await pause(adapter.acknowledges ?? 300)
    await killWhole(first)
    // The second one gets messages, and its acknowledgements do not arrive.
    const again = delivered(proxy, 'marked', () => proxy.hold())
    const second = await gatewayOf(t, source, proxy.port)
    await again
    await until(async () => (await published(second)) > 0)
    await killWhole(second)
    proxy.cut()
    const third = await gatewayOf(t, source, proxy.port)
    await until(async () => (await published(third)) >= 20)
    await isEmpty(source)
    const got = await values(third, 100)
    t.same(ordered ? got : sorted(got), numbers(20), 'each message is redelivered')
  })

  t.test(`${type}: all messages of a backlog of ${backlog} arrive`, async t => {
    const source = await start(t)
    const size = Math.min(SEND, backlog)
    for (let from = 0; from < backlog; from += size) {
      const batch = Array.from({ length: size }, (_, i) => envelopes(from + i, 1, `b${i % CHANNELS}`)[0])
      await source.send(batch)
    }
    const begun = performance.now()
    const gateway = await gatewayOf(t, source)
    await isEmpty(source)
    const rate = Math.round((backlog / (performance.now() - begun)) * 1000)
    t.comment(`${rate} messages a second, with the start`)
    const counts = await Promise.all(numbers(CHANNELS).map(channel => published(gateway, `b${channel}`)))
    t.same(counts, Array(CHANNELS).fill(backlog / CHANNELS), 'each message once')
  })
}
