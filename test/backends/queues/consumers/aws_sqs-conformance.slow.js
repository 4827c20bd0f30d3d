// Standard queues only: moto reorders a group whose messages become visible again. aws_sqs.slow.js tests groups.

import { CreateQueueCommand, SendMessageBatchCommand } from '@aws-sdk/client-sqs'
import t from 'tap'
import { CREDENTIALS, startSqs } from '../../../kit/servers/sqs.js'
import { conformance } from './conformance.js'
import { leftIn, sqsBlock } from './sqs-rig.js'

t.setTimeout(300_000)
Object.assign(process.env, CREDENTIALS)

/** Messages per request. */
const BATCH = 10

t.test('aws_sqs', async t => {
  const server = await startSqs(t)
  const client = server.client()
  t.teardown(() => client.destroy())
  let queues = 0
  conformance(t, {
    type: 'aws_sqs',
    ordered: false,
    // moto takes 0.25 s per request with 500 pending messages.
    backlog: 200,
    lot: 60,
    empty: false,
    async start() {
      const made = await client.send(new CreateQueueCommand({ QueueName: `jobs-${++queues}` }))
      const QueueUrl = /** @type {string} */ (made.QueueUrl)
      return {
        port: server.port,
        consumer: port =>
          sqsBlock(server, {
            queues: [QueueUrl.replace(/:\d+/, `:${port}`)],
            localstack_endpoint: `http://127.0.0.1:${port}`,
          }),
        async send(payloads) {
          for (let first = 0; first < payloads.length; first += BATCH) {
            const batch = payloads.slice(first, first + BATCH)
            const Entries = batch.map((MessageBody, i) => ({ Id: String(i), MessageBody }))
            await client.send(new SendMessageBatchCommand({ QueueUrl, Entries }))
          }
        },
        pending: () => leftIn(client, QueueUrl),
        pause: () => server.pause(),
        resume: () => server.resume(),
      }
    },
  })
})
