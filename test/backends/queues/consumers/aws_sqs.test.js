// A short witness of consumers of SQS; aws_sqs.slow.js and aws_sqs-conformance.slow.js have the rest.

import { CreateQueueCommand, SendMessageCommand } from '@aws-sdk/client-sqs'
import t from 'tap'
import { CREDENTIALS, startSqs, withoutSqs } from '../../../kit/servers/sqs.js'
import { leftIn, sqsConsumer } from './sqs-rig.js'

Object.assign(process.env, CREDENTIALS)

t.test(
  'runs messages with their attributes, tries one again in place, and deletes them',
  { skip: withoutSqs() },
  async t => {
    const server = await startSqs(t)
    const client = server.client()
    t.teardown(() => client.destroy())
    const { QueueUrl = '' } = await client.send(new CreateQueueCommand({ QueueName: 'orders' }))
    const MessageAttributes = { 'centrifugo-method': { DataType: 'String', StringValue: 'publish' } }
    for (const MessageBody of ['one', 'two', 'three'])
      await client.send(new SendMessageCommand({ QueueUrl, MessageBody, MessageAttributes }))
    let failures = 2
    const rig = sqsConsumer(t, server, { queues: [QueueUrl], wait_time_time: 0 }, ({ payload }) =>
      payload === 'two' && failures-- > 0 ? 'retry' : 'done',
    )
    await rig.consumer.start()
    await rig.until(() => rig.messages.length === 5)
    const done = rig.messages.filter(({ outcome }) => outcome === 'done')
    t.same(
      done.map(({ payload }) => payload),
      ['one', 'two', 'three'],
    )
    t.equal(done[0].method, 'publish')
    await rig.consumer.stop()
    t.equal(await leftIn(client, QueueUrl), 0)
  },
)
