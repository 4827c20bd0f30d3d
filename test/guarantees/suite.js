// Delivery guarantees, tested over every transport.

import { startGateway } from '../kit/gateway.js'
import { TcpProxy } from '../kit/tcp-proxy.js'
import { pause, until } from '../kit/wait.js'
import { randomness, textOf } from './account.js'
import { receivers, transports } from './receivers.js'

const open = {
  allow_subscribe_for_client: true,
  allow_subscribe_for_anonymous: true,
  allowed_delta_types: ['fossil'],
  delta_publish: true,
  presence: true,
}
/** Publications that a history keeps and a client may recover: more than any test publishes. */
const HISTORY_SIZE = 5000
const kept = { ...open, history_size: HISTORY_SIZE, history_ttl: '120s', force_recovery: true }

/**
 * @typedef {object} Size publications of each test, and faults among them
 * @property {number} cut publications while connections are cut
 * @property {number} cutEvery publications from one cut to the next
 * @property {number} killed publications while workers are killed
 * @property {number} kills workers that are killed
 * @property {number} live publications without history
 * @property {number} batched publications of a batched channel
 * @property {boolean} cutBatched whether connections are cut during these
 */
/** Of the fast tier. @type {Size} */
export const SMALL = { cut: 60, cutEvery: 10, killed: 60, kills: 1, live: 40, batched: 30, cutBatched: false }
/** Of the slow tier. @type {Size} */
export const LARGE = {
  ...{ cut: 250, cutEvery: 25, killed: 240, kills: 2, live: 150 },
  ...{ batched: 250, cutBatched: true },
}

/** @param {string} driver */
const config = driver => ({
  ...transports,
  http_server: { driver },
  client: {
    allow_anonymous_connect_without_token: true,
    recovery_max_publication_limit: HISTORY_SIZE,
    history_max_publication_limit: HISTORY_SIZE,
    ping_interval: '2s',
    pong_timeout: '1s',
  },
  channel: {
    namespaces: [
      { name: 'kept', ...kept },
      { name: 'short', ...kept, history_size: 10 },
      { name: 'live', ...open },
      { name: 'batched', ...kept, batch_max_delay: '30ms', batch_max_size: 20 },
    ],
  },
})

/** @param {number} n */
const payload = n => ({ n, text: textOf(n) })

/**
 * Publishes the numbers from..to, one after another.
 * @param {import('../kit/gateway.js').TestGateway} gateway
 * @param {string} channel
 * @param {number} from
 * @param {number} to
 * @param {(n: number) => void} [afterEach] called with each number once it is published
 */
async function publish(gateway, channel, from, to, afterEach = () => {}) {
  for (let n = from; n <= to; n++) {
    const { error } = await gateway.api('publish', { channel, data: payload(n) })
    if (error) throw new Error(error.message)
    afterEach(n)
  }
}

/** Starts all receivers of one channel; they stop with the test. @param {any} t @param {number} port @param {string} channel */
async function startReceivers(t, port, channel) {
  const all = Object.values(receivers).map(start => start(port, channel))
  t.teardown(() => {
    for (const { stop } of all) stop()
  })
  await Promise.all(all.map(({ ready }) => ready))
  return all
}

/**
 * Waits until all have received the number, and asserts what they have received.
 * @param {any} t
 * @param {import('./receivers.js').Receiver[]} all
 * @param {number} [last]
 * @param {{lossless?: boolean}} [options]
 */
async function assertDelivered(t, all, last = 0, { lossless = false } = {}) {
  await Promise.all(all.map(({ account }) => account.reaches(last)))
  t.same(
    all.flatMap(({ account }) => account.faults.slice(0, 3)),
    [],
  )
  if (lossless)
    t.notOk(
      all.some(({ account }) => account.losses > 0),
      'no loss is reported',
    )
}

/** @param {any} t @param {'uws' | 'node'} driver @param {Size} size */
export async function testGuarantees(t, driver, size) {
  const gateway = await startGateway(t, config(driver))

  t.test('history: each publication arrives once and in order while connections are cut', async t => {
    const proxy = await TcpProxy.start(t, gateway.port)
    const all = await startReceivers(t, proxy.port, 'kept:cuts')
    const random = randomness(7)
    await publish(gateway, 'kept:cuts', 1, size.cut, n => {
      if (n % size.cutEvery === 0) proxy.cut(() => random(3) === 0)
    })
    await assertDelivered(t, all, size.cut, { lossless: true })
    t.ok(proxy.cuts > size.cut / 10, `${proxy.cuts} cuts`)
  })

  t.test('history: each publication arrives once and in order while workers are killed', async t => {
    const all = await startReceivers(t, gateway.port, 'kept:kills')
    /** @type {Map<number, number>} number of a publication -> index of the worker process to kill before it */
    const victims = new Map()
    for (let i = 1; i <= size.kills; i++) victims.set(Math.floor((i * size.killed) / (size.kills + 1)), i - 1)
    for (let n = 1; n <= size.killed; n++) {
      const victim = victims.get(n)
      if (victim !== undefined) {
        // workerPids lists all processes so far. With one more than the victim, some worker remains.
        await until(() => gateway.workerPids.length >= victim + 2)
        process.kill(gateway.workerPids[victim], 'SIGKILL')
      }
      // A publish gets no response if its worker is killed. Its idempotency key makes a repeat safe.
      const request = { channel: 'kept:kills', data: payload(n), idempotency_key: `n${n}` }
      await until(async () => {
        // Node's cluster may lose a connection that it hands to a dying worker: it is never answered.
        const answer = await Promise.race([gateway.api('publish', request), pause(3000)])
        return answer && !answer.error
      })
    }
    await assertDelivered(t, all, size.killed)
  })

  t.test('short history: the loss is reported, then publications continue in order', async t => {
    const proxy = await TcpProxy.start(t, gateway.port)
    const all = await startReceivers(t, proxy.port, 'short:gap')
    await publish(gateway, 'short:gap', 1, 5)
    await Promise.all(all.map(({ account }) => account.reaches(5)))
    proxy.refuses = true
    proxy.cut()
    await publish(gateway, 'short:gap', 6, 40)
    proxy.refuses = false
    // A long-poll session outlives its connections and keeps its messages: it loses nothing.
    const reported = () => all.every(({ account }) => account.losses > 0 || account.label.startsWith('poll'))
    let n = 41
    for (; !reported() || n <= 60; n++) {
      await publish(gateway, 'short:gap', n, n)
      await pause(20)
    }
    // One publication after the last report, for every receiver.
    await publish(gateway, 'short:gap', n, n)
    await assertDelivered(t, all, n)
  })

  t.test('no history: in order, and at most once except for one-way polls', async t => {
    const proxy = await TcpProxy.start(t, gateway.port)
    const all = await startReceivers(t, proxy.port, 'live:cuts')
    for (const { account } of all) {
      account.mayMiss = true
      // The cursor of a one-way poll has no position without history: two workers may deliver the same publication.
      account.mayRepeat = account.label === 'uni_poll'
    }
    const random = randomness(11)
    let n = 0
    while (n < size.live) {
      await publish(gateway, 'live:cuts', ++n, n)
      if (n % 20 === 0) proxy.cut(() => random(3) === 0)
    }
    await until(async () => {
      await publish(gateway, 'live:cuts', ++n, n)
      return all.every(({ account }) => account.last > size.live)
    })
    await assertDelivered(t, all)
  })

  t.test('batches: each publication arrives once and in order', async t => {
    const proxy = size.cutBatched ? await TcpProxy.start(t, gateway.port) : null
    const all = await startReceivers(t, proxy?.port ?? gateway.port, 'batched:cuts')
    const random = randomness(13)
    await publish(gateway, 'batched:cuts', 1, size.batched, n => {
      if (n % size.cutEvery === 0) proxy?.cut(() => random(3) === 0)
    })
    await assertDelivered(t, all, size.batched, { lossless: true })
  })

  t.test('presence: clients that have left are removed', async t => {
    const all = await startReceivers(t, gateway.port, 'kept:present')
    const count = async () =>
      (await gateway.api('presence_stats', { channel: 'kept:present' })).result.num_clients
    // One-way polls have no presence. A client that missed a pong on a busy machine has to reconnect first.
    t.ok(await until(async () => (await count()) === all.length - 1))
    for (const { stop } of all) stop()
    t.ok(await until(async () => (await count()) === 0))
  })
}
