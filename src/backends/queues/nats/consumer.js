// A NATS JetStream stream, read by a durable pull consumer shared by all nodes. A node handles one message at a time.
// A failed message is redelivered after a delay: later ones overtake it.

import { AckPolicy, DeliverPolicy, jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { within } from '../timing.js'
import { connectionOptions } from './client.js'

/** @import { ConsumerMessages, JsMsg } from '@nats-io/jetstream' */
/** @import { NatsConnection } from '@nats-io/transport-node' */
/** @import { Consumer, ConsumerContext } from '../contract.js' */

const CONNECT_TIMEOUT_MS = 10_000
const RECONNECT_MS = 500
const FLUSH_TIMEOUT_MS = 1000
/** Redelivery delay of messages returned on stop: the process exits first. */
const GIVE_BACK_MS = 100
const ACK_WAIT_NS = 30_000_000_000
/** Maximum fetched messages: they must be handled within ACK_WAIT_NS. */
const MAX_FETCHED = 100
const MAX_DELAY_MS = 5000
const MAX_DOUBLINGS = 10

/** @param {number} deliveries of a message so far @returns {number} ms until the next one */
const delayOf = deliveries =>
  Math.min(MAX_DELAY_MS, (10 + Math.floor(Math.random() * 10)) * 2 ** Math.min(deliveries, MAX_DOUBLINGS))

/** @param {ConsumerContext<'nats_jetstream'>} context @returns {Consumer} */
export function create(context) {
  const { options } = context
  const { stream_name: stream, durable_consumer_name: durable } = options
  const stopping = new AbortController()
  const { signal } = stopping
  /** @type {NatsConnection | null} */
  let connection = null
  /** @type {ConsumerMessages | null} */
  let messages = null
  /** Fetched but not started on stop. @type {JsMsg[]} */
  const unbegun = []
  /** @type {Promise<void>} */
  let running = Promise.resolve()

  /** @param {NatsConnection} to @returns {Promise<ConsumerMessages>} rejects without the stream */
  async function subscribe(to) {
    if (!options.use_existing_consumer) await addConsumer(to)
    const consumer = await jetstream(to).consumers.get(stream, durable)
    return consumer.consume({ max_messages: MAX_FETCHED, abort_on_missing_resource: true })
  }

  /** @param {NatsConnection} to */
  async function addConsumer(to) {
    const { subjects, max_ack_pending, deliver_policy: policy } = options
    const { consumers } = await jetstreamManager(to)
    /** Updatable settings. Servers before 2.10 support one subject only. */
    const settings = {
      max_ack_pending,
      ...(subjects.length === 1 && { filter_subject: subjects[0] }),
      ...(subjects.length > 1 && { filter_subjects: [...subjects] }),
    }
    try {
      await consumers.add(stream, {
        ...settings,
        durable_name: durable,
        ack_policy: AckPolicy.Explicit,
        ack_wait: ACK_WAIT_NS,
        max_deliver: -1,
        deliver_policy: policy === 'all' ? DeliverPolicy.All : DeliverPolicy.New,
      })
    } catch (error) {
      if (!/already exists/.test(error.message)) throw error
      await consumers.update(stream, durable, settings)
    }
  }

  /** Reports connection losses. @param {NatsConnection} to */
  async function watch(to) {
    for await (const { type } of to.status())
      if (type === 'disconnect') context.failed(new Error('the connection to NATS was lost'))
  }

  /** @param {NatsConnection} to */
  async function run(to) {
    let tries = 0
    while (!signal.aborted) {
      try {
        messages ??= await subscribe(to)
        tries = 0
        for await (const message of messages) await handle(message)
        if (!signal.aborted) throw new Error('the consumer was deleted')
      } catch (error) {
        if (signal.aborted) return
        context.failed(error)
      }
      messages = null
      await context.backoff(++tries, signal)
    }
  }

  /** @param {JsMsg} message */
  async function handle(message) {
    if (signal.aborted) return void unbegun.push(message)
    /** @type {Record<string, string>} */
    const headers = Object.create(null)
    if (message.headers) for (const [name, values] of message.headers) headers[name] = values[0] ?? ''
    const { data, info } = message
    const payload = Buffer.from(data.buffer, data.byteOffset, data.byteLength)
    const call = { payload, method: headers[options.method_header] ?? '', headers }
    const outcome = await context.handle(call, message.time.getTime())
    context.lag(info.pending)
    if (outcome === 'retry') message.nak(delayOf(info.deliveryCount))
    else message.ack()
  }

  return {
    async start() {
      const opened = await connect({
        ...(await connectionOptions(options)),
        timeout: CONNECT_TIMEOUT_MS,
        maxReconnectAttempts: -1,
        reconnectTimeWait: RECONNECT_MS,
        ignoreAuthErrorAbort: true,
      })
      try {
        messages = await subscribe(opened)
      } catch (error) {
        await opened.close()
        throw new Error(`stream ${stream}: ${error.message}`, { cause: error })
      }
      connection = opened
      void watch(opened)
      running = run(opened)
    },
    async stop() {
      stopping.abort()
      if (connection === null) return
      await messages?.close()
      await running
      // Without a delay the server redelivers the first one to this process, where it is lost for 30 s.
      for (const message of unbegun) message.nak(GIVE_BACK_MS)
      await within(connection.flush(), FLUSH_TIMEOUT_MS)
      await connection.close()
    },
  }
}
