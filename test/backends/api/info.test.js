import t from 'tap'
import { NodeInfo } from '../../../src/backends/api/info.js'
import { until } from '../../kit/wait.js'
import { startApi } from './support.js'

t.test('info counts the connections, users, channels and subscriptions of all workers', async t => {
  const api = await startApi(t, { node: { name: 'the node', info_metrics_aggregate_interval: '1s' } })
  for (const user of ['anna', 'anna', 'ben', '']) {
    const client = await api.client(user)
    if (user !== '') await client.subscribe('both')
    if (user === 'ben') await client.subscribe('one')
  }
  const { nodes } = (await api.call('info', {})).result
  t.match(nodes, [{ name: 'the node', num_clients: 4, num_users: 3, num_channels: 2, num_subs: 4 }])
  t.equal(nodes.length, 1)

  // Metrics of all workers exist after their first window; counters are reported every few seconds.
  /** @type {any} */
  const node = await until(async () => {
    const [it] = (await api.call('info', {})).result.nodes
    return it.metrics && it
  })
  t.equal(node.metrics.interval, 1)
  t.match(node.metrics.items, { connects: Number, publications_delivered: Number })
})

t.test('each node has its own counts; the queried node is first', async t => {
  const node = (uid, name) => ({ uid, name, version: '1' })
  const answer = (of, uptime, users, channels, metrics) => ({
    node: of,
    uptime,
    clients: users.length,
    subscriptions: 2,
    users,
    channels,
    metrics,
  })
  const [own, other] = [node('u1', 'own'), node('u2', 'other')]
  let now = 0
  let surveys = 0
  const broker = {
    survey: async op => {
      surveys++
      t.equal(op, 'info')
      if (now > 100_000) throw new Error('on purpose')
      return [
        answer(other, 5999, ['anna', 'ben'], ['x'], { connects: 1 }),
        answer(own, 1000, ['anna'], ['x', 'y'], undefined),
        answer(own, 2000, ['anna', ''], ['y', 'z'], undefined),
        answer(other, 4000, ['ben'], ['x'], { connects: 2, publications_delivered: 3 }),
      ]
    },
  }
  const info = new NodeInfo({ ...own, startedAt: 0 }, /** @type {any} */ (broker), 60_000, () => now)
  const texts = await Promise.all([info.read(), info.read()])
  t.equal(surveys, 1, 'concurrent calls share a result')
  t.equal(texts[0], texts[1])
  t.same(JSON.parse(texts[0]).nodes, [
    { ...own, uptime: 2, num_clients: 3, num_users: 2, num_channels: 3, num_subs: 4 },
    {
      ...other,
      uptime: 5,
      num_clients: 3,
      num_users: 2,
      num_channels: 1,
      num_subs: 4,
      metrics: { interval: 60, items: { connects: 3, publications_delivered: 3 } },
    },
  ])
  now = 100_001
  await t.rejects(info.read(), /on purpose/)
  now = 3000
  await t.resolves(info.read(), 'a failed survey is repeated')
})
