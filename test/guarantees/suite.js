// What everybody may rely on, whichever way they came in: the same tests over every transport.

import { startGateway } from '../gateway.js'
import { TcpProxy } from '../tcp-proxy.js'
import { randomness, textOf } from './account.js'
import { receivers, transports } from './receivers.js'

const open = {
  allow_subscribe_for_client: true,
  allow_subscribe_for_anonymous: true,
  allowed_delta_types: ['fossil'],
  delta_publish: true,
  presence: true,
}
const LONG = 5000

/**
 * How much is published: `npm test` has the short form, `npm run test:slow` the long one.
 * @typedef {object} Size
 * @property {number} cuts publications while connections are cut
 * @property {number} cutEvery publications from one cut to the next
 * @property {number} kills publications while workers are killed
 * @property {number} killed workers
 * @property {number} live publications without history
 * @property {number} batched publications of a batched channel; connections are cut, if there are as many as `cuts`
 */
/** @type {Size} */
export const SHORT = { cuts: 60, cutEvery: 10, kills: 60, killed: 1, live: 40, batched: 30 }
/** @type {Size} */
export const LARGE = { cuts: 250, cutEvery: 25, kills: 240, killed: 2, live: 150, batched: 250 }

/** @param {string} driver */
const config = driver => ({
  ...transports,
  http_server: { driver },
  client: {
    allow_anonymous_connect_without_token: true,
    recovery_max_publication_limit: LONG,
    history_max_publication_limit: LONG,
    ping_interval: '2s',
    pong_timeout: '1s',
  },
  channel: {
    namespaces: [
      { name: 'kept', ...open, history_size: LONG, history_ttl: '120s', force_recovery: true },
      { name: 'short', ...open, history_size: 10, history_ttl: '120s', force_recovery: true },
      { name: 'live', ...open },
      {
        ...{ name: 'batched', ...open, history_size: LONG, history_ttl: '120s', force_recovery: true },
        ...{ batch_max_delay: '30ms', batch_max_size: 20 },
      },
    ],
  },
})

/** @param {number} n */
const payload = n => ({ n, text: textOf(n) })

/**
 * Publishes the numbers from..to, one after another.
 * @param {import('../gateway.js').TestGateway} gateway
 * @param {string} channel
 * @param {number} from
 * @param {number} to
 * @param {(n: number) => void | Promise<void>} [between]
 */
async function publish(gateway, channel, from, to, between = () => {}) {
  for (let n = from; n <= to; n++) {
    const { error } = await gateway.api('publish', { channel, data: payload(n) })
    if (error) throw new Error(error.message)
    await between(n)
  }
}

/**
 * Receivers of one channel, over every transport.
 * @param {any} t
 * @param {number} port
 * @param {string} channel
 */
async function everybody(t, port, channel) {
  const all = Object.values(receivers).map(start => start(port, channel))
  t.teardown(() => {
    for (const { stop } of all) stop()
  })
  await Promise.all(all.map(({ ready }) => ready))
  return all
}

/**
 * @param {any} t
 * @param {import('./receivers.js').Receiver[]} all
 */
function assertNoFaults(t, all) {
  t.same(
    all.flatMap(({ account }) => account.faults.slice(0, 3)),
    [],
  )
}

const pause = (/** @type {number} */ ms) => new Promise(resolve => setTimeout(resolve, ms))

/**
 * @param {any} t
 * @param {'uws' | 'node'} driver
 * @param {Size} size
 */
export async function testGuarantees(t, driver, size) {
  const gateway = await startGateway(t, config(driver))

  t.test('history: everything once and in order, though connections are cut all the time', async t => {
    const proxy = await TcpProxy.start(t, gateway.port)
    const all = await everybody(t, proxy.port, 'kept:cuts')
    const random = randomness(7)
    await publish(gateway, 'kept:cuts', 1, size.cuts, n => {
      if (n % size.cutEvery === 0) proxy.cut(() => random(3) === 0)
    })
    await Promise.all(all.map(({ account }) => account.reaches(size.cuts)))
    assertNoFaults(t, all)
    t.ok(proxy.cuts > size.cuts / 10, `${proxy.cuts} cuts`)
    t.ok(
      all.every(({ account }) => account.losses === 0),
      'nobody was told that something is missing',
    )
  })

  t.test('history: everything once and in order, though workers are killed', async t => {
    const all = await everybody(t, gateway.port, 'kept:kills')
    /** @type {Map<number, number>} publication -> how many workers there must have been */
    const kills = new Map()
    for (let i = 1; i <= size.killed; i++) kills.set(Math.floor((i * size.kills) / (size.killed + 1)), i + 1)
    for (let n = 1; n <= size.kills; n++) {
      const started = kills.get(n)
      if (started) {
        // Those that were killed before have others in their places.
        while (gateway.workerPids.length < started) await pause(20)
        process.kill(gateway.workerPids[started - 2], 'SIGKILL')
      }
      // A publish that dies with its worker has no answer; with its key it is safe to say it again.
      for (;;) {
        try {
          const request = { channel: 'kept:kills', data: payload(n), idempotency_key: `n${n}` }
          // Node's cluster may lose a connection that it hands to a worker which dies: nobody answers there.
          const answer = await Promise.race([gateway.api('publish', request), pause(3000)])
          if (answer && !answer.error) break
        } catch {
          await pause(20)
        }
      }
    }
    await Promise.all(all.map(({ account }) => account.reaches(size.kills)))
    assertNoFaults(t, all)
  })

  t.test('history that does not reach back: everybody is told, and goes on in order', async t => {
    const proxy = await TcpProxy.start(t, gateway.port)
    const all = await everybody(t, proxy.port, 'short:gap')
    await publish(gateway, 'short:gap', 1, 5)
    await Promise.all(all.map(({ account }) => account.reaches(5)))
    proxy.refuses = true
    proxy.cut()
    await publish(gateway, 'short:gap', 6, 40)
    proxy.refuses = false
    // A long-poll session outlives its connections: what it could not fetch waits for it.
    const reported = () => all.every(({ account }) => account.losses > 0 || account.label.startsWith('poll'))
    let n = 41
    for (; !reported() || n <= 60; n++) {
      await publish(gateway, 'short:gap', n, n)
      await pause(20)
    }
    // Who was told just now has got nothing since.
    await publish(gateway, 'short:gap', n, n)
    await Promise.all(all.map(({ account }) => account.reaches(n)))
    assertNoFaults(t, all)
  })

  t.test('no history: at most once and in order', async t => {
    const proxy = await TcpProxy.start(t, gateway.port)
    const all = await everybody(t, proxy.port, 'live:cuts')
    for (const { account } of all) {
      account.mayMiss = true
      // The cursor of a one-way poll says nothing of what is not kept: between two workers it may come twice.
      account.mayRepeat = account.label === 'uni_poll'
    }
    const random = randomness(11)
    let n = 0
    for (; n < size.live; ) {
      await publish(gateway, 'live:cuts', ++n, n)
      if (n % 20 === 0) proxy.cut(() => random(3) === 0)
    }
    while (!all.every(({ account }) => account.last > size.live)) {
      await publish(gateway, 'live:cuts', ++n, n)
      await pause(5)
    }
    assertNoFaults(t, all)
  })

  t.test('batches: everything once and in order', async t => {
    const cuts = size.batched >= size.cuts
    const proxy = cuts ? await TcpProxy.start(t, gateway.port) : null
    const all = await everybody(t, proxy?.port ?? gateway.port, 'batched:cuts')
    const random = randomness(13)
    await publish(gateway, 'batched:cuts', 1, size.batched, n => {
      if (n % size.cutEvery === 0) proxy?.cut(() => random(3) === 0)
    })
    await Promise.all(all.map(({ account }) => account.reaches(size.batched)))
    assertNoFaults(t, all)
    t.ok(
      all.every(({ account }) => account.losses === 0),
      'nobody was told that something is missing',
    )
  })

  t.test('presence: whoever leaves is gone', async t => {
    const all = await everybody(t, gateway.port, 'kept:present')
    const count = async () =>
      (await gateway.api('presence_stats', { channel: 'kept:present' })).result.num_clients
    // Stateless polls are in no presence; who has missed a pong on a busy machine comes back first.
    let present = await count()
    for (; present !== all.length - 1; present = await count()) await pause(20)
    t.equal(present, all.length - 1)
    for (const { stop } of all) stop()
    while ((await count()) > 0) await pause(20)
  })
}
