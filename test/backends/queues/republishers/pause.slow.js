// Servers of all types hang for 30 s, longer than the timeouts of their clients.

import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { startGateway } from '../../../kit/gateway.js'
import { until } from '../../../kit/wait.js'
import { numbers } from '../../lists.js'
import { join, metricsOf, openConfig } from '../gateways.js'
import { DESTINATIONS } from './destinations.js'

const PAUSE_MS = 30_000
/** Interval between publication rounds, ms. */
const ROUND_MS = 500

const types = Object.keys(DESTINATIONS).filter(type => {
  const missing = DESTINATIONS[type].without()
  if (missing) t.comment(`without ${type}: ${missing}`)
  return !missing
})

t.test('servers that hang for 30 s delay no client and lose no message', { timeout: 120_000 }, async t => {
  const servers = await Promise.all(types.map(type => DESTINATIONS[type].open(t)))
  const gateway = await startGateway(t, {
    ...openConfig,
    workers: 1,
    republish: [
      ...types.map((type, i) => ({
        name: type,
        enabled: true,
        type,
        channels: ['a', 'b'],
        [type]: servers[i].block,
      })),
      // On the first server, Redis.
      {
        name: 'must',
        enabled: true,
        type: types[0],
        channels: ['must'],
        required: true,
        required_timeout: '500ms',
        [types[0]]: { ...servers[0].block, stream: 'must' },
      },
    ],
  })
  const figures = async family => {
    const metrics = await metricsOf(gateway)
    return types.map(type => metrics.get(`halley_republish_${family}{republisher_name="${type}"}`))
  }
  await until(async () => (await figures('up')).every(up => up === 1))
  const [client, other] = [await join(t, gateway), await join(t, gateway)]
  let next = 0
  /** @returns {Promise<number[]>} ms until each reply */
  const round = async () => {
    const delays = []
    for (let i = 0; i < 20; i++) {
      const n = next++
      const at = performance.now()
      const replies = await Promise.all([client.publish('a', n), other.publish('b', n)])
      delays.push(performance.now() - at)
      t.match(replies, [{ publish: {} }, { publish: {} }])
    }
    return delays
  }
  const before = (await Promise.all([round(), sleep(ROUND_MS)]))[0]
  for (const server of servers) server.pause()
  const during = []
  const end = performance.now() + PAUSE_MS
  t.match(await client.publish('must', 0), { error: { code: 100 } }, 'only required publications wait')
  while (performance.now() < end) during.push(...(await Promise.all([round(), sleep(ROUND_MS)]))[0])
  const waiting = await figures('queue_messages')
  t.ok(
    waiting.every(count => (count ?? 0) > during.length),
    'all replies arrived while the servers hung',
  )
  for (const server of servers) server.resume()
  const middle = of => of.toSorted((a, b) => a - b)[of.length >> 1]
  t.ok(
    middle(during) < middle(before) + 20,
    `median reply time: ${middle(before).toFixed(1)} ms before, ${middle(during).toFixed(1)} ms during`,
  )
  await until(async () => (await figures('queue_messages')).every(count => count === 0))
  t.same(await gateway.stop(), { code: 0, signal: null })
  const all = numbers(next)
  for (const [i, server] of servers.entries()) {
    const bodies = (await server.read()).map(({ body }) => JSON.parse(body.toString()))
    for (const name of ['a', 'b']) {
      const data = bodies.filter(({ channel }) => channel === name).map(one => one.data)
      t.same([...new Set(data)], all, `${types[i]}: all of ${name}, in order`)
    }
  }
})
