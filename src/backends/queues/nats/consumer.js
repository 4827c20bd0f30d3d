// Messages of a NATS JetStream stream, through a durable pull consumer that the nodes share. A node handles them one by
// one. A failed message comes again after a delay, so later ones overtake it.

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
/** Delay of what is given back at the end: this process has left by then. */
const GIVE_BACK_MS = 100
const ACK_WAIT_NS = 30_000_000_000
/** Messages that wait in this process at most: together they are due within the acknowledgement time. */
const MAX_FETCHED = 100
const MAX_DELAY_MS = 5000
/** Deliveries after which the delay grows no more. */
const MAX_DOUBLINGS = 10

/** @param {number} deliveries of a message so far @returns {number} ms until the next one */
const delayOf = deliveries =>
  Math.min(MAX_DELAY_MS, (10 + Math.floor(Math.random() * 10)) * 2 ** Math.min(deliveries, MAX_DOUBLINGS))

/** @implements {Consumer} */
class NatsConsumer {
  #context
  #options
  /** @type {NatsConnection | null} */
  #connection = null
  /** @type {ConsumerMessages | null} */
  #messages = null
  #stopping = new AbortController()
  /** Fetched, but not in work when it stopped. @type {JsMsg[]} */
  #unbegun = []
  /** @type {Promise<void>} */
  #running = Promise.resolve()

  /** @param {ConsumerContext} context */
  constructor(context) {
    this.#context = context
    this.#options = context.options
  }

  async start() {
    const connection = await connect({
      ...(await connectionOptions(this.#options)),
      timeout: CONNECT_TIMEOUT_MS,
      maxReconnectAttempts: -1,
      reconnectTimeWait: RECONNECT_MS,
      ignoreAuthErrorAbort: true,
    })
    try {
      this.#messages = await this.#subscribe(connection)
    } catch (error) {
      await connection.close()
      throw new Error(`stream ${this.#options.stream_name}: ${error.message}`, { cause: error })
    }
    this.#connection = connection
    void this.#watch(connection)
    this.#running = this.#run(connection)
  }

  async stop() {
    this.#stopping.abort()
    const connection = this.#connection
    if (connection === null) return
    await this.#messages?.close()
    await this.#running
    // At once, the server would send the first one to the pull request of this process again, where it is lost for 30
    // s.
    for (const message of this.#unbegun) message.nak(GIVE_BACK_MS)
    await within(connection.flush(), FLUSH_TIMEOUT_MS)
    await connection.close()
  }

  /** @param {NatsConnection} connection @returns {Promise<ConsumerMessages>} rejects without the stream */
  async #subscribe(connection) {
    const { stream_name: stream, durable_consumer_name: durable, subjects } = this.#options
    if (!this.#options.use_existing_consumer) {
      const manager = await jetstreamManager(connection)
      /** What may be changed later. */
      const settings = {
        max_ack_pending: this.#options.max_ack_pending,
        // Servers before 2.10 know one subject only.
        ...(subjects.length === 1 && { filter_subject: subjects[0] }),
        ...(subjects.length > 1 && { filter_subjects: subjects }),
      }
      try {
        await manager.consumers.add(stream, {
          ...settings,
          durable_name: durable,
          ack_policy: AckPolicy.Explicit,
          ack_wait: ACK_WAIT_NS,
          max_deliver: -1,
          deliver_policy: this.#options.deliver_policy === 'all' ? DeliverPolicy.All : DeliverPolicy.New,
        })
      } catch (error) {
        if (!/already exists/.test(error.message)) throw error
        await manager.consumers.update(stream, durable, settings)
      }
    }
    const consumer = await jetstream(connection).consumers.get(stream, durable)
    return consumer.consume({ max_messages: MAX_FETCHED, abort_on_missing_resource: true })
  }

  /** Counts the losses of the connection. @param {NatsConnection} connection */
  async #watch(connection) {
    for await (const { type } of connection.status())
      if (type === 'disconnect') this.#context.failed(new Error('the connection to NATS is lost'))
  }

  /** @param {NatsConnection} connection */
  async #run(connection) {
    const { signal } = this.#stopping
    let tries = 0
    while (!signal.aborted) {
      try {
        this.#messages ??= await this.#subscribe(connection)
        tries = 0
        for await (const message of this.#messages) await this.#handle(message)
        if (!signal.aborted) throw new Error('the consumer was deleted')
      } catch (error) {
        if (signal.aborted) return
        this.#context.failed(error)
      }
      this.#messages = null
      await this.#context.backoff(++tries, signal)
    }
  }

  /** @param {JsMsg} message */
  async #handle(message) {
    if (this.#stopping.signal.aborted) return void this.#unbegun.push(message)
    /** @type {Record<string, string>} */
    const headers = Object.create(null)
    if (message.headers) for (const [name, values] of message.headers) headers[name] = values[0] ?? ''
    const { data, info } = message
    const outcome = await this.#context.handle(
      {
        payload: Buffer.from(data.buffer, data.byteOffset, data.byteLength),
        method: headers[this.#options.method_header] ?? '',
        headers,
      },
      message.time.getTime(),
    )
    this.#context.lag(info.pending)
    if (outcome === 'retry') message.nak(delayOf(info.deliveryCount))
    else message.ack()
  }
}

/** @param {ConsumerContext} context @returns {Consumer} */
export const create = context => new NatsConsumer(context)
