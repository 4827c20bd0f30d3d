// Gateways that republish into a real RabbitMQ: the example of docs/republish.md, and what needs whole gateways.

import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { startGateway } from '../../../kit/gateway.js'
import { startRabbit, withoutRabbit } from '../../../kit/servers/rabbitmq.js'
import { until } from '../../../kit/wait.js'
import { numbers, pluck } from '../../lists.js'
import { join } from '../gateways.js'
import { listen } from './exchanges.js'

const page = readFileSync(new URL('../../../../docs/republish.md', import.meta.url), 'utf8')
const example = page.split('```yaml\n')[1].split('```')[0]

t.test('gateways', { skip: withoutRabbit(), timeout: 240_000 }, async t => {
  const server = await startRabbit(t)

  t.test('the example: client publications of several workers, in order', async t => {
    const queue = await listen(t, server, 'orders')
    const config = parse(example.replace('127.0.0.1:5672', `127.0.0.1:${server.port}`))
    const gateway = await startGateway(t, {
      ...config,
      workers: 2,
      client: { allow_anonymous_connect_without_token: true },
      channel: {
        namespaces: [
          {
            ...config.channel.namespaces[0],
            allow_publish_for_anonymous: true,
            history_size: 1000,
            history_ttl: '60s',
          },
          { name: 'other', allow_publish_for_client: true, allow_publish_for_anonymous: true },
        ],
      },
    })
    const clients = await Promise.all([0, 1, 2, 3].map(() => join(t, gateway)))
    for (let n = 0; n < 50; n++) {
      await Promise.all(clients.map(client => client.publish('orders:1', { n })))
      if (n === 0) await clients[0].publish('other:1', { n })
    }
    await until(() => queue.messages.length === 200)
    const { bodies } = queue
    t.same(pluck(bodies, 'offset'), numbers(200, 1))
    t.match(bodies[0], { channel: 'orders:1', data: { n: 0 }, source: 'client', user: '' })
    t.equal(new Set(bodies.map(({ id }) => id)).size, 200)
    t.same(await gateway.stop(), { code: 0, signal: null })
  })

  t.test('required: each confirmed publication gets a reply; without an exchange error 100', async t => {
    const queue = await listen(t, server, 'must:1')
    const gateway = await startGateway(t, {
      workers: 1,
      client: { insecure: true },
      republish: [
        {
          name: 'must',
          enabled: true,
          type: 'rabbitmq',
          channels: ['must:*', 'nowhere'],
          sources: ['client', 'api'],
          required: true,
          rabbitmq: { urls: [server.url()] },
        },
      ],
      channel: { namespaces: [{ name: 'must' }] },
    })
    const client = await join(t, gateway)
    t.same((await client.publish('must:1', 1)).publish, {})
    t.equal(queue.messages.length, 1, 'before the reply')
    t.match(await gateway.api('publish', { channel: 'must:1', data: 2 }), { result: {} })
    t.match(await gateway.api('publish', { channel: 'nowhere', data: 3 }), { error: { code: 100 } })
    t.match(
      queue.bodies.map(({ data, source }) => ({ data, source })),
      [
        { data: 1, source: 'client' },
        { data: 2, source: 'api' },
      ],
    )
  })
})
