// Messages of Amazon SQS queues. Those of a group run one after another, others side by side. What is finished is
// deleted; the rest becomes visible again.

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
/** Beyond the wait of a request, ms. */
const ANSWER_TIMEOUT_MS = 10_000
/** Times that a failed message is tried again before it is left to the queue. */
const RETRIES = 3
/** Part of the visibility timeout within which messages of a batch begin. */
const WORK_PART = 0.8

/** @param {string} body @returns {{text: string | null, attributes: Record<string, any>}} what SNS has wrapped */
function unwrap(body) {
  try {
    const { Message, MessageAttributes } = JSON.parse(body)
    return { text: typeof Message === 'string' ? Message : null, attributes: MessageAttributes ?? {} }
  } catch {
    return { text: null, attributes: {} }
  }
}

/** @implements {Consumer} */
class SqsConsumer {
  #context
  #options
  #client
  #stopping = new AbortController()
  /** @type {Promise<void[]>} */
  #running = Promise.resolve([])

  /** @param {ConsumerContext} context */
  constructor(context) {
    this.#context = context
    const { options } = context
    this.#options = options
    this.#client = new SQSClient({
      ...(options.region && { region: options.region }),
      ...(options.localstack_endpoint && { endpoint: options.localstack_endpoint }),
      ...(options.credentials_profile && { profile: options.credentials_profile }),
      requestHandler: {
        connectionTimeout: CONNECT_TIMEOUT_MS,
        requestTimeout: options.wait_time_time + ANSWER_TIMEOUT_MS,
      },
    })
  }

  async start() {
    const abortSignal = AbortSignal.timeout(START_TIMEOUT_MS)
    for (const QueueUrl of this.#options.queues) {
      const look = new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['QueueArn'] })
      try {
        await this.#client.send(look, { abortSignal })
      } catch (error) {
        // A consumer needs no right to see them: the service has answered.
        if (/^AccessDenied/.test(error.name)) continue
        this.#client.destroy()
        throw new Error(`queue ${QueueUrl}: ${error.message}`, { cause: error })
      }
    }
    this.#running = Promise.all(this.#options.queues.map((/** @type {string} */ url) => this.#run(url)))
  }

  async stop() {
    this.#stopping.abort()
    await this.#running
    this.#client.destroy()
  }

  /** @param {string} QueueUrl */
  async #run(QueueUrl) {
    const { signal } = this.#stopping
    let tries = 0
    while (!signal.aborted) {
      try {
        const { Messages = [] } = await this.#client.send(
          new ReceiveMessageCommand({
            QueueUrl,
            MaxNumberOfMessages: this.#options.max_number_of_messages,
            WaitTimeSeconds: Math.round(this.#options.wait_time_time / 1000),
            VisibilityTimeout: Math.round(this.#options.visibility_timeout / 1000),
            MessageAttributeNames: ['All'],
            MessageSystemAttributeNames: ['MessageGroupId', 'SentTimestamp'],
          }),
          { abortSignal: signal },
        )
        if (Messages.length > 0) await this.#finish(QueueUrl, await this.#work(Messages))
        tries = 0
      } catch (error) {
        if (signal.aborted) return
        this.#context.failed(error)
        await this.#context.backoff(++tries, signal)
      }
    }
  }

  /** @param {SqsMessage[]} messages @returns {Promise<SqsMessage[]>} the finished ones */
  async #work(messages) {
    /** Messages that run one after another. @type {SqsMessage[][]} */
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
    const limit = performance.now() + this.#options.visibility_timeout * WORK_PART
    let next = 0
    const worker = async () => {
      while (next < lines.length) {
        for (const message of lines[next++]) {
          if (this.#stopping.signal.aborted || performance.now() > limit) break
          if (!(await this.#handle(message, limit))) break
          finished.push(message)
        }
      }
    }
    await Promise.all(Array.from({ length: this.#options.max_concurrency }, worker))
    return finished
  }

  /** @param {SqsMessage} message @param {number} limit of its tries @returns {Promise<boolean>} false: it failed */
  async #handle(message, limit) {
    const { signal } = this.#stopping
    const read = this.#read(message)
    const sent = Number(message.Attributes?.SentTimestamp)
    for (let tries = 1; ; tries++) {
      if ((await this.#context.handle(read, Number.isFinite(sent) ? sent : undefined)) !== 'retry')
        return true
      if (tries > RETRIES || performance.now() > limit) return false
      await this.#context.backoff(tries, signal)
      if (signal.aborted) return false
    }
  }

  /** @param {SqsMessage} message @returns {Message} */
  #read({ Body = '', MessageAttributes = {} }) {
    const { text, attributes } = this.#options.sns_envelope ? unwrap(Body) : { text: Body, attributes: {} }
    /** @type {Record<string, string>} */
    const headers = Object.create(null)
    for (const [name, value] of Object.entries(attributes))
      if (typeof value?.Value === 'string') headers[name] = value.Value
    for (const [name, { StringValue }] of Object.entries(MessageAttributes))
      if (StringValue !== undefined) headers[name] = StringValue
    return { payload: text, method: headers[this.#options.method_attribute] ?? '', headers }
  }

  /** @param {string} QueueUrl @param {SqsMessage[]} messages */
  async #finish(QueueUrl, messages) {
    if (messages.length === 0) return
    const Entries = messages.map(({ ReceiptHandle }, i) => ({ Id: String(i), ReceiptHandle }))
    const { Failed = [] } = await this.#client.send(new DeleteMessageBatchCommand({ QueueUrl, Entries }))
    if (Failed.length === 0) return
    throw new Error(
      `${Failed.length} finished messages were not deleted, and will come again: ${Failed[0].Message}`,
    )
  }
}

/** @param {ConsumerContext} context @returns {Consumer} */
export const create = context => new SqsConsumer(context)
