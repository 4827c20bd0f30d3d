// Entries of Redis streams, read by a consumer group. A failed entry stays pending until a node claims it after the
// visibility timeout: later entries overtake it.

import { once } from 'node:events'
import { Redis } from 'ioredis'
import { clusterConnector, parseTargets, slotOf } from '../../../channels/broker/redis-targets.js'
import { backoffDelay, limited } from '../timing.js'

/** @import { Target } from '../../../channels/broker/redis/address.js' */
/** @import { Consumer, ConsumerContext, Message } from '../contract.js' */

const START_TIMEOUT_MS = 5000
const MAX_BLOCK_MS = 5000
const MAX_CLAIM_MS = 5000
/** Limits of entries per read; a single entry may be larger. */
const MAX_ENTRIES = 128
const MAX_BYTES = 4 * 1024 * 1024
/** Errors of a cluster node not serving the slot: the command was not run. */
const MISPLACED = /^(?:MOVED|ASK|TRYAGAIN) /
const MAX_TRIES = 4

/** @typedef {[id: Buffer, fields: Buffer[] | null]} Entry fields: alternating names and values; null: deleted */

/** @param {Target} target @param {string} key of the stream @returns {Redis} to the server of the stream */
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
    // A repeated read would lose the entries of the first one.
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

/**
 * `reader` is for blocking reads; `count`: entries of the next read; `from`: first '0', the pending entries of an
 * earlier process of this node; `nextClaim`: ms.
 * @typedef {{key: string, reader: Redis, commands: Redis, count: number, from: string, nextClaim: number,
 *   readerId: number | null}} Stream
 */

/** @param {ConsumerContext<'redis_stream'>} context @returns {Consumer} */
export function create(context) {
  const { node, options } = context
  const { consumer_group: group, num_workers: workers, visibility_timeout: idle } = options
  const [target] = parseTargets(options, 'redis_stream')
  const block = Math.max(1, Math.min(MAX_BLOCK_MS, Math.floor(options.io_timeout / 2)))
  const stopping = new AbortController()
  const { signal } = stopping
  /** @type {Stream[]} */
  let streams = []
  /** @type {Promise<void>[]} */
  let loops = []
  /** By stream. @type {Map<string, number>} */
  const lags = new Map()
  /** Last error of a connection. @type {Error | null} */
  let lastError = null

  /** @param {Redis} client @throws {Error} in one line, without passwords */
  async function connect(client) {
    client.on('error', error => {
      lastError = error
    })
    try {
      const answer = client.connect().then(() => client.call('PING'))
      await limited(answer, START_TIMEOUT_MS, 'no response within 5 s')
    } catch (error) {
      const reason = /** @type {NodeJS.ErrnoException} */ (lastError ?? error)
      throw new Error(`cannot reach redis at ${target.name}: ${reason.code ?? reason.message}`)
    }
  }

  function disconnect() {
    for (const { reader, commands } of streams) {
      reader.disconnect()
      commands.disconnect()
    }
  }

  /** @param {string} key */
  async function open(key) {
    const reader = clientOf(target, key)
    const shared = target.kind === 'cluster' ? undefined : streams[0]?.commands
    const commands = shared ?? clientOf(target, key)
    /** @type {Stream} */
    const stream = { key, reader, commands, count: workers, from: '0', nextClaim: 0, readerId: null }
    streams.push(stream)
    const identify = async () => {
      stream.readerId = Number(await reader.call('CLIENT', 'ID'))
    }
    reader.on('ready', () => identify().catch(() => {}))
    if (shared === undefined) await connect(commands)
    await connect(reader)
    await createGroup(stream)
  }

  /**
   * Retries a command when the slot has moved to another master.
   * @param {Redis} client @param {string} name
   * @param {...(string | number | Buffer)} args
   * @returns {Promise<any>} reply, texts as Buffers
   */
  async function call(client, name, ...args) {
    for (let tries = 1; ; tries++) {
      try {
        return await client.callBuffer(name, ...args)
      } catch (error) {
        if (tries === MAX_TRIES || !MISPLACED.test(error.message)) throw error
        const late = AbortSignal.timeout(START_TIMEOUT_MS)
        await once(client, 'ready', { signal: AbortSignal.any([signal, late]) })
      }
    }
  }

  /** @param {Stream} stream */
  async function createGroup({ key, commands }) {
    try {
      await call(commands, 'XGROUP', 'CREATE', key, group, '$', 'MKSTREAM')
    } catch (error) {
      if (!String(error.message).startsWith('BUSYGROUP')) throw error
    }
  }

  /** @param {Stream} stream */
  async function pull(stream) {
    let tries = 0
    while (!signal.aborted) {
      try {
        if (stream.from === '>' && performance.now() >= stream.nextClaim) await claim(stream)
        if (signal.aborted) break
        const entries = await read(stream)
        tries = 0
        await run(stream, entries)
      } catch (error) {
        if (signal.aborted) break
        const missing = String(error.message).startsWith('NOGROUP')
        context.failed(missing ? error : (lastError ?? error))
        lastError = null
        if (missing) await createGroup(stream).catch(() => {})
        await context.backoff(++tries, signal)
      }
    }
  }

  /** @param {Stream} stream @returns {Promise<Entry[]>} */
  async function read(stream) {
    const { key, from, reader } = stream
    const args = ['GROUP', group, node, 'COUNT', stream.count]
    if (from === '>') args.push('BLOCK', block)
    const reply = await call(reader, 'XREADGROUP', ...args, 'STREAMS', key, from)
    /** @type {Entry[]} */
    const entries = reply?.[0]?.[1] ?? []
    if (from !== '>') stream.from = entries.length === 0 ? '>' : String(entries[entries.length - 1][0])
    return entries
  }

  /** Claims pending entries, including those of dead nodes. @param {Stream} stream */
  async function claim(stream) {
    let cursor = '0-0'
    do {
      const args = [stream.key, group, node, idle, cursor, 'COUNT', stream.count]
      const reply = await call(stream.commands, 'XAUTOCLAIM', ...args)
      cursor = String(reply[0])
      await run(stream, reply[1])
    } while (cursor !== '0-0' && !signal.aborted)
    await measureLag(stream)
    stream.nextClaim = performance.now() + Math.min(MAX_CLAIM_MS, idle)
  }

  /** Requires Redis 7.0. @param {Stream} stream */
  async function measureLag({ key, commands }) {
    const groups = /** @type {any[][]} */ (await commands.call('XINFO', 'GROUPS', key))
    for (const fields of groups) {
      const at = (/** @type {string} */ name) => fields[fields.indexOf(name) + 1]
      if (!fields.includes('lag') || at('name') !== group) continue
      lags.set(key, Number(at('lag') ?? 0) + Number(at('pending')))
      context.lag([...lags.values()].reduce((sum, lag) => sum + lag, 0))
    }
  }

  /** Runs entries, one per worker at a time, and acknowledges them. @param {Stream} stream @param {Entry[]} entries */
  async function run(stream, entries) {
    if (entries.length === 0) return
    /** @type {Promise<unknown>[]} */
    const acks = []
    let next = 0
    let failures = 0
    const work = async () => {
      while (next < entries.length && !(failures > 0 && signal.aborted)) {
        const [id, fields] = entries[next++] ?? []
        if (id === undefined) continue
        const outcome = fields === null ? 'skipped' : await context.handle(messageOf(fields), timeOf(id))
        if (outcome === 'retry') await context.backoff(++failures, signal)
        else {
          failures = 0
          const ack = call(stream.commands, 'XACK', stream.key, group, id)
          ack.catch(() => {})
          acks.push(ack)
        }
      }
    }
    await Promise.all(Array.from({ length: Math.min(workers, entries.length) }, work))
    const room = Math.floor((MAX_BYTES * entries.length) / Math.max(1, bytesOf(entries)))
    const more = failures > 0 ? workers : entries.length < stream.count ? stream.count : 2 * stream.count
    stream.count = Math.max(workers, Math.min(more, room, Math.max(workers, MAX_ENTRIES)))
    await Promise.all(acks)
  }

  /** @param {Buffer[]} fields @returns {Message} */
  function messageOf(fields) {
    const { payload_value: payloadField, method_value: methodField } = options
    /** @type {Message} */
    const message = { payload: null, method: '', headers: Object.create(null) }
    for (let i = 0; i + 1 < fields.length; i += 2) {
      const name = fields[i].toString()
      if (name === payloadField) message.payload = fields[i + 1]
      else message.headers[name] = fields[i + 1].toString()
    }
    if (!options.publication_data_mode.enabled && methodField !== '')
      message.method = message.headers[methodField] ?? ''
    return message
  }

  /** Removes this node from the group unless it has pending entries. @param {Stream} stream */
  async function forget({ key, commands }) {
    const pending = await commands.call('XPENDING', key, group, '-', '+', '1', node)
    if (Array.isArray(pending) && pending.length === 0)
      await commands.call('XGROUP', 'DELCONSUMER', key, group, node)
  }

  return {
    async start() {
      lastError = null
      streams = []
      try {
        for (const key of options.streams) await open(key)
      } catch (error) {
        disconnect()
        throw error
      }
      loops = streams.map(pull)
    },
    async stop() {
      stopping.abort()
      for (const { readerId, commands } of streams)
        if (readerId !== null) commands.call('CLIENT', 'UNBLOCK', String(readerId)).catch(() => {})
      await Promise.all(loops)
      for (const stream of streams) await forget(stream).catch(() => {})
      disconnect()
    },
  }
}
