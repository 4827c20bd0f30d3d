// All kinds of faults that lose no data, in sequence and concurrently, in an order chosen by the seed.

import t from 'tap'
import { randomness } from '../../../guarantees/account.js'
import { needsRedis, startRedis } from '../../../kit/servers/redis.js'
import { TcpProxy } from '../../../kit/tcp-proxy.js'
import { pause, until } from '../../../kit/wait.js'
import { channels, startNode } from './nodes.js'
import { audit, begin, Listener, Load, SdkListener } from './traffic.js'

needsRedis(t)

const SEED = Number(process.env.SEED ?? 1)
const FAULTS = 20
const IO_TIMEOUT = 2500

t.test('acknowledged publications are delivered once and in order through random faults', async t => {
  const redis = await startRedis(t, { aof: 'always' })
  const proxy = await TcpProxy.start(t, redis.port)
  const options = { redis: { io_timeout: `${IO_TIMEOUT}ms` } }
  const [a, b] = await Promise.all([
    startNode(t, redis.address, options),
    startNode(t, `redis://127.0.0.1:${proxy.port}`, options),
  ])
  const kept = channels('kept', 8)
  const next = randomness(SEED)
  // The lowest bits of its numbers have short periods.
  const random = (/** @type {number} */ below) => Math.floor((next(2 ** 31) / 2 ** 31) * below)
  const listeners = [a, b].flatMap(({ ws }) => [
    new Listener(() => ws, kept),
    new Listener(() => ws, kept),
    new SdkListener(() => ws, kept),
  ])
  // They are here at one time, and there at another.
  const wandering = [0, 1].map(() => new Listener(() => [a, b][random(2)].ws, kept))
  const everybody = [...listeners, ...wandering]
  await begin(t, everybody)
  const load = new Load(() => [a.url, b.url], kept, { rate: 400 })

  /** @param {import('../../../kit/gateway.js').TestGateway} gateway */
  const killWorker = async gateway => {
    const known = gateway.workerPids.length
    const victim = gateway.workerPids[known - 1 - random(2)]
    try {
      process.kill(victim, 'SIGKILL')
    } catch {
      return
    }
    await until(() => gateway.workerPids.length > known)
  }
  /** @type {Record<string, () => unknown>} */
  const faults = {
    'Redis is killed': async () => {
      await redis.kill()
      await pause(random(300))
      await redis.restart()
    },
    'Redis is stopped': async () => {
      redis.stop()
      await pause(random(2 * IO_TIMEOUT))
      redis.cont()
    },
    'one gateway is cut off': async () => {
      proxy.refuses = random(2) === 0
      proxy.cut()
      await pause(random(300))
      proxy.refuses = false
    },
    'some connections to Redis break': () => proxy.cut(() => random(2) === 0),
    'Redis drops all connections': () => redis.call('CLIENT', 'KILL', 'SKIPME', 'yes'),
    'a worker is killed': () => killWorker(random(2) === 0 ? a : b),
  }
  const names = Object.keys(faults)
  const done = []
  for (let i = 0; i < FAULTS; i++) {
    await load.acked(random(150) + 1)
    const name = names[i < names.length ? i : random(names.length)]
    done.push(name)
    await faults[name]()
    if (random(3) === 0) {
      const second = names[random(2) + 2]
      done.push(second)
      await faults[second]()
    }
  }
  await load.acked(100)
  await load.stop()
  await audit(t, load, everybody, a)
  t.same(
    everybody.flatMap(({ tracks }) => [...tracks.values()].filter(({ unrecovered }) => unrecovered > 0)),
    [],
    `no client was notified of a loss, with seed ${SEED}: ${done.join(', ')}`,
  )
})
