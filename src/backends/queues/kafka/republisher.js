// Kafka records are keyed by channel: a channel keeps its partition. One request per topic at a time keeps the order
// without an idempotent producer.

import { setTimeout as wait } from 'node:timers/promises'
import { Link } from '../timing.js'
import { causeOf, clientOptions, loadKafka } from './client.js'

/** @import { Producer as Client } from '@platformatic/kafka' */
/** @import { Destination, DestinationContext, OutgoingMessage } from '../contract.js' */

// Not in start(): a missing package fails the import of this file.
const { Producer } = await loadKafka()

/** Response timeout after which a server counts as lost. */
const IO_TIMEOUT_MS = 10_000
/** Maximum bodies of a request, unless a single one is larger: the default limit of servers is 1 MiB. */
const MAX_BATCH_BYTES = 512 * 1024
/** Permanent errors of a message: it is refused. */
const REFUSED = new Set([
  'INVALID_TOPIC_EXCEPTION',
  'TOPIC_AUTHORIZATION_FAILED',
  'MESSAGE_TOO_LARGE',
  'RECORD_LIST_TOO_LARGE',
  'INVALID_RECORD',
  'INVALID_TIMESTAMP',
  'POLICY_VIOLATION',
])
/** Errors of the topic, not of a message. */
const OF_TOPIC = new Set(['INVALID_TOPIC_EXCEPTION', 'TOPIC_AUTHORIZATION_FAILED'])

/** Delay of the second lookup of a missing topic: a starting server may not know it yet. */
const LOOKUP_MS = 1000
/** Time without lookups of a missing topic: refuses its messages. */
const MISSING_MS = 5000
const NO_TOPIC = 'the topic does not exist'
const MAX_MISSING = 1000

/** @param {any} error from `causeOf` @returns {boolean} whether the topic is not in the metadata */
const isUnknown = error =>
  error.apiId === 'UNKNOWN_TOPIC_OR_PARTITION' || /^Unknown topic /.test(error.message)

/**
 * A topic with pending messages. `single`: number to send one by one.
 * @typedef {{name: string, waiting: OutgoingMessage[], sending: boolean, single: number}} Topic
 */

/** @param {Topic} topic @returns {OutgoingMessage[]} */
function nextBatch(topic) {
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
async function sendBatch(producer, topic, batch) {
  try {
    await producer.send({ messages: batch.map(message => recordOf(topic, message)) })
    return null
  } catch (error) {
    return causeOf(error)
  }
}

/** @param {string} topic @param {OutgoingMessage} message */
function recordOf(topic, { channel, body, headers, id, time }) {
  const all = new Map([[Buffer.from('id'), Buffer.from(id)]])
  for (const name in headers) all.set(Buffer.from(name), Buffer.from(headers[name]))
  return { topic, key: Buffer.from(channel), value: body, headers: all, timestamp: BigInt(time) }
}

/** @param {DestinationContext<'kafka'>} context @returns {Destination} */
export function create(context) {
  /** @type {Map<string, Topic>} */
  const topics = new Map()
  /** Missing topic -> ms of its next lookup. @type {Map<string, number>} */
  const missing = new Map()
  /** @type {Link<Client>} */
  const link = new Link(context, open, producer => producer.close(true))

  async function open() {
    const producer = new Producer({
      ...clientOptions(context.options),
      timeout: IO_TIMEOUT_MS,
      requestTimeout: IO_TIMEOUT_MS,
      acks: -1,
      autocreateTopics: false,
      repeatOnStaleMetadata: false,
    })
    producer.on('error', () => {})
    try {
      await producer.metadata({ topics: [] })
      return producer
    } catch (error) {
      producer.close(true).catch(() => {})
      throw causeOf(error)
    }
  }

  /** @param {Client} producer @param {Topic} topic until nothing waits */
  async function sendTopic(producer, topic) {
    topic.sending = true
    let lookedUp = false
    while (topic.waiting.length > 0) {
      const batch = nextBatch(topic)
      const failure = await sendBatch(producer, topic.name, batch)
      if (link.current !== producer) return
      if (failure === null) {
        link.worked()
        for (const message of batch) context.settled(message, 'confirmed')
      } else if (isUnknown(failure)) {
        topic.waiting.unshift(...batch)
        if (lookedUp) return refuseAll(topic)
        lookedUp = true
        await wait(LOOKUP_MS)
        if (link.current !== producer) return
      } else if (!REFUSED.has(failure.apiId)) {
        topics.clear()
        return link.lost(producer, failure)
      } else if (batch.length === 1 || OF_TOPIC.has(failure.apiId)) {
        for (const message of batch) context.settled(message, 'refused', failure.message)
      } else {
        // One is invalid; the server does not report which.
        topic.single = batch.length
        topic.waiting.unshift(...batch)
      }
    }
    topic.sending = false
    topics.delete(topic.name)
  }

  /** @param {Topic} topic that is missing */
  function refuseAll({ name, waiting }) {
    topics.delete(name)
    if (missing.size >= MAX_MISSING) missing.clear()
    missing.set(name, performance.now() + MISSING_MS)
    for (const message of waiting) context.settled(message, 'refused', NO_TOPIC)
  }

  return {
    start: () => void link.start(),
    stop: () => link.stop(),
    /** @throws {Error} if the topic name is invalid */
    send(message) {
      const { target: name } = message
      if (!/^[\w.-]{1,249}$/.test(name) || name === '.' || name === '..')
        throw new Error('the topic of the channel is invalid')
      if ((missing.get(name) ?? 0) > performance.now())
        return void queueMicrotask(() => context.settled(message, 'refused', NO_TOPIC))
      let topic = topics.get(name)
      if (topic === undefined) {
        topic = { name, waiting: [], sending: false, single: 0 }
        topics.set(name, topic)
      }
      topic.waiting.push(message)
    },
    flush() {
      const producer = link.current
      if (producer === null) return
      for (const topic of topics.values()) if (!topic.sending) sendTopic(producer, topic)
    },
  }
}
