// Messages of Amazon SQS queues, in order within a group. Finished ones are deleted; others become visible again.

import {
  DeleteMessageBatchCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs'

/** @import { Message as SqsMessage } from '@aws-sdk/client-sqs' */
/** @import { Consumer, ConsumerContext, Message } from '../contract.js' */

const START_TIMEOUT_MS = 10_000
const CONNECT_TIMEOUT_MS = 3000
/** Response timeout in addition to the wait time, ms. */
const ANSWER_TIMEOUT_MS = 10_000
const RETRIES = 3
/** Share of the visibility timeout in which messages of a batch may start. */
const WORK_PART = 0.8

/** @param {string} body @returns {{text: string | null, attributes: Record<string, any>}} message in an SNS envelope */
function unwrap(body) {
  try {
    const { Message, MessageAttributes } = JSON.parse(body)
    return { text: typeof Message === 'string' ? Message : null, attributes: MessageAttributes ?? {} }
  } catch {
    return { text: null, attributes: {} }
  }
}

/** @param {ConsumerContext<'aws_sqs'>} context @returns {Consumer} */
export function create(context) {
  const { options } = context
  const client = new SQSClient({
    ...(options.region && { region: options.region }),
    ...(options.localstack_endpoint && { endpoint: options.localstack_endpoint }),
    ...(options.credentials_profile && { profile: options.credentials_profile }),
    requestHandler: {
      connectionTimeout: CONNECT_TIMEOUT_MS,
      requestTimeout: options.wait_time_time + ANSWER_TIMEOUT_MS,
    },
  })
  const stopping = new AbortController()
  const { signal } = stopping
  /** @type {Promise<void[]>} */
  let running = Promise.resolve([])

  /** @param {string} QueueUrl */
  async function run(QueueUrl) {
    let tries = 0
    while (!signal.aborted) {
      try {
        const receive = new ReceiveMessageCommand({
          QueueUrl,
          MaxNumberOfMessages: options.max_number_of_messages,
          WaitTimeSeconds: Math.round(options.wait_time_time / 1000),
          VisibilityTimeout: Math.round(options.visibility_timeout / 1000),
          MessageAttributeNames: ['All'],
          MessageSystemAttributeNames: ['MessageGroupId', 'SentTimestamp'],
        })
        const { Messages = [] } = await client.send(receive, { abortSignal: signal })
        if (Messages.length > 0) await remove(QueueUrl, await work(Messages))
        tries = 0
      } catch (error) {
        if (signal.aborted) return
        context.failed(error)
        await context.backoff(++tries, signal)
      }
    }
  }

  /** @param {SqsMessage[]} messages @returns {Promise<SqsMessage[]>} the finished ones */
  async function work(messages) {
    /** Messages of a line run in order. @type {SqsMessage[][]} */
    const lines = []
    /** @type {Map<string, SqsMessage[]>} */
    const groups = new Map()
    for (const message of messages) {
      const group = message.Attributes?.MessageGroupId
      const line = group === undefined ? undefined : groups.get(group)
      if (line) line.push(message)
      else {
        lines.push([message])
        if (group !== undefined) groups.set(group, lines[lines.length - 1])
      }
    }
    /** @type {SqsMessage[]} */
    const finished = []
    const limit = performance.now() + options.visibility_timeout * WORK_PART
    let next = 0
    const worker = async () => {
      while (next < lines.length) {
        for (const message of lines[next++]) {
          if (signal.aborted || performance.now() > limit) break
          if (!(await handle(message, limit))) break
          finished.push(message)
        }
      }
    }
    await Promise.all(Array.from({ length: options.max_concurrency }, worker))
    return finished
  }

  /** @param {SqsMessage} message @param {number} limit of its tries @returns {Promise<boolean>} false: it failed */
  async function handle(message, limit) {
    const call = messageOf(message)
    const sent = Number(message.Attributes?.SentTimestamp)
    for (let tries = 1; ; tries++) {
      if ((await context.handle(call, Number.isFinite(sent) ? sent : undefined)) !== 'retry') return true
      if (tries > RETRIES || performance.now() > limit) return false
      await context.backoff(tries, signal)
      if (signal.aborted) return false
    }
  }

  /** @param {SqsMessage} message @returns {Message} */
  function messageOf({ Body = '', MessageAttributes = {} }) {
    const { text, attributes } = options.sns_envelope ? unwrap(Body) : { text: Body, attributes: {} }
    /** @type {Record<string, string>} */
    const headers = Object.create(null)
    for (const [name, value] of Object.entries(attributes))
      if (typeof value?.Value === 'string') headers[name] = value.Value
    for (const [name, { StringValue }] of Object.entries(MessageAttributes))
      if (StringValue !== undefined) headers[name] = StringValue
    return { payload: text, method: headers[options.method_attribute] ?? '', headers }
  }

  /** @param {string} QueueUrl @param {SqsMessage[]} messages */
  async function remove(QueueUrl, messages) {
    if (messages.length === 0) return
    const Entries = messages.map(({ ReceiptHandle }, i) => ({ Id: String(i), ReceiptHandle }))
    const { Failed = [] } = await client.send(new DeleteMessageBatchCommand({ QueueUrl, Entries }))
    if (Failed.length === 0) return
    throw new Error(
      `${Failed.length} processed messages were not deleted and will be redelivered: ${Failed[0].Message}`,
    )
  }

  return {
    async start() {
      const abortSignal = AbortSignal.timeout(START_TIMEOUT_MS)
      for (const QueueUrl of options.queues) {
        const look = new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['QueueArn'] })
        try {
          await client.send(look, { abortSignal })
        } catch (error) {
          // Consumers need no permission for attributes: the service is reachable.
          if (/^AccessDenied/.test(error.name)) continue
          client.destroy()
          throw new Error(`queue ${QueueUrl}: ${error.message}`, { cause: error })
        }
      }
      running = Promise.all(options.queues.map(run))
    },
    async stop() {
      stopping.abort()
      await running
      client.destroy()
    },
  }
}
