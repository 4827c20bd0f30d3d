import t from 'tap'
import { startGateway } from '../gateway.js'
import { RawClient } from '../raw-client.js'
import { startApi } from './support.js'

t.test('info counts connections, users, channels and subscriptions of all workers', async t => {
  const api = await startApi(t)
  for (const user of ['anna', 'anna', 'ben', '']) {
    const client = await api.client(user)
    if (user !== '') await client.subscribe('both')
    if (user === 'ben') await client.subscribe('one')
  }
  const { nodes } = (await api.call('info', {})).result
  t.match(nodes, [{ num_clients: 4, num_users: 3, num_channels: 2, num_subs: 4 }])
  t.equal(nodes.length, 1)
})

t.test('metrics of all workers are there when their first window has passed', async t => {
  const gateway = await startGateway(t, {
    node: { info_metrics_aggregate_interval: '1s' },
    client: { insecure: true },
  })
  await RawClient.connected(gateway.ws)
  /** @type {any} */
  let node
  // Counters are told anew every few seconds.
  do node = (await gateway.api('info')).result.nodes[0]
  while (node.metrics === undefined && (await new Promise(resolve => setTimeout(resolve, 100, true))))
  t.equal(node.metrics.interval, 1)
  t.match(node.metrics.items, { connects: Number, publications_delivered: Number })
})
