// Kafka. The key of a record is its channel: a channel keeps its partition. Each topic has one request at a time, and
// what comes meanwhile goes with the next one; so records of a partition stay in order without an idempotent producer.

import { reconnectDelay } from '../timing.js'
import { causeOf, clientOptions, loadKafka } from './client.js'

/** @import { Producer as Client } from '@platformatic/kafka' */
/** @import { Destination, DestinationContext, OutgoingMessage } from '../contract.js' */

// Not in start(): a missing package is an error of loading this file.
const { Producer } = await loadKafka()

/** A server that does not answer within this time counts as lost. */
const IO_TIMEOUT_MS = 10_000
/** Of the bodies of a request, unless one alone is larger: servers limit it, to 1 MiB unless configured. */
const MAX_BATCH_BYTES = 512 * 1024
/** A single message with them is refused: it would be the next time, too. */
const REFUSED = new Set([
  'INVALID_TOPIC_EXCEPTION',
  'TOPIC_AUTHORIZATION_FAILED',
  'MESSAGE_TOO_LARGE',
  'RECORD_LIST_TOO_LARGE',
  'INVALID_RECORD',
  'INVALID_TIMESTAMP',
  'POLICY_VIOLATION',
])
/** Those of the topic, not of a message. */
const OF_TOPIC = new Set(['INVALID_TOPIC_EXCEPTION', 'TOPIC_AUTHORIZATION_FAILED'])

/** A topic that is missing is asked for again after this time: a server that has just started may not know it yet. */
const ASK_AGAIN_MS = 1000
/** Then its messages are refused at once for this time. */
const MISSING_MS = 5000
const NO_TOPIC = 'there is no such topic'
/** Missing topics that are remembered. */
const MAX_MISSING = 1000

/** @param {any} error what `causeOf` returns @returns {boolean} the topic is not in the metadata */
const isUnknown = error =>
  error.apiId === 'UNKNOWN_TOPIC_OR_PARTITION' || /^Unknown topic /.test(error.message)

/**
 * A topic with pending messages. `single`: how many are sent alone next.
 * @typedef {{name: string, waiting: OutgoingMessage[], sending: boolean, single: number}} Topic
 */

/** @implements {Destination} */
class KafkaDestination {
  #options
  #context
  #failures = 0
  #stopped = false
  /** @type {NodeJS.Timeout | undefined} */
  #timer
  /** @type {Client | null} */
  #producer = null
  /** @type {Map<string, Topic>} */
  #topics = new Map()
  /** Missing topic -> ms, when it is asked for again. @type {Map<string, number>} */
  #missing = new Map()

  /** @param {DestinationContext} context */
  constructor(context) {
    this.#context = context
    this.#options = context.options
  }

  start() {
    this.#connect()
  }

  #create() {
    const producer = new Producer({
      ...clientOptions(this.#options),
      timeout: IO_TIMEOUT_MS,
      requestTimeout: IO_TIMEOUT_MS,
      acks: -1,
      autocreateTopics: false,
      repeatOnStaleMetadata: false,
    })
    producer.on('error', () => {})
    return producer
  }

  async #connect() {
    const producer = this.#create()
    try {
      await producer.metadata({ topics: [] })
      if (this.#stopped) return void producer.close(true).catch(() => {})
      this.#producer = producer
      this.#context.up()
    } catch (error) {
      producer.close(true).catch(() => {})
      if (this.#stopped) return
      this.#context.down(causeOf(error))
      this.#retry()
    }
  }

  #retry() {
    this.#timer = setTimeout(() => this.#connect(), reconnectDelay(++this.#failures))
  }

  /** @param {Client} producer @param {Error} reason */
  #lost(producer, reason) {
    if (this.#producer !== producer) return
    this.#producer = null
    this.#topics.clear()
    producer.close(true).catch(() => {})
    this.#context.down(reason)
    this.#retry()
  }

  /** @param {OutgoingMessage} message @throws {Error} if Kafka has no form for it */
  send(message) {
    const { target: name } = message
    if (!/^[\w.-]{1,249}$/.test(name) || name === '.' || name === '..')
      throw new Error('the channel does not make a topic of Kafka')
    if ((this.#missing.get(name) ?? 0) > performance.now())
      return void queueMicrotask(() => this.#context.settled(message, 'refused', NO_TOPIC))
    let topic = this.#topics.get(name)
    if (topic === undefined) {
      topic = { name, waiting: [], sending: false, single: 0 }
      this.#topics.set(name, topic)
    }
    topic.waiting.push(message)
  }

  flush() {
    const producer = this.#producer
    if (producer === null) return
    for (const topic of this.#topics.values()) if (!topic.sending) this.#sendTopic(producer, topic)
  }

  /** @param {Client} producer @param {Topic} topic until nothing waits */
  async #sendTopic(producer, topic) {
    topic.sending = true
    let asked = false
    while (topic.waiting.length > 0) {
      const batch = this.#nextBatch(topic)
      const failure = await this.#sendBatch(producer, topic.name, batch)
      if (this.#producer !== producer) return
      if (failure === null) {
        this.#failures = 0
        for (const message of batch) this.#context.settled(message, 'confirmed')
      } else if (isUnknown(failure)) {
        topic.waiting.unshift(...batch)
        if (asked) return this.#refuseAll(topic)
        asked = true
        await new Promise(resolve => setTimeout(resolve, ASK_AGAIN_MS))
        if (this.#producer !== producer) return
      } else if (!REFUSED.has(failure.apiId)) return this.#lost(producer, failure)
      else if (batch.length === 1 || OF_TOPIC.has(failure.apiId)) {
        for (const message of batch) this.#context.settled(message, 'refused', failure.message)
      } else {
        // One of them is bad: which one, the server does not say.
        topic.single = batch.length
        topic.waiting.unshift(...batch)
      }
    }
    topic.sending = false
    this.#topics.delete(topic.name)
  }

  /** @param {Topic} topic that is missing */
  #refuseAll({ name, waiting }) {
    this.#topics.delete(name)
    if (this.#missing.size >= MAX_MISSING) this.#missing.clear()
    this.#missing.set(name, performance.now() + MISSING_MS)
    for (const message of waiting) this.#context.settled(message, 'refused', NO_TOPIC)
  }

  /** @param {Topic} topic @returns {OutgoingMessage[]} */
  #nextBatch(topic) {
    const { waiting } = topic
    let count = 1
    if (topic.single > 0) topic.single--
    else {
      let bytes = waiting[0].bytes
      while (count < waiting.length && bytes + waiting[count].bytes <= MAX_BATCH_BYTES) {
        bytes += waiting[count++].bytes
      }
    }
    return waiting.splice(0, count)
  }

  /** @param {Client} producer @param {string} topic @param {OutgoingMessage[]} batch @returns {Promise<any>} the error, null */
  async #sendBatch(producer, topic, batch) {
    try {
      await producer.send({ messages: batch.map(message => recordOf(topic, message)) })
      return null
    } catch (error) {
      return causeOf(error)
    }
  }

  async stop() {
    this.#stopped = true
    clearTimeout(this.#timer)
    const producer = this.#producer
    this.#producer = null
    await producer?.close(true).catch(() => {})
  }
}

/** @param {string} topic @param {OutgoingMessage} message */
function recordOf(topic, { channel, body, headers, id, time }) {
  const all = new Map([[Buffer.from('id'), Buffer.from(id)]])
  for (const name in headers) all.set(Buffer.from(name), Buffer.from(headers[name]))
  return { topic, key: Buffer.from(channel), value: body, headers: all, timestamp: BigInt(time) }
}

/** @param {DestinationContext} context @returns {Destination} */
export const create = context => new KafkaDestination(context)
