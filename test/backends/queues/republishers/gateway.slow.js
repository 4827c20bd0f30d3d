// Gateways that republish into a real RabbitMQ: the example of docs/republish.md, and what needs whole gateways.

import { readFileSync } from 'node:fs'
import { connect } from 'amqplib'
import t from 'tap'
import { parse } from 'yaml'
import { startGateway } from '../../../kit/gateway.js'
import { startRabbit, withoutRabbit } from '../../../kit/servers/rabbitmq.js'
import { until } from '../../../kit/wait.js'
import { join } from './clients.js'

const page = readFileSync(new URL('../../../../docs/republish.md', import.meta.url), 'utf8')
const example = page.split('```yaml\n')[1].split('```')[0]

/**
 * Messages of a fanout exchange, from now on.
 * @param {any} t @param {any} server @param {string} exchange
 */
async function listen(t, server, exchange) {
  const queue = `${exchange}-listener`
  await bind(t, server, exchange, queue)
  return await consume(t, server, queue)
}

/**
 * Makes a durable queue that keeps the messages of a fanout exchange.
 * @param {any} t @param {any} server @param {string} exchange @param {string} queue
 */
async function bind(t, server, exchange, queue) {
  const channel = await openChannel(t, server)
  await channel.assertExchange(exchange, 'fanout', { durable: true })
  await channel.assertQueue(queue, { durable: true })
  await channel.bindQueue(queue, exchange, '')
}

/** @param {any} t @param {any} server @param {string} queue @returns {Promise<any[]>} bodies, growing */
async function consume(t, server, queue) {
  /** @type {any[]} */
  const bodies = []
  const channel = await openChannel(t, server)
  await channel.consume(queue, message => message && bodies.push(JSON.parse(message.content.toString())), {
    noAck: true,
  })
  return bodies
}

/** @param {any} t @param {any} server */
async function openChannel(t, server) {
  const connection = await connect(server.url())
  t.teardown(() => connection.close().catch(() => {}))
  connection.on('error', () => {})
  return await connection.createChannel()
}

t.test('gateways', { skip: withoutRabbit(), timeout: 240_000 }, async t => {
  const server = await startRabbit(t)

  t.test('the example: client publications of several workers, in order', async t => {
    const bodies = await listen(t, server, 'orders')
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
    await until(() => bodies.length === 200)
    t.same(
      bodies.map(({ offset }) => offset),
      Array.from({ length: 200 }, (_, i) => i + 1),
    )
    t.match(bodies[0], { channel: 'orders:1', data: { n: 0 }, source: 'client', user: '' })
    t.equal(new Set(bodies.map(({ id }) => id)).size, 200)
    t.same(await gateway.stop(), { code: 0, signal: null })
  })

  t.test('required: a reply for each confirmed publication; error 100 without an exchange', async t => {
    const bodies = await listen(t, server, 'must:1')
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
    t.equal(bodies.length, 1, 'before the reply')
    t.match(await gateway.api('publish', { channel: 'must:1', data: 2 }), { result: {} })
    t.match(await gateway.api('publish', { channel: 'nowhere', data: 3 }), { error: { code: 100 } })
    t.match(
      bodies.map(({ data, source }) => ({ data, source })),
      [
        { data: 1, source: 'client' },
        { data: 2, source: 'api' },
      ],
    )
  })

  t.test('a server that is away delays nobody, and gets everything later', async t => {
    const gateway = await startGateway(t, {
      workers: 1,
      client: { insecure: true },
      republish: [
        {
          name: 'later',
          enabled: true,
          type: 'rabbitmq',
          channels: ['*'],
          rabbitmq: { urls: [server.url()], exchange: 'later', declare: true },
        },
      ],
    })
    await gateway.line(({ msg }) => msg === 'republisher connected')
    const client = await join(t, gateway)
    // Bound before: the gateway may be back at the server before a listener, and an exchange without queues drops.
    await bind(t, server, 'later', 'later')
    await server.kill()
    for (let n = 0; n < 100; n++) t.same((await client.publish('a', n)).publish, {})
    await server.start()
    const bodies = await consume(t, server, 'later')
    await until(() => bodies.length >= 100)
    t.same(
      bodies.map(({ data }) => data),
      Array.from({ length: 100 }, (_, n) => n),
    )
    t.same(await gateway.stop(), { code: 0, signal: null })
  })
})
