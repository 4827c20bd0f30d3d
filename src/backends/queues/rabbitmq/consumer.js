// Consumer type `rabbitmq`: one reader per queue, each with a connection of its own. Messages of a queue run in order,
// one at a time unless `concurrency` is larger, and are acknowledged afterwards. A message that fails waits
// unacknowledged: requeued, it would come back at once, thousands of times a second.

import { connect } from 'amqplib'
import { tlsOptions } from '../../../config/pem.js'
import { within } from '../timing.js'

/** @import { Channel, ChannelModel, ConsumeMessage } from 'amqplib' */
/** @import { Consumer, ConsumerContext, Message, Outcome } from '../contract.js' */

const CONNECT_TIMEOUT_MS = 5000
/** A server that stands still is noticed after two of them. */
const HEARTBEAT_SECONDS = 10
/** Time for the last acknowledgements at the end; a server that stands still does not delay the end longer, ms. */
const CLOSE_TIMEOUT_MS = 2000
const LAG_INTERVAL_MS = 5000
/** A subscription that lasted that long has succeeded: the next back-off begins small again. */
const STABLE_MS = 5000
/** `timestamp` has seconds, but some clients write milliseconds: above this one it cannot be seconds. */
const LAST_SECOND = 1e11

/**
 * @param {unknown} headers as decoded
 * @returns {Record<string, string>} texts, numbers and switches; nested tables and binary values are left out
 */
function textsOf(headers) {
  const texts = Object.create(null)
  for (const [name, value] of Object.entries(headers ?? {})) {
    if (['string', 'number', 'boolean', 'bigint'].includes(typeof value)) texts[name] = String(value)
  }
  return texts
}

/** @param {unknown} timestamp @returns {number | undefined} unix ms */
function writtenAt(timestamp) {
  if (typeof timestamp !== 'number' || !(timestamp > 0)) return undefined
  return timestamp < LAST_SECOND ? timestamp * 1000 : timestamp
}

/** @param {string} url @returns {string} with the interval of heartbeats, unless it has one */
function withHeartbeat(url) {
  const parsed = new URL(url)
  if (!parsed.searchParams.has('heartbeat')) parsed.searchParams.set('heartbeat', `${HEARTBEAT_SECONDS}`)
  return parsed.href
}

/** @param {any} model @returns {import('node:net').Socket} */
const socketOf = model => model.connection.stream

/** One connection and its subscription to the queue, until it is lost or closed. */
class Subscription {
  /** Ends back-offs. */
  ended = new AbortController()
  /** @type {ConsumeMessage[]} bounded by `prefetch` */
  #waiting = []
  /** @type {Set<Promise<void>>} */
  #running = new Set()
  /** Finished but not acknowledged: the newest one, and how many. @type {ConsumeMessage | null} */
  #finished = null
  #finishedCount = 0
  #tag = ''
  /** @type {NodeJS.Timeout | undefined} */
  #lagTimer
  /** @type {Promise<Error>} */
  lost
  #queue
  #context
  model
  #channel
  #measured

  /**
   * @param {string} queue @param {ConsumerContext} context @param {ChannelModel} model @param {Channel} channel
   * @param {(messages: number) => void} measured gets the length of the queue
   */
  constructor(queue, context, model, channel, measured) {
    this.#queue = queue
    this.#measured = measured
    this.#context = context
    this.model = model
    this.#channel = channel
    this.lost = new Promise(resolve => {
      /** @type {Error | null} */
      let reason = null
      const gone = (/** @type {any} */ error) => {
        reason ??= error instanceof Error ? error : null
        this.ended.abort()
        clearInterval(this.#lagTimer)
        resolve(reason ?? new Error('the connection was closed'))
      }
      const failed = (/** @type {Error} */ error) => {
        reason ??= error
      }
      model.on('error', failed).on('close', gone)
      channel.on('error', failed).on('close', gone)
    })
  }

  /** Messages begin to arrive. */
  async begin() {
    const { options } = this.#context
    if (options.declare) await this.#declare()
    const { messageCount } = await this.#channel.checkQueue(this.#queue)
    this.#measured(messageCount)
    await this.#channel.prefetch(options.prefetch)
    const { consumerTag } = await this.#channel.consume(this.#queue, message => {
      // The server has ended the subscription: the queue was deleted, or its node is gone.
      if (message === null) socketOf(this.model).destroy(new Error(`queue "${this.#queue}" was deleted`))
      else if (!this.ended.signal.aborted) {
        this.#waiting.push(message)
        this.#work()
      }
    })
    this.#tag = consumerTag
    this.#lagTimer = setInterval(() => this.#measure(), LAG_INTERVAL_MS).unref()
  }

  async #declare() {
    const { bindings, concurrency } = this.#context.options
    // One consumer at a time keeps the order over several nodes.
    const inOrder = concurrency === 1 ? { 'x-single-active-consumer': true } : {}
    await this.#channel.assertQueue(this.#queue, { durable: true, arguments: inOrder })
    for (const { queue, exchange, routing_key: key } of bindings) {
      if (queue === this.#queue) await this.#channel.bindQueue(queue, exchange, key)
    }
  }

  #measure() {
    // An error closes the channel, which is noticed.
    this.#channel.checkQueue(this.#queue).then(
      ({ messageCount }) => this.#measured(messageCount),
      () => {},
    )
  }

  #work() {
    while (this.#running.size < this.#context.options.concurrency) {
      const message = this.#waiting.shift()
      if (message === undefined) return
      const run = this.#run(message).then(() => {
        this.#running.delete(run)
        this.#work()
      })
      this.#running.add(run)
    }
  }

  /** @param {ConsumeMessage} message */
  async #run(message) {
    const { method_header: methodHeader } = this.#context.options
    const headers = textsOf(message.properties.headers)
    const since = writtenAt(message.properties.timestamp)
    /** @type {Message} */
    const call = { payload: message.content, method: headers[methodHeader] ?? '', headers }
    const { signal } = this.ended
    for (let tries = 1; ; tries++) {
      /** @type {Outcome} */
      const outcome = await this.#context.handle(call, since)
      if (outcome !== 'retry') return this.#settle(message, outcome)
      if (signal.aborted) return
      this.#acknowledge()
      await this.#context.backoff(tries, signal)
      if (signal.aborted) return
    }
  }

  /** @param {ConsumeMessage} message @param {'done' | 'skipped'} outcome */
  #settle(message, outcome) {
    const { concurrency, prefetch, on_malformed: onMalformed } = this.#context.options
    const rejected = outcome === 'skipped' && onMalformed === 'reject'
    if (rejected || concurrency > 1) {
      this.#acknowledge()
      this.#send(() => (rejected ? this.#channel.reject(message, false) : this.#channel.ack(message)))
      return
    }
    // One frame acknowledges many: they finish in the order of their delivery.
    this.#finished = message
    if (++this.#finishedCount * 2 >= prefetch || this.#waiting.length === 0) this.#acknowledge()
  }

  #acknowledge() {
    const last = this.#finished
    if (last === null) return
    this.#finished = null
    this.#finishedCount = 0
    this.#send(() => this.#channel.ack(last, true))
  }

  /** @param {() => void} write */
  #send(write) {
    try {
      write()
    } catch {
      // The channel is closed: the server delivers the message again.
    }
  }

  /** Resolves when no message is in work. */
  async settled() {
    this.#waiting = []
    while (this.#running.size > 0) await Promise.all(this.#running)
  }

  /** Ends: what runs is finished and acknowledged, the rest goes back to the queue. */
  async close() {
    clearInterval(this.#lagTimer)
    this.ended.abort()
    await this.settled()
    this.#acknowledge()
    await within(this.#leave(), CLOSE_TIMEOUT_MS)
    socketOf(this.model).destroy()
  }

  /** Rejects if it is closed already. */
  async #leave() {
    if (this.#tag !== '') await this.#channel.cancel(this.#tag)
    await this.#channel.close()
    await this.model.close()
  }
}

/** A queue, for as long as the consumer runs. */
class QueueReader {
  /** @type {Subscription | null} */
  #subscription = null
  #stopped = new AbortController()
  /** @type {Promise<void>} */
  #loop = Promise.resolve()
  #queue
  #context
  #next = 0
  #measured

  /** @param {string} queue @param {ConsumerContext} context @param {(messages: number) => void} measured */
  constructor(queue, context, measured) {
    this.#queue = queue
    this.#context = context
    this.#measured = measured
  }

  /** @throws {Error} if no server can be reached */
  async start() {
    this.#loop = this.#run(await this.#connect())
  }

  /** @returns {Promise<ChannelModel>} to the first server that answers */
  async #connect() {
    const { urls, tls } = this.#context.options
    const secure = tls.enabled ? tlsOptions(tls) : {}
    /** @type {unknown} */
    let failure
    for (let tried = 0; tried < urls.length; tried++) {
      const url = withHeartbeat(urls[this.#next % urls.length])
      try {
        const model = await connect(url, { ...secure, timeout: CONNECT_TIMEOUT_MS, noDelay: true })
        model.on('error', () => {})
        return /** @type {ChannelModel} */ (/** @type {unknown} */ (model))
      } catch (error) {
        failure = new Error(`${new URL(url).host}: ${error.message || error.code}`, { cause: error })
        this.#next++
      }
    }
    throw failure
  }

  /** @param {ChannelModel | null} model */
  async #run(model) {
    const { signal } = this.#stopped
    for (let tries = 1; !signal.aborted; tries++) {
      try {
        model ??= await this.#connect()
        const channel = await model.createChannel()
        channel.on('error', () => {})
        const subscription = new Subscription(this.#queue, this.#context, model, channel, this.#measured)
        this.#subscription = subscription
        if (signal.aborted) await subscription.close()
        else
          await Promise.race([subscription.begin(), subscription.lost.then(error => Promise.reject(error))])
        const begun = performance.now()
        const error = await subscription.lost
        if (performance.now() - begun > STABLE_MS) tries = 0
        throw error
      } catch (error) {
        if (signal.aborted) break
        this.#context.failed(error)
      }
      // What still runs must not overtake what the server delivers again.
      await this.#subscription?.settled()
      if (model) socketOf(model).destroy()
      model = null
      await this.#context.backoff(Math.max(tries, 1), signal)
    }
    // A subscription closes its own connection.
    if (model && this.#subscription?.model !== model) socketOf(model).destroy()
  }

  async stop() {
    this.#stopped.abort()
    await this.#subscription?.close()
    await this.#loop
  }
}

/** @param {ConsumerContext} context @returns {Consumer} */
export function create(context) {
  /** @type {Map<string, number>} */
  const lengths = new Map()
  /** @type {string[]} */
  const queues = context.options.queues
  const newReaders = () =>
    queues.map(
      queue =>
        new QueueReader(queue, context, messages => {
          lengths.set(queue, messages)
          context.lag([...lengths.values()].reduce((sum, length) => sum + length, 0))
        }),
    )
  /** @type {QueueReader[]} */
  let readers = []
  const stop = async () => void (await Promise.all(readers.map(reader => reader.stop())))
  return {
    async start() {
      readers = newReaders()
      try {
        await Promise.all(readers.map(reader => reader.start()))
      } catch (error) {
        await stop()
        throw error
      }
    },
    stop,
  }
}
