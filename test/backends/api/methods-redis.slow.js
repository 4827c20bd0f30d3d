import { join } from 'node:path'
import t from 'tap'
import { tempDir } from '../../kit/folders.js'
import { needsRedis, startRedis } from '../../kit/servers/redis.js'
import { Watcher } from '../../kit/watcher.js'
import { clientOf, embed, methodsSuite } from './methods-suite.js'

needsRedis(t)

const redis = await startRedis(t)
/** Shorter than the lease of a worker with Redis (7 s), ms. */
const MAX_STOP = 6000
const engine = { type: 'redis', redis: { address: redis.address } }

t.test('with Redis, a worker runs the calls', async t => {
  const gateway = await embed(t, { engine })
  t.test('gateway object', async t => methodsSuite(t, gateway, gateway, 'own'))
  t.test('HTTP client', async t => methodsSuite(t, gateway, clientOf(t, gateway), 'http'))
})

t.test('a call to a killed worker is retried on another one, or fails with an error', async t => {
  const gateway = await embed(t, { engine })
  const pids = new Set()
  gateway.on('worker', ({ pid, state }) => state === 'ended' && pids.add(pid))
  const first = (await gateway.info()).nodes[0]
  t.ok(first.uid)
  const listening = new Promise(resolve =>
    gateway.on('worker', ({ state }) => state === 'listening' && resolve(undefined)),
  )
  process.kill(gateway.workers[0].pid, 'SIGKILL')
  const outcomes = await Promise.allSettled([
    ...Array.from({ length: 50 }, (_, n) => gateway.publish('his:kill', n)),
    ...Array.from({ length: 50 }, () => gateway.history('his:kill', { limit: 1 })),
  ])
  const failed = outcomes.filter(({ status }) => status === 'rejected')
  for (const { reason } of /** @type {any[]} */ (failed))
    t.match(reason, { name: 'ApiError', code: 100, message: /the worker exited before responding/ })
  t.equal(
    outcomes.slice(50).filter(({ status }) => status === 'rejected').length,
    0,
    'reads are repeated in another worker',
  )
  await listening
  t.match(await gateway.publish('his:kill', 'after'), { offset: /\d/ })
})

t.test('a call waits while all workers are slow', async t => {
  // A socket's path must be short.
  const folder = tempDir(t)
  const socket = join(folder, 's')
  const gateway = await embed(t, { engine, worker: { liveness_timeout: '0s' }, stats: { socket } })
  const watcher = await Watcher.at(t, socket)
  const pids = gateway.workers.map(({ pid }) => pid)
  const signal = name => pids.map(pid => process.kill(pid, name))
  t.teardown(() => signal('SIGCONT'))
  let answer = null
  let lasted = 0
  let tries = 0
  do {
    const begun = performance.now()
    signal('SIGSTOP')
    const { seq } = await watcher.snapshot(({ workers }) => workers.every(({ state }) => state === 'silent'))
    // The primary's own ticks may count it later.
    await watcher.snapshot(later => later.seq >= seq + 2)
    const published = gateway.publish('his:late', 1).catch(error => error)
    signal('SIGCONT')
    lasted = performance.now() - begun
    answer = await published
    // On a busy machine a worker may be blocked for longer, and consider its connection to Redis lost.
  } while (lasted > MAX_STOP || (answer.code === 100 && ++tries < 5))
  t.match(answer, { offset: /\d/ })
})
