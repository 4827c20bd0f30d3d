import t from 'tap'
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
