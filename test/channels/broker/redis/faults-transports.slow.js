// Clients of every transport, over two gateways behind a load balancer, while servers and processes are killed.

import t from 'tap'
import { textOf } from '../../../guarantees/account.js'
import { receivers, transports } from '../../../guarantees/receivers.js'
import { needsRedis, startRedis } from '../../../kit/servers/redis.js'
import { TcpProxy } from '../../../kit/tcp-proxy.js'
import { until } from '../../../kit/wait.js'
import { namespaces, startNode } from './nodes.js'

needsRedis(t)

const TOTAL = 600
const IO_TIMEOUT = 2500
const channel = 'kept:all'
/** The response to a one-way poll while Redis is down: try again. */
const AWAY = 'HTTP 503'

t.test('every transport delivers once and in order through all faults', async t => {
  const redis = await startRedis(t, { aof: 'always' })
  const options = {
    redis: { io_timeout: `${IO_TIMEOUT}ms` },
    config: {
      ...transports,
      client: { ping_interval: '2s', pong_timeout: '1s' },
      channel: {
        namespaces: namespaces.map(one => ({
          ...one,
          allowed_delta_types: ['fossil'],
          delta_publish: true,
        })),
      },
    },
  }
  const [a, b] = await Promise.all([
    startNode(t, redis.address, options),
    startNode(t, redis.address, options),
  ])
  const balancer = await TcpProxy.start(t, a.port)
  balancer.targets.push(b.port)
  const all = Object.values(receivers).map(start => start(balancer.port, channel))
  t.teardown(() => {
    for (const { stop } of all) stop()
  })
  await Promise.all(all.map(({ ready }) => ready))

  /** @type {Record<number, () => unknown>} what happens before a publication */
  const faults = {
    50: async () => {
      await redis.kill()
      setTimeout(() => redis.restart(), 100)
    },
    150: () => {
      redis.stop()
      setTimeout(() => redis.cont(), 2 * IO_TIMEOUT)
    },
    200: () => balancer.cut(),
    250: () => process.kill(b.workerPids[0], 'SIGKILL'),
    300: () => redis.call('CLIENT', 'KILL', 'SKIPME', 'yes'),
    350: () => {
      balancer.targets.shift()
      for (const pid of [a.process.pid, ...a.workerPids]) process.kill(/** @type {number} */ (pid), 'SIGKILL')
    },
    450: async () => {
      await redis.kill()
      setTimeout(() => redis.restart(), 300)
    },
  }
  for (let n = 1; n <= TOTAL; n++) {
    await faults[n]?.()
    // A failed publish may have been published: with its key it can be repeated safely.
    const request = { channel, data: { n, text: textOf(n) }, idempotency_key: `n${n}` }
    await until(async () => {
      const { error } = await b.api('publish', request)
      if (error && error.code !== 100) t.fail(JSON.stringify(error))
      return !error
    })
  }
  await Promise.all(all.map(({ account }) => account.reaches(TOTAL)))
  t.same(
    all.flatMap(({ account }) => account.faults.filter(text => !text.includes(AWAY)).slice(0, 3)),
    [],
  )
  const losses = all.filter(({ account }) => account.losses > 0).map(({ account }) => account.label)
  t.same(losses, [], 'no client was notified of a loss')
})
