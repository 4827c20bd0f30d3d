// The admin endpoints where Redis makes one gateway of two nodes.

import t from 'tap'
import { RawClient } from '../raw-client.js'
import { token as connectToken, SECRET } from '../session/support.js'
import { startNode } from './nodes.js'
import { startRedis } from './servers.js'

const PASSWORD = 'the admin key of the tests'

t.test('one admin page is enough for all nodes', async t => {
  const { address } = await startRedis(t)
  const config = {
    admin: { password: PASSWORD },
    client: { token: { hmac_secret_key: SECRET } },
  }
  const nodes = await Promise.all([startNode(t, address, { config }), startNode(t, address, { config })])
  const call = async (node, name, params, token = '') => {
    const answer = await fetch(`${node.url}/admin/api/${name}`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}` },
      body: JSON.stringify(params),
    })
    return answer.json()
  }
  const { token } = await call(nodes[0], 'login', { password: PASSWORD })
  const clients = await Promise.all(
    [...nodes, ...nodes, ...nodes].map(({ ws }) =>
      RawClient.connected(ws, { token: connectToken({ sub: 'anna' }) }),
    ),
  )
  for (const client of clients) await client.subscribe('live:news')

  for (const node of nodes) {
    const { result } = await call(node, 'connections', { user: 'anna' }, token)
    t.equal(result.total, 6, 'the token of one node is good at the other')
    t.same(
      result.connections.map(({ client }) => client).sort(),
      clients.map(({ connect }) => connect.client).sort(),
    )
    t.equal(new Set(result.connections.map(({ node }) => node.uid)).size, 2)
    const channels = await call(node, 'channels', { pattern: 'live:*' }, token)
    t.same(channels.result, { total: 1, channels: [{ name: 'live:news', clients: 6 }] })
    t.equal((await call(node, 'info', {}, token)).result.nodes.length, 2)
  }

  const far = clients[1].connect.client
  await call(nodes[0], 'disconnect', { user: 'anna', client: far }, token)
  t.equal((await clients[1].closed).code, 3503, 'also at the other node')
  await call(nodes[0], 'disconnect', { user: 'anna' }, token)
  for (const client of clients) t.equal((await client.closed).code, 3503)

  // Each node counts for itself.
  const guess = async node =>
    (
      await fetch(`${node.url}/admin/api/login`, {
        method: 'POST',
        headers: { Connection: 'close' },
        body: '{"password":"guess"}',
      })
    ).status
  for (let n = 0; n < 10; n++) t.equal(await guess(nodes[0]), 401)
  t.equal(await guess(nodes[0]), 429, 'whichever of its workers it comes to')
  t.equal(await guess(nodes[1]), 401)
})
