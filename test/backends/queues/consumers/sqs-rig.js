// Consumers and queues for the tests of SQS.

import { GetQueueAttributesCommand } from '@aws-sdk/client-sqs'

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

/** @param {import('../../../kit/servers/sqs.js').SqsServer} server @param {object} block @returns {object} */
export const sqsBlock = (server, block) => ({
  region: server.region,
  localstack_endpoint: server.endpoint,
  wait_time_time: '1s',
  visibility_timeout: '2s',
  ...block,
})
