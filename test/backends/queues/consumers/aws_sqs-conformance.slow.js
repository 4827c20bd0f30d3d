// A standard queue: moto loses the order of a group whose messages become visible again; aws_sqs.slow.js has groups.

import { CreateQueueCommand, GetQueueAttributesCommand, SendMessageBatchCommand } from '@aws-sdk/client-sqs'
import t from 'tap'
import { CREDENTIALS, startSqs } from '../../../kit/servers/sqs.js'
import { conformance } from './conformance.js'

t.setTimeout(300_000)
Object.assign(process.env, CREDENTIALS)

/** Messages of a request. */
const BATCH = 10

t.test('aws_sqs', async t => {
  const server = await startSqs(t)
  const client = server.client()
  t.teardown(() => client.destroy())
  let queues = 0
  conformance(t, {
    type: 'aws_sqs',
    ordered: false,
    // moto takes 0.25 s for a request while 500 messages wait.
    backlog: 200,
    lot: 60,
    empty: false,
    async start() {
      const made = await client.send(new CreateQueueCommand({ QueueName: `jobs-${++queues}` }))
      const QueueUrl = /** @type {string} */ (made.QueueUrl)
      return {
        port: server.port,
        consumer: port => ({
          name: 'jobs',
          enabled: true,
          type: 'aws_sqs',
          aws_sqs: {
            queues: [QueueUrl.replace(/:\d+/, `:${port}`)],
            region: server.region,
            localstack_endpoint: `http://127.0.0.1:${port}`,
            wait_time_time: '1s',
            visibility_timeout: '2s',
          },
        }),
        async send(payloads) {
          for (let first = 0; first < payloads.length; first += BATCH) {
            const batch = payloads.slice(first, first + BATCH)
            const Entries = batch.map((MessageBody, i) => ({ Id: String(i), MessageBody }))
            await client.send(new SendMessageBatchCommand({ QueueUrl, Entries }))
          }
        },
        async pending() {
          const look = new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['All'] })
          const { Attributes = {} } = await client.send(look)
          return (
            Number(Attributes.ApproximateNumberOfMessages) +
            Number(Attributes.ApproximateNumberOfMessagesNotVisible)
          )
        },
        pause: () => server.pause(),
        resume: () => server.resume(),
      }
    },
  })
})
