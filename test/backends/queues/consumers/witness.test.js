// A short test of the types whose other tests are slow: TYPE.slow.js and TYPE-conformance.slow.js.

import { CreateQueueCommand, SendMessageCommand } from '@aws-sdk/client-sqs'
import t from 'tap'
import { startKafka, withoutKafka } from '../../../kit/servers/kafka.js'
import { startRabbit, withoutRabbit } from '../../../kit/servers/rabbitmq.js'
import { CREDENTIALS, startSqs, withoutSqs } from '../../../kit/servers/sqs.js'
import { until } from '../../../kit/wait.js'
import { numbered, startConsumer } from './rig.js'
import { leftIn, sqsBlock } from './sqs-rig.js'

Object.assign(process.env, CREDENTIALS)

const METHOD = { 'centrifugo-method': 'publish' }

/** By type: a started server, the block of a consumer, and a function that sends texts. */
const TYPES = {
  async kafka(t) {
    const server = await startKafka(t)
    await server.createTopic('orders', 2)
    return {
      block: { brokers: [server.broker], topics: ['orders'], consumer_group: 'group' },
      send: texts =>
        server.send(
          'orders',
          texts.map(value => ({ value, headers: METHOD })),
        ),
    }
  },
  async rabbitmq(t) {
    const server = await startRabbit(t)
    await server.declare('orders', {})
    return {
      block: { urls: [server.url()], queues: ['orders'] },
      send: texts => server.send('orders', texts, { ...METHOD, number: 5, nested: { a: 1 } }),
      headers: { ...METHOD, number: '5' },
      left: () => server.ready('orders'),
    }
  },
  async aws_sqs(t) {
    const server = await startSqs(t)
    const client = server.client()
    t.teardown(() => client.destroy())
    const { QueueUrl = '' } = await client.send(new CreateQueueCommand({ QueueName: 'orders' }))
    const MessageAttributes = { 'centrifugo-method': { DataType: 'String', StringValue: 'publish' } }
    return {
      block: sqsBlock(server, { queues: [QueueUrl], wait_time_time: '0s' }),
      async send(texts) {
        for (const MessageBody of texts)
          await client.send(new SendMessageCommand({ QueueUrl, MessageBody, MessageAttributes }))
      },
      left: () => leftIn(client, QueueUrl),
    }
  },
}

for (const [type, skip, count] of /** @type {[string, any, number][]} */ ([
  ['kafka', withoutKafka(), 100],
  ['rabbitmq', withoutRabbit(), 100],
  ['aws_sqs', withoutSqs(), 3],
]))
  t.test(`${type}: handles messages in order, retries failed ones in place`, { skip }, async t => {
    const { block, send, headers = METHOD, left = () => 0 } = await TYPES[type](t)
    await send(numbered(count))
    let failures = 2
    const rig = await startConsumer(t, type, block, ({ text }) =>
      text === '1' && failures-- > 0 ? 'retry' : 'done',
    )
    await until(() => rig.done.length === count)
    t.same(rig.texts, numbered(count))
    t.equal(rig.messages.length, count + 2)
    t.equal(rig.concurrent, 1)
    t.same(rig.done[0].headers, headers)
    t.equal(rig.done[0].method, 'publish')
    t.ok(rig.done[0].since === undefined || Math.abs(rig.done[0].since - Date.now()) < 60_000)
    await rig.consumer.stop()
    t.equal(await left(), 0)
    await send(['next'])
    const next = await startConsumer(t, type, block)
    await until(() => next.done.length === 1)
    t.same(next.texts, ['next'])
    // The first member of a new group of Kafka may wait for its coordinator.
    t.same(next.failures, [])
  })
