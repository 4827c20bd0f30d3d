// Entries of Redis streams, by a consumer group. An entry without success stays pending, and is taken again after the
// visibility timeout, by any node: later entries overtake it.

import { once } from 'node:events'
import { Redis } from 'ioredis'
import { clusterConnector, parseTargets, slotOf } from '../../../channels/broker/redis-targets.js'
import { backoffDelay, limited } from '../timing.js'

/** @import { Target } from '../../../channels/broker/redis/address.js' */
/** @import { Consumer, ConsumerContext, Message } from '../contract.js' */

/** Time to reach the server at the start, ms. */
const START_TIMEOUT_MS = 5000
/** Longest time that a read waits for entries, ms. */
const MAX_BLOCK_MS = 5000
/** Longest time between two searches for entries that were left pending, ms. */
const MAX_CLAIM_MS = 5000
/** Bounds of the entries that are read at once; one entry may be larger. */
const MAX_ENTRIES = 128
const MAX_BYTES = 4 * 1024 * 1024
/** A node of a cluster has not run the command: it does not serve the slot. */
const MISPLACED = /^(?:MOVED|ASK|TRYAGAIN) /
const MAX_TRIES = 4

/** @typedef {[id: Buffer, fields: Buffer[] | null]} Entry fields: names and values in turn; null: it was deleted */

/** @param {Target} target @param {string} key of the stream @returns {Redis} to the server that has the stream */
function clientOf({ kind, options, nodes = [] }, key) {
  return new Redis({
    ...options,
    ...(kind === 'cluster' && {
      Connector: clusterConnector(nodes, slotOf(key), options),
      reconnectOnError: ({ message }) => MISPLACED.test(message),
    }),
    protocol: 2,
    lazyConnect: true,
    enableOfflineQueue: false,
    // A repeated read would leave its entries to nobody.
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    disableClientInfo: true,
    retryStrategy: tries => backoffDelay(tries),
  })
}

/** @param {Entry[]} entries @returns {number} bytes */
function bytesOf(entries) {
  let bytes = 0
  for (const [, fields] of entries) for (const field of fields ?? []) bytes += field.length
  return bytes
}

/** @param {Buffer} id `ms-number` @returns {number} unix ms */
const timeOf = id => Number.parseInt(id.toString('latin1'), 10)

/** One stream. */
class Stream {
  /** Reads of own pending entries come first: a former process of this node may have left some. */
  from = '0'
  nextClaim = 0
  /** Entries of the next read. */
  count
  /** @type {number | null} */
  readerId = null

  /** @param {string} key @param {Redis} reader blocks @param {Redis} commands does not @param {number} count */
  constructor(key, reader, commands, count) {
    this.key = key
    this.reader = reader
    this.commands = commands
    this.count = count
  }
}

/** @implements {Consumer} */
class RedisStreamConsumer {
  #context
  #options
  #target
  #block
  #claimEvery
  #stopping = new AbortController()
  /** @type {Stream[]} */
  #streams = []
  /** @type {Promise<void>[]} */
  #loops = []
  /** @type {Map<string, number>} by stream */
  #lags = new Map()
  /** @type {Error | null} why a connection failed last */
  #reason = null

  /** @param {ConsumerContext} context */
  constructor(context) {
    this.#context = context
    this.#options = context.options
    ;[this.#target] = parseTargets(context.options, 'redis_stream')
    this.#block = Math.max(1, Math.min(MAX_BLOCK_MS, Math.floor(context.options.io_timeout / 2)))
    this.#claimEvery = Math.min(MAX_CLAIM_MS, context.options.visibility_timeout)
  }

  /** @param {Redis} client @throws {Error} in one line, without passwords */
  async #connect(client) {
    client.on('error', error => {
      this.#reason = error
    })
    try {
      const answer = client.connect().then(() => client.call('PING'))
      await limited(answer, START_TIMEOUT_MS, 'no answer within 5 s')
    } catch (error) {
      const reason = this.#reason ?? error
      throw new Error(`cannot reach redis at ${this.#target.name}: ${reason.code ?? reason.message}`)
    }
  }

  async start() {
    const { streams, num_workers: workers } = this.#options
    this.#reason = null
    this.#streams = []
    try {
      for (const key of streams) {
        const reader = clientOf(this.#target, key)
        const shared = this.#target.kind === 'cluster' ? undefined : this.#streams[0]?.commands
        const stream = new Stream(key, reader, shared ?? clientOf(this.#target, key), workers)
        this.#streams.push(stream)
        reader.on('ready', () =>
          reader.call('CLIENT', 'ID').then(
            id => {
              stream.readerId = Number(id)
            },
            () => {},
          ),
        )
        if (shared === undefined) await this.#connect(stream.commands)
        await this.#connect(reader)
        await this.#createGroup(stream)
      }
    } catch (error) {
      this.#disconnect()
      throw error
    }
    this.#loops = this.#streams.map(stream => this.#pull(stream))
  }

  /**
   * Runs a command, again when the slot of its stream has moved to another master.
   * @param {Redis} client @param {string} name @param {...(string | number | Buffer)} args
   * @returns {Promise<any>} reply, texts as Buffers
   */
  async #call(client, name, ...args) {
    for (let tries = 1; ; tries++) {
      try {
        return await client.callBuffer(name, ...args)
      } catch (error) {
        if (tries === MAX_TRIES || !MISPLACED.test(error.message)) throw error
        const late = AbortSignal.timeout(START_TIMEOUT_MS)
        await once(client, 'ready', { signal: AbortSignal.any([this.#stopping.signal, late]) })
      }
    }
  }

  /** @param {Stream} stream */
  async #createGroup({ key, commands }) {
    const { consumer_group: group } = this.#options
    try {
      await this.#call(commands, 'XGROUP', 'CREATE', key, group, '$', 'MKSTREAM')
    } catch (error) {
      if (!String(error.message).startsWith('BUSYGROUP')) throw error
    }
  }

  /** @param {Stream} stream */
  async #pull(stream) {
    const { signal } = this.#stopping
    let tries = 0
    while (!signal.aborted) {
      try {
        if (stream.from === '>' && performance.now() >= stream.nextClaim) await this.#claim(stream)
        if (signal.aborted) break
        const entries = await this.#read(stream)
        tries = 0
        await this.#run(stream, entries)
      } catch (error) {
        if (signal.aborted) break
        const missing = String(error.message).startsWith('NOGROUP')
        this.#context.failed(missing ? error : (this.#reason ?? error))
        this.#reason = null
        if (missing) await this.#createGroup(stream).catch(() => {})
        await this.#context.backoff(++tries, signal)
      }
    }
  }

  /** @param {Stream} stream @returns {Promise<Entry[]>} */
  async #read(stream) {
    const { consumer_group: group } = this.#options
    const { key, from, reader } = stream
    const args = ['GROUP', group, this.#context.node, 'COUNT', stream.count]
    if (from === '>') args.push('BLOCK', this.#block)
    const reply = await this.#call(reader, 'XREADGROUP', ...args, 'STREAMS', key, from)
    /** @type {Entry[]} */
    const entries = reply?.[0]?.[1] ?? []
    if (from !== '>') stream.from = entries.length === 0 ? '>' : String(entries[entries.length - 1][0])
    return entries
  }

  /** Takes entries that were left pending, also by nodes that are gone. @param {Stream} stream */
  async #claim(stream) {
    const { consumer_group: group, visibility_timeout: idle } = this.#options
    const { signal } = this.#stopping
    let cursor = '0-0'
    do {
      const args = [stream.key, group, this.#context.node, idle, cursor, 'COUNT', stream.count]
      const reply = await this.#call(stream.commands, 'XAUTOCLAIM', ...args)
      cursor = String(reply[0])
      await this.#run(stream, reply[1])
    } while (cursor !== '0-0' && !signal.aborted)
    await this.#measureLag(stream)
    stream.nextClaim = performance.now() + this.#claimEvery
  }

  /** Servers before 7.0 do not know it. @param {Stream} stream */
  async #measureLag({ key, commands }) {
    const groups = /** @type {any[][]} */ (await commands.call('XINFO', 'GROUPS', key))
    for (const fields of groups) {
      const at = (/** @type {string} */ name) => fields[fields.indexOf(name) + 1]
      if (!fields.includes('lag') || at('name') !== this.#options.consumer_group) continue
      this.#lags.set(key, Number(at('lag') ?? 0) + Number(at('pending')))
      this.#context.lag([...this.#lags.values()].reduce((sum, lag) => sum + lag, 0))
    }
  }

  /**
   * Runs entries, as many at a time as there are workers, and acknowledges those that are done.
   * @param {Stream} stream @param {Entry[]} entries
   */
  async #run(stream, entries) {
    if (entries.length === 0) return
    /** @type {Promise<unknown>[]} */
    const acks = []
    let next = 0
    let failures = 0
    const { num_workers: workers, consumer_group: group } = this.#options
    const work = async () => {
      while (next < entries.length && !(failures > 0 && this.#stopping.signal.aborted)) {
        const [id, fields] = entries[next++] ?? []
        if (id === undefined) continue
        const outcome =
          fields === null ? 'skipped' : await this.#context.handle(this.#message(fields), timeOf(id))
        if (outcome === 'retry') await this.#context.backoff(++failures, this.#stopping.signal)
        else {
          failures = 0
          const ack = this.#call(stream.commands, 'XACK', stream.key, group, id)
          ack.catch(() => {})
          acks.push(ack)
        }
      }
    }
    await Promise.all(Array.from({ length: Math.min(workers, entries.length) }, work))
    const bytes = bytesOf(entries)
    const room = Math.floor((MAX_BYTES * entries.length) / Math.max(1, bytes))
    const more = failures > 0 ? workers : entries.length < stream.count ? stream.count : 2 * stream.count
    stream.count = Math.max(workers, Math.min(more, room, Math.max(workers, MAX_ENTRIES)))
    await Promise.all(acks)
  }

  /** @param {Buffer[]} fields @returns {Message} */
  #message(fields) {
    const {
      payload_value: payloadField,
      method_value: methodField,
      publication_data_mode: mode,
    } = this.#options
    /** @type {Message} */
    const message = { payload: null, method: '', headers: Object.create(null) }
    for (let i = 0; i + 1 < fields.length; i += 2) {
      const name = fields[i].toString()
      if (name === payloadField) message.payload = fields[i + 1]
      else {
        message.headers[name] = fields[i + 1].toString()
        if (!mode.enabled && name === methodField && methodField !== '')
          message.method = message.headers[name]
      }
    }
    return message
  }

  async stop() {
    this.#stopping.abort()
    for (const { readerId, commands } of this.#streams)
      if (readerId !== null) commands.call('CLIENT', 'UNBLOCK', String(readerId)).catch(() => {})
    await Promise.all(this.#loops)
    for (const stream of this.#streams) await this.#forget(stream).catch(() => {})
    this.#disconnect()
  }

  /** Removes this node from the group, unless it leaves entries behind. @param {Stream} stream */
  async #forget({ key, commands }) {
    const { consumer_group: group } = this.#options
    const { node } = this.#context
    const pending = await commands.call('XPENDING', key, group, '-', '+', '1', node)
    if (Array.isArray(pending) && pending.length === 0)
      await commands.call('XGROUP', 'DELCONSUMER', key, group, node)
  }

  #disconnect() {
    for (const { reader, commands } of this.#streams) {
      reader.disconnect()
      commands.disconnect()
    }
  }
}

/** @param {ConsumerContext} context @returns {Consumer} */
export const create = context => new RedisStreamConsumer(context)
