// Consumer type `rabbitmq`: one reader and connection per queue. A failed message stays unacknowledged: requeued, it
// would return thousands of times a second.

import { connect } from 'amqplib'
import { tlsOptions } from '../../../config/pem.js'
import { within } from '../timing.js'

/** @import { Channel, ChannelModel, ConsumeMessage } from 'amqplib' */
/** @import { Consumer, ConsumerContext, Message, Outcome } from '../contract.js' */

const CONNECT_TIMEOUT_MS = 5000
/** A hung server is detected after two of them. */
const HEARTBEAT_SECONDS = 10
const CLOSE_TIMEOUT_MS = 2000
const LAG_INTERVAL_MS = 5000
/** Subscription duration after which the backoff is reset, ms. */
const STABLE_MS = 5000
/** `timestamp` is in seconds, but some clients write ms: larger values are treated as ms. */
const LAST_SECOND = 1e11

/** @param {unknown} headers decoded @returns {Record<string, string>} without nested tables and binary values */
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

/** @param {string} url @returns {string} with a heartbeat interval, unless set */
function withHeartbeat(url) {
  const parsed = new URL(url)
  if (!parsed.searchParams.has('heartbeat')) parsed.searchParams.set('heartbeat', `${HEARTBEAT_SECONDS}`)
  return parsed.href
}

/** @param {any} model @returns {import('node:net').Socket} */
const socketOf = model => model.connection.stream

class Subscription {
  ended = new AbortController()
  /** @type {ConsumeMessage[]} bounded by `prefetch` */
  #waiting = []
  /** @type {Set<Promise<void>>} */
  #running = new Set()
  /** Finished but unacknowledged: the newest, and their count. @type {ConsumeMessage | null} */
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
   * @param {string} queue @param {ConsumerContext<'rabbitmq'>} context
   * @param {ChannelModel} model @param {Channel} channel
   * @param {(messages: number) => void} measured called with the length of the queue
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

  async begin() {
    const { options } = this.#context
    if (options.declare) await this.#declare()
    const { messageCount } = await this.#channel.checkQueue(this.#queue)
    this.#measured(messageCount)
    await this.#channel.prefetch(options.prefetch)
    const { consumerTag } = await this.#channel.consume(this.#queue, message => {
      // The server ended the subscription: the queue was deleted or its node is down.
      if (message === null) socketOf(this.model).destroy(new Error(`queue "${this.#queue}" was deleted`))
      else if (!this.ended.signal.aborted) {
        this.#waiting.push(message)
        this.#work()
      }
    })
    this.#tag = consumerTag
    const measure = async () => this.#measured((await this.#channel.checkQueue(this.#queue)).messageCount)
    // An error closes the channel, handled in `lost`.
    this.#lagTimer = setInterval(() => measure().catch(() => {}), LAG_INTERVAL_MS).unref()
  }

  async #declare() {
    const { bindings, concurrency } = this.#context.options
    // A single active consumer keeps the order across nodes.
    const inOrder = concurrency === 1 ? { 'x-single-active-consumer': true } : {}
    await this.#channel.assertQueue(this.#queue, { durable: true, arguments: inOrder })
    for (const { queue, exchange, routing_key: key } of bindings) {
      if (queue === this.#queue) await this.#channel.bindQueue(queue, exchange, key)
    }
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
    // One frame acknowledges many: they finish in delivery order.
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
      // The channel is closed: the server redelivers the message.
    }
  }

  async settled() {
    this.#waiting = []
    while (this.#running.size > 0) await Promise.all(this.#running)
  }

  /** Finishes and acknowledges messages in progress; the server requeues the others. */
  async close() {
    clearInterval(this.#lagTimer)
    this.ended.abort()
    await this.settled()
    this.#acknowledge()
    await within(this.#leave(), CLOSE_TIMEOUT_MS)
    socketOf(this.model).destroy()
  }

  async #leave() {
    if (this.#tag !== '') await this.#channel.cancel(this.#tag)
    await this.#channel.close()
    await this.model.close()
  }
}

/**
 * @param {string} queue @param {ConsumerContext<'rabbitmq'>} context
 * @param {(messages: number) => void} measured
 */
function createReader(queue, context, measured) {
  const { urls, tls } = context.options
  /** @type {Subscription | null} */
  let subscription = null
  const stopped = new AbortController()
  const { signal } = stopped
  /** @type {Promise<void>} */
  let loop = Promise.resolve()
  let nextUrl = 0

  async function open() {
    const secure = tls.enabled ? tlsOptions(tls) : {}
    /** @type {unknown} */
    let failure
    for (let tried = 0; tried < urls.length; tried++) {
      const url = withHeartbeat(urls[nextUrl % urls.length])
      try {
        const model = await connect(url, { ...secure, timeout: CONNECT_TIMEOUT_MS, noDelay: true })
        model.on('error', () => {})
        return /** @type {ChannelModel} */ (/** @type {unknown} */ (model))
      } catch (error) {
        failure = new Error(`${new URL(url).host}: ${error.message || error.code}`, { cause: error })
        nextUrl++
      }
    }
    throw failure
  }

  /** @param {ChannelModel | null} model */
  async function run(model) {
    for (let tries = 1; !signal.aborted; tries++) {
      try {
        model ??= await open()
        const channel = await model.createChannel()
        channel.on('error', () => {})
        const opened = new Subscription(queue, context, model, channel, measured)
        subscription = opened
        if (signal.aborted) await opened.close()
        else await Promise.race([opened.begin(), opened.lost.then(error => Promise.reject(error))])
        const begun = performance.now()
        const error = await opened.lost
        if (performance.now() - begun > STABLE_MS) tries = 0
        throw error
      } catch (error) {
        if (signal.aborted) break
        context.failed(error)
      }
      // Redelivered messages must not be overtaken by messages in progress.
      await subscription?.settled()
      if (model) socketOf(model).destroy()
      model = null
      await context.backoff(Math.max(tries, 1), signal)
    }
    // A subscription closes its own connection.
    if (model && subscription?.model !== model) socketOf(model).destroy()
  }

  return {
    async start() {
      loop = run(await open())
    },
    async stop() {
      stopped.abort()
      await subscription?.close()
      await loop
    },
  }
}

/** @param {ConsumerContext<'rabbitmq'>} context @returns {Consumer} */
export function create(context) {
  /** @type {Map<string, number>} */
  const lengths = new Map()
  const { queues } = context.options
  const newReaders = () =>
    queues.map(queue =>
      createReader(queue, context, messages => {
        lengths.set(queue, messages)
        context.lag([...lengths.values()].reduce((sum, length) => sum + length, 0))
      }),
    )
  /** @type {Consumer[]} */
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
