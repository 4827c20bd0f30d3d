// Two gateways share a Redis: what clients see when Redis, the way to it, or a worker fails. The `faults-*.slow.js`
// do more of it.

import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { needsRedis, startRedis } from '../../../kit/servers/redis.js'
import { post, StreamClient } from '../../../kit/stream-client.js'
import { TcpProxy } from '../../../kit/tcp-proxy.js'
import { until } from '../../../kit/wait.js'
import { channels, startNode } from './nodes.js'
import { audit, begin, Listener, Load, reachedBy, SdkListener, unrecoveredCounts } from './traffic.js'

needsRedis(t)

const redis = await startRedis(t, { aof: 'always' })
const proxy = await TcpProxy.start(t, redis.port)
const options = { redis: { io_timeout: '5s' }, workers: 1, config: { http_stream: { enabled: true } } }
const [a, b] = await Promise.all([
  startNode(t, redis.address, options),
  startNode(t, `redis://127.0.0.1:${proxy.port}`, options),
])

/** @param {any} t @param {string[]} channels @param {{stays?: boolean}} [options] */
async function listen(t, channels, options) {
  const listeners = [a, b].flatMap(({ ws }) => [
    new Listener(() => ws, channels, options),
    new SdkListener(() => ws, channels, options),
  ])
  await begin(t, listeners)
  return listeners
}

/** @param {string[]} channels */
const publishers = channels => new Load(() => [a.url, b.url], channels, { rate: 400 })

t.test('a restart of Redis with its data does not affect clients', async t => {
  const kept = channels('kept:restart', 4)
  const listeners = await listen(t, kept, { stays: true })
  const load = publishers(kept)
  for (let round = 0; round < 2; round++) {
    await load.acked(80)
    await redis.kill()
    await load.lost(20)
    // A pending call fails with an internal error when the connection ends.
    for (const gateway of [a, b])
      await until(async () => {
        const { error } = await gateway.api('publish', { channel: 'kept:away', data: 1 })
        t.equal(error.code, 100)
        return error.message === 'the broker is unavailable'
      })
    await redis.start()
  }
  await load.acked(80)
  await load.stop()
  await audit(t, load, listeners, a)
  t.equal(load.unanswered, 0)
})

t.test('a POST to a session of an unreachable node gets 503', async t => {
  const client = await StreamClient.connected(b.url, 'http_stream')
  const { session, node } = client.connect
  const body = JSON.stringify({ session, node, data: '{"id":9,"rpc":{}}' })
  const status = async () => (await post(`${a.url}/emulation`, body)).status
  t.equal(await status(), 204)
  await redis.kill()
  const unavailable = async () => (await a.api('publish', { channel: 'kept:post', data: 1 })).error
  await until(unavailable)
  t.equal(await status(), 503)
  await redis.start()
  await until(async () => !(await unavailable()) && (await status()) === 204)
  await client.close()
})

t.test('clients are notified of a gap longer than the history', async t => {
  const [long, short] = ['kept:cut', 'short:cut']
  const listeners = await listen(t, [long, short])
  /** @param {number} from @param {number} to */
  const publish = async (from, to) => {
    for (let n = from; n <= to; n++)
      for (const channel of [long, short]) {
        const { error } = await a.api('publish', { channel, data: { id: `n${n}` } })
        if (error) throw new Error(error.message)
      }
  }
  const received = async () => {
    for (const channel of [long, short]) {
      const { result } = await a.api('history', { channel, limit: 0 })
      await reachedBy(listeners, channel, result)
    }
  }
  await publish(1, 5)
  await received()
  const lines = b.lines.length
  proxy.refuses = true
  proxy.cut()
  await until(() => b.lines.slice(lines).some(({ msg }) => msg === 'redis is unreachable'))
  await publish(6, 25)
  proxy.refuses = false
  const cutOff = listeners.slice(2)
  await until(() => cutOff.every(({ tracks }) => tracks.get(short)?.unrecovered === 1))
  await publish(26, 30)
  await received()
  for (const [i, { faults, tracks }] of listeners.entries()) {
    t.same(faults, [])
    t.same([tracks.get(long)?.unrecovered, tracks.get(long)?.got.size], [0, 30])
    t.equal(tracks.get(short)?.unrecovered, i < 2 ? 0 : 1)
  }
})

t.test('clients of a killed worker recover from its replacement', async t => {
  const kept = channels('kept:worker', 4)
  const listeners = await listen(t, kept)
  const load = publishers(kept)
  await load.acked(80)
  process.kill(a.workerPids[0], 'SIGKILL')
  await until(() => a.workerPids.length === 2)
  await load.acked(80)
  await load.stop()
  await audit(t, load, listeners, a)
  t.same([...new Set(unrecoveredCounts(listeners))], [0])
})

t.test('clients are notified once when Redis restarts empty', async t => {
  const kept = channels('kept:lost', 4)
  const listeners = await listen(t, kept)
  const load = publishers(kept)
  await load.acked(80)
  await redis.kill()
  await rm(join(redis.dir, 'appendonlydir'), { recursive: true })
  await redis.start()
  await until(() => unrecoveredCounts(listeners).every(times => times > 0))
  await load.acked(80)
  await load.stop()
  await audit(t, load, listeners, a)
  t.same([...new Set(unrecoveredCounts(listeners))], [1])
})
