import t from 'tap'
import { startGateway } from './gateway.js'

t.test('info counts connections, users, channels and subscriptions of all workers', async t => {
  const gateway = await startGateway()
  t.teardown(() => gateway.stop())
  for (const user of ['anna', 'anna', 'ben', '']) {
    const client = await gateway.client(user)
    if (user !== '') await client.send({ subscribe: { channel: 'both' } })
    if (user === 'ben') await client.send({ subscribe: { channel: 'one' } })
  }
  const { nodes } = (await gateway.call('info', {})).result
  t.match(nodes, [{ num_clients: 4, num_users: 3, num_channels: 2, num_subs: 4 }])
  t.equal(nodes.length, 1)
})
