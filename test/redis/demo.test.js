// The demo page's vital signs where two nodes share its channel.

import t from 'tap'
import { startGateway } from '../gateway.js'
import { RawClient } from '../raw-client.js'
import { startRedis } from './servers.js'

t.test('the vital signs are those of one node', async t => {
  const { address } = await startRedis(t)
  const config = {
    engine: { type: 'redis', redis: { address } },
    client: { allow_anonymous_connect_without_token: true },
    demo: { enabled: true },
    channel: {
      namespaces: [{ name: 'demo', allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true }],
    },
  }
  const gateways = await Promise.all([startGateway(t, config), startGateway(t, config)])
  const [one, other] = await Promise.all(gateways.map(({ ws }) => RawClient.connected(ws)))
  await Promise.all([one.subscribe('demo:vitals'), other.subscribe('demo:vitals')])
  /** A worker has signs from its second second on. */
  const first = async client => {
    for (;;) {
      const { data } = (await client.push('pub')).pub
      if (data.workers.length > 1) return data
    }
  }
  const samples = [await first(one)]
  while (samples.length < 4) samples.push((await one.push('pub')).pub.data)
  t.same((await first(other)).workers.length, 2, 'clients of both nodes get them')
  for (const { workers } of samples) {
    t.same(
      workers.map(({ worker }) => worker),
      [0, 1],
    )
  }
  t.equal(new Set(samples.flatMap(({ workers }) => workers.map(({ pid }) => pid))).size, 2)
  await Promise.all([one.close(), other.close()])
})
