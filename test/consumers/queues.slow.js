// Gateways with consumers of Kafka and RabbitMQ: a message becomes a publication, and the end acknowledges all.

import t from 'tap'
import { startGateway } from '../gateway.js'
import { startKafka, withoutKafka } from '../servers/kafka.js'
import { startRabbit, withoutRabbit } from '../servers/rabbitmq.js'

const HISTORY = { without_namespace: { history_size: 10, history_ttl: '60s' } }

/** @param {any} gateway @returns {Promise<number[]>} what channel `c` has got */
async function published(gateway) {
  const { result } = await gateway.api('history', { channel: 'c', limit: 100 })
  return result.publications.map((/** @type {any} */ { data }) => data.x)
}

/** @param {number} x */
const command = x => JSON.stringify({ method: 'publish', payload: { channel: 'c', data: { x } } })

t.test('RabbitMQ', { skip: withoutRabbit() }, async t => {
  const server = await startRabbit(t)
  await server.declare('dead')
  await server.declare('orders', { 'x-dead-letter-exchange': '', 'x-dead-letter-routing-key': 'dead' })
  await server.send('orders', [command(1), command(2), 'not JSON'])
  const rabbitmq = { urls: [server.url()], queues: ['orders'], on_malformed: 'reject' }
  const gateway = await startGateway(t, {
    workers: 1,
    channel: HISTORY,
    consumers: [{ name: 'orders', enabled: true, type: 'rabbitmq', rabbitmq }],
  })
  t.match(await gateway.line(({ msg }) => msg === 'a message was skipped'), { reason: 'malformed' })
  t.same(await published(gateway), [1, 2])
  t.same(await gateway.stop(), { code: 0, signal: null })
  t.equal(await server.ready('orders'), 0)
  t.equal(await server.ready('dead'), 1)
})

t.test('Kafka', { skip: withoutKafka() }, async t => {
  const server = await startKafka(t)
  await server.createTopic('orders')
  await server.send('orders', [{ value: command(1) }, { value: command(2) }, { value: null }])
  const kafka = { brokers: [server.broker], topics: ['orders'], consumer_group: 'group' }
  const gateway = await startGateway(t, {
    workers: 1,
    channel: HISTORY,
    consumers: [{ name: 'orders', enabled: true, type: 'kafka', kafka }],
  })
  t.match(await gateway.line(({ msg }) => msg === 'a message was skipped'), { reason: 'malformed' })
  t.same(await published(gateway), [1, 2])
  t.same(await gateway.stop(), { code: 0, signal: null })
})
