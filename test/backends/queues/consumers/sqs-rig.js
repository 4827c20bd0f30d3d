// Consumers and queues for the tests of SQS.

import { GetQueueAttributesCommand } from '@aws-sdk/client-sqs'
import { create } from '../../../../src/backends/queues/sqs/consumer.js'
import { makeConsumer } from './rig.js'

const COUNTS = /** @type {const} */ (['ApproximateNumberOfMessages', 'ApproximateNumberOfMessagesNotVisible'])

/**
 * @param {import('@aws-sdk/client-sqs').SQSClient} client @param {string} QueueUrl
 * @returns {Promise<number>} messages that are not deleted
 */
export async function leftIn(client, QueueUrl) {
  const look = new GetQueueAttributesCommand({ QueueUrl, AttributeNames: [...COUNTS] })
  const { Attributes } = await client.send(look)
  return COUNTS.reduce((sum, name) => sum + Number(Attributes?.[name]), 0)
}

/**
 * @param {any} t @param {import('../../../kit/servers/sqs.js').SqsServer} server @param {object} options
 * @param {(message: any) => any} [handle]
 */
export const sqsConsumer = (t, server, options, handle) =>
  makeConsumer(
    t,
    create,
    {
      region: server.region,
      localstack_endpoint: server.endpoint,
      credentials_profile: '',
      assume_role_arn: '',
      sns_envelope: false,
      max_number_of_messages: 10,
      wait_time_time: 1000,
      visibility_timeout: 2000,
      max_concurrency: 1,
      method_attribute: 'centrifugo-method',
      ...options,
    },
    handle,
  )
