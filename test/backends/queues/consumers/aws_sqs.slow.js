// SQS messages reach their handler, and are deleted once handled. moto emulates the service.

import { CreateQueueCommand, SendMessageCommand } from '@aws-sdk/client-sqs'
import t from 'tap'
import { CREDENTIALS, startSqs } from '../../../kit/servers/sqs.js'
import { until } from '../../../kit/wait.js'
import { makeConsumer, startConsumer } from './rig.js'
import { leftIn, sqsBlock } from './sqs-rig.js'

Object.assign(process.env, CREDENTIALS)

t.test('SQS queues', async t => {
  const server = await startSqs(t)
  const client = server.client()
  t.teardown(() => client.destroy())
  const queue = async (name, attributes = {}) => {
    const made = await client.send(new CreateQueueCommand({ QueueName: name, Attributes: attributes }))
    return /** @type {string} */ (made.QueueUrl)
  }
  const send = (url, text, more = {}) =>
    client.send(new SendMessageCommand({ QueueUrl: url, MessageBody: text, ...more }))
  const start = (t, url, more, handle) =>
    startConsumer(t, 'aws_sqs', sqsBlock(server, { queues: [url], ...more }), handle)
  /** Fails `times` times for one text. */
  const failing = (failed, times) => {
    let tries = 0
    return ({ text }) => (text === failed && ++tries <= times ? 'retry' : 'done')
  }

  await t.test('the consumer does not start without its queue', async t => {
    const block = sqsBlock(server, { queues: [`${server.endpoint}/123456789012/none`] })
    await t.rejects((await makeConsumer(t, 'aws_sqs', block)).consumer.start(), /^queue .*none/)
  })

  await t.test('attributes become headers; a failed message is retried, then redelivered', async t => {
    const url = await queue('plain')
    await send(url, 'one', {
      MessageAttributes: { 'centrifugo-method': { DataType: 'String', StringValue: 'publish' } },
    })
    await send(url, 'two')
    const rig = await start(t, url, {}, failing('one', 5))
    await until(() => rig.done.length === 2)
    t.equal(rig.messages.filter(({ text }) => text === 'one').length, 6)
    const one = rig.done.find(({ text }) => text === 'one')
    t.equal(one.method, 'publish')
    t.ok(Math.abs(Date.now() - one.since) < 60_000)
    await rig.consumer.stop()
    t.equal(await leftIn(client, url), 0)
  })

  await t.test('a message group keeps its order after a temporary failure', async t => {
    const url = await queue('line.fifo', { FifoQueue: 'true', ContentBasedDeduplication: 'true' })
    for (const text of ['a1', 'b1', 'a2', 'b2', 'a3']) await send(url, text, { MessageGroupId: text[0] })
    const rig = await start(t, url, { max_concurrency: 4 }, failing('a1', 3))
    await until(() => rig.done.length === 5)
    const ofGroups = rig.texts.toSorted((one, other) => one.charCodeAt(0) - other.charCodeAt(0))
    t.same(ofGroups, ['a1', 'a2', 'a3', 'b1', 'b2'])
    await rig.consumer.stop()
    t.equal(await leftIn(client, url), 0)
  })

  await t.test('an SNS envelope is unwrapped; a message without one has no payload', async t => {
    const url = await queue('sns')
    const MessageAttributes = { x: { Type: 'String', Value: 'y' } }
    await send(url, JSON.stringify({ Message: '{"a":1}', MessageAttributes }))
    await send(url, 'bare')
    const rig = await start(t, url, { sns_envelope: true })
    await until(() => rig.messages.length === 2)
    t.same(rig.texts, ['{"a":1}', null])
    t.equal(rig.messages[0].headers.x, 'y')
    await rig.consumer.stop()
  })

  await t.test('the consumer recovers from an outage of the service', async t => {
    const url = await queue('away')
    const rig = await start(t, url)
    await server.restart()
    await until(() => rig.failures.length > 0)
    await queue('away')
    await send(url, 'late')
    await until(() => rig.messages.length === 1)
    await rig.consumer.stop()
    t.same(rig.texts, ['late'])
  })
})
