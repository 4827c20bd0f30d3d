// What every type of consumers promises, over a real server: each committed message has its effect at least once, and
// exactly once with an idempotency key, through outages, cut connections and deaths of the queue process.

import { readFileSync } from 'node:fs'
import { startGateway } from '../gateway.js'
import { RawClient } from '../raw-client.js'
import { startRedis } from '../redis/servers.js'
import { pause, until } from '../redis/waiting.js'
import { TcpProxy } from '../tcp-proxy.js'

/**
 * @typedef {object} Source a started server with one queue
 * @property {number} port of the server, for a proxy before it
 * @property {(port: number) => object} consumer item of `consumers`, which reaches the server at that port
 * @property {(payloads: string[]) => Promise<void>} send commits envelopes, in this order
 * @property {() => Promise<number>} pending messages that wait or are not acknowledged
 * @property {() => void} pause the server stands still @property {() => void} resume
 * @property {() => Promise<void>} [restart] it ends and comes back with its messages
 *
 * @typedef {object} Adapter
 * @property {string} type @property {(t: any) => Promise<Source>} start
 * @property {boolean} ordered whether a failure keeps the order
 * @property {number} backlog messages of the backlog test
 * @property {boolean} [restarts] whether its sources have `restart`
 */

const CHANNEL = { without_namespace: { history_size: 200_000, history_ttl: '10m' } }
const SEND = 1000

/** @param {number} from @param {number} count @param {string} [channel] @returns {string[]} envelopes with keys */
const envelopes = (from, count, channel = 'c') =>
  Array.from({ length: count }, (_, i) => {
    const x = from + i
    return JSON.stringify({ method: 'publish', payload: { channel, data: { x }, idempotency_key: `k${x}` } })
  })

/** @param {import('../gateway.js').TestGateway} gateway @returns {number[]} pids of its workers and queue process */
function childrenOf({ process: { pid } }) {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number)
}

/** @param {import('../gateway.js').TestGateway} gateway @returns {number} pid of its queue process; 0: none */
function queuePid(gateway) {
  const is = (/** @type {number} */ child) =>
    readFileSync(`/proc/${child}/cmdline`, 'utf8').includes('queues/main.js')
  return childrenOf(gateway).find(is) ?? 0
}

/** All processes at once: nothing is finished. @param {import('../gateway.js').TestGateway} gateway */
async function killWhole(gateway) {
  const pids = [...childrenOf(gateway), /** @type {number} */ (gateway.process.pid)]
  for (const pid of pids) process.kill(pid, 'SIGKILL')
  await gateway.exited
}

/** @param {import('../gateway.js').TestGateway} gateway @param {string} [channel] @returns {Promise<number>} publications */
const published = async (gateway, channel = 'c') =>
  (await gateway.api('history', { channel, limit: 0 })).result.offset ?? 0

/** @param {import('../gateway.js').TestGateway} gateway @param {number} limit @returns {Promise<number[]>} in their order */
async function values(gateway, limit) {
  const { result } = await gateway.api('history', { channel: 'c', limit })
  return result.publications.map((/** @type {any} */ { data }) => data.x)
}

/** @param {any} t tap @param {Adapter} adapter */
export function conformance(t, { type, start, ordered, backlog, restarts = false }) {
  /** @param {any} t @param {Source} source @param {number} [port] @param {object} [more] of the configuration */
  const gatewayOf = (t, source, port = source.port, more = {}) =>
    startGateway(t, {
      ...more,
      workers: 1,
      log: { level: 'info' },
      channel: CHANNEL,
      consumers: [source.consumer(port)],
    })
  const numbers = (/** @type {number} */ count) => Array.from({ length: count }, (_, i) => i)

  t.test(`${type}: messages in order; poison is skipped and delays nothing`, async t => {
    const source = await start(t)
    const gateway = await gatewayOf(t, source)
    const poison = [
      '',
      'x',
      'null',
      '[]',
      '{"method":"nothing","payload":{}}',
      '{"method":"publish","payload":{}}',
    ]
    for (const [i, payload] of envelopes(0, 20).entries())
      await source.send([payload, poison[i % poison.length]])
    await until(async () => (await published(gateway)) === 20)
    t.same(await values(gateway, 100), numbers(20))
    await until(async () => (await source.pending()) === 0)
  })

  t.test(`${type}: connections are cut in the middle of answers`, async t => {
    const source = await start(t)
    const proxy = await TcpProxy.start(t, source.port)
    const gateway = await gatewayOf(t, source, proxy.port)
    for (let round = 0; round < 5; round++) {
      await source.send(envelopes(round * 200, 200))
      await until(async () => (await published(gateway)) > round * 200)
      proxy.cut()
    }
    await until(async () => (await published(gateway)) === 1000)
    t.same(
      (await values(gateway, 2000)).sort((a, b) => a - b),
      numbers(1000),
      'each once, by its key',
    )
    await until(async () => (await source.pending()) === 0)
  })

  t.test(`${type}: the server stands still`, async t => {
    const source = await start(t)
    const gateway = await gatewayOf(t, source)
    await source.send(envelopes(0, 10))
    await until(async () => (await published(gateway)) === 10)
    source.pause()
    // Longer than the time limit of its connections.
    await pause(6000)
    t.equal(
      (await gateway.api('publish', { channel: 'other', data: 1 })).error,
      undefined,
      'clients are served',
    )
    source.resume()
    await source.send(envelopes(10, 10))
    await until(async () => (await published(gateway)) === 20)
    await until(async () => (await source.pending()) === 0)
    if (ordered) t.same(await values(gateway, 100), numbers(20))
  })

  if (restarts)
    t.test(`${type}: the server ends and comes back`, async t => {
      const source = await start(t)
      const gateway = await gatewayOf(t, source)
      await source.send(envelopes(0, 500))
      await until(async () => (await published(gateway)) > 0)
      await source.restart?.()
      await source.send(envelopes(500, 100))
      await until(async () => (await published(gateway)) === 600)
      const got = await values(gateway, 1000)
      if (!ordered) got.sort((a, b) => a - b)
      t.same(got, numbers(600), 'each once, by its key')
      await until(async () => (await source.pending()) === 0)
    })

  t.test(`${type}: of two nodes one is killed whole, and starts again`, async t => {
    const engine = { engine: { type: 'redis', redis: { address: (await startRedis(t)).address } } }
    const source = await start(t)
    const node = () => gatewayOf(t, source, source.port, { ...engine, client: { insecure: true } })
    const victim = await node()
    const other = await node()
    const client = await RawClient.connected(other.ws)
    t.teardown(() => client.close())
    await client.subscribe('c')
    await source.send(envelopes(0, 500))
    await until(async () => (await published(other)) > 0)
    await killWhole(victim)
    await source.send(envelopes(500, 500))
    await node()
    await source.send(envelopes(1000, 100))
    await until(async () => (await published(other)) >= 1100)
    await until(async () => (await source.pending()) === 0)
    const sorted = (/** @type {number[]} */ all) => all.sort((a, b) => a - b)
    t.same(sorted(await values(other, 2000)), numbers(1100), 'each once in the history, by its key')
    const pubs = () => client.messages.flatMap(({ push }) => push?.pub ?? [])
    await until(() => pubs().length >= 1100)
    t.same(sorted(pubs().map(({ data }) => data.x)), numbers(1100), 'a subscriber gets each once')
    t.same(
      pubs().map(({ offset }) => offset),
      numbers(1100).map(n => n + 1),
      'in the order of the channel',
    )
  })

  t.test(`${type}: the queue process is killed between work and acknowledgement`, async t => {
    const source = await start(t)
    const gateway = await gatewayOf(t, source)
    for (let round = 0; round < 3; round++) {
      await source.send(envelopes(round * 500, 500))
      await until(async () => (await published(gateway)) > round * 500)
      const pid = queuePid(gateway)
      process.kill(pid, 'SIGKILL')
      await gateway.line(line => line.msg === 'queue process died' && line.pid === pid)
      await until(() => queuePid(gateway) !== 0)
    }
    await until(async () => (await published(gateway)) === 1500)
    t.same(
      (await values(gateway, 2000)).sort((a, b) => a - b),
      numbers(1500),
      'each once, by its key',
    )
    await until(async () => (await source.pending()) === 0)
  })

  t.test(
    `${type}: a rolling restart replaces the queue process, and the end leaves nothing behind`,
    async t => {
      const source = await start(t)
      const gateway = await gatewayOf(t, source)
      await source.send(envelopes(0, 300))
      gateway.process.kill('SIGUSR2')
      await gateway.line(({ msg }) => msg === 'queue process replaced')
      await source.send(envelopes(300, 300))
      await until(async () => (await published(gateway)) === 600)
      t.same(
        (await values(gateway, 1000)).sort((a, b) => a - b),
        numbers(600),
        'each once, by its key',
      )
      await until(async () => (await source.pending()) === 0)
      t.same(await gateway.stop(), { code: 0, signal: null })
    },
  )

  t.test(`${type}: a backlog of ${backlog} messages: each arrives`, async t => {
    const source = await start(t)
    const gateway = await gatewayOf(t, source)
    const begun = performance.now()
    const channels = []
    for (let from = 0; from < backlog; from += SEND) {
      channels.push(`b${from}`)
      await source.send(envelopes(from, SEND, `b${from}`))
    }
    await until(async () => (await source.pending()) === 0)
    const ms = performance.now() - begun
    t.comment(`${Math.round((backlog / ms) * 1000)} messages a second, with their sending`)
    const wrong = []
    for (const channel of channels) if ((await published(gateway, channel)) !== SEND) wrong.push(channel)
    t.same(wrong, [], 'each message once')
  })
}
