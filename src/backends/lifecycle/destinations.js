// Destinations of the lifecycle log: a file, a webhook, a Redis stream.

import { createHmac } from 'node:crypto'
import { constants } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import * as http from 'node:http'
import * as https from 'node:https'

/** @import { FileHandle } from 'node:fs/promises' */
/** @import { LifecycleStore } from '../../channels/broker/redis/lifecycle.js' */
/** @import { Destination } from './sink.js' */

const MOVED_MS = 1000
const LINE_FEED = 0x0a

const { O_APPEND, O_CREAT, O_NOCTTY, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants
/** A pipe without a reader must not block a thread. */
const FLAGS = O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY | O_NONBLOCK

/**
 * Appends records to a file on the thread pool: a slow disk does not block the primary. Opens a new file when the file
 * was moved or removed (`logrotate`).
 * @implements {Destination}
 */
export class FileDestination {
  name = 'file'
  batchSize = 5000
  #path
  #clock
  /** @type {FileHandle | null} */
  #file = null
  #done = 0
  #checkedAt = 0

  /** @param {string} path @param {() => number} [clock] ms, monotonic */
  constructor(path, clock = () => performance.now()) {
    this.#path = path
    this.#clock = clock
  }

  /** @type {Destination['write']} */
  async write(records) {
    await this.#follow()
    this.#file ??= await openLog(this.#path)
    const bytes = Buffer.from(`${records.join('\n')}\n`)
    while (this.#done < bytes.length) this.#done += (await this.#file.write(bytes, this.#done)).bytesWritten
    this.#done = 0
  }

  /** Starts a new file if the open one was moved or removed. */
  async #follow() {
    const old = this.#file
    const now = this.#clock()
    if (old === null || now - this.#checkedAt < MOVED_MS) return
    this.#checkedAt = now
    const held = await old.stat()
    if (!held.isFile()) return
    const found = await stat(this.#path).catch(() => null)
    if (found?.ino === held.ino && found.dev === held.dev) return
    try {
      this.#file = await openLog(this.#path)
    } catch {
      // No permission to create a file: keep writing to the moved one.
      return
    }
    await old.close()
    // The new file starts with a complete record; some may be in both.
    this.#done = 0
  }

  async close() {
    await this.#file?.close()
    this.#file = null
  }
}

/** @param {string} path */
async function openLog(path) {
  const torn = await isTorn(path)
  const file = await open(path, FLAGS, 0o666)
  try {
    // The last record of a killed process may be incomplete.
    if (torn) await file.write('\n')
  } catch (error) {
    await file.close()
    throw error
  }
  return file
}

/** @param {string} path @returns {Promise<boolean>} whether the last line is cut */
async function isTorn(path) {
  const found = await stat(path).catch(() => null)
  if (!found?.isFile() || found.size === 0) return false
  const file = await open(path, O_RDONLY).catch(() => null)
  if (file === null) return false
  try {
    const { buffer } = await file.read(Buffer.alloc(1), 0, 1, found.size - 1)
    return buffer[0] !== LINE_FEED
  } finally {
    await file.close()
  }
}

const MAX_ANSWER = 64 * 1024
const TOO_LARGE = 413

/** @param {string} secret @returns {Buffer} key of the signature */
const keyOf = secret =>
  secret.startsWith('whsec_') ? Buffer.from(secret.slice('whsec_'.length), 'base64') : Buffer.from(secret)

/**
 * Posts batches of records, signed as in Standard Webhooks
 * (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md): HMAC-SHA256 of id, time
 * and body. A repeated batch keeps its id. Uses `node:http`: a single connection needs no client library.
 * @param {{url: string, secret: string, batch_size: number, timeout: number}} options `lifecycle.webhook`
 * @param {string} node id of this node
 * @param {() => number} clock unix ms
 * @returns {Destination}
 */
export function webhookDestination({ url, secret, batch_size: batchSize, timeout }, node, clock) {
  const key = keyOf(secret)
  const target = new URL(url)
  const client = target.protocol === 'https:' ? https : http
  const agent = new client.Agent({ keepAlive: true, maxSockets: 1 })
  let number = 0
  let current = ''

  /** @param {Buffer} body @param {Record<string, string | number>} headers @returns {Promise<number>} status */
  async function post(body, headers) {
    const request = client.request(target, { method: 'POST', headers, agent })
    const timer = setTimeout(() => request.destroy(new Error(`no response within ${timeout} ms`)), timeout)
    try {
      return await new Promise((resolve, reject) => {
        request.on('error', reject)
        // An unrequested protocol switch.
        request.on('upgrade', ({ statusCode = 0 }, socket) => {
          socket.destroy()
          resolve(statusCode)
        })
        request.on('response', response => {
          let bytes = 0
          response.on('data', chunk => {
            bytes += chunk.length
            if (bytes > MAX_ANSWER) request.destroy()
          })
          response.on('error', () => {})
          response.on('close', () => resolve(response.statusCode ?? 0))
        })
        request.end(body)
      })
    } finally {
      clearTimeout(timer)
    }
  }

  return {
    name: 'webhook',
    batchSize,
    async write(records) {
      const body = Buffer.from(`{"events":[${records.join(',')}]}`)
      const batch = `${records.length} ${records[0]}`
      if (batch !== current) number++
      current = batch
      const id = `msg_${node}_${number}`
      const time = String(Math.floor(clock() / 1000))
      const signature = createHmac('sha256', key).update(`${id}.${time}.`).update(body).digest('base64')
      const status = await post(body, {
        'Content-Type': 'application/json',
        'Content-Length': body.length,
        'User-Agent': 'halley',
        'webhook-id': id,
        'webhook-timestamp': time,
        'webhook-signature': `v1,${signature}`,
      })
      if (status < 200 || status >= 300)
        throw Object.assign(new Error(`HTTP status ${status}`), { tooLarge: status === TOO_LARGE })
      current = ''
    },
    async close() {
      agent.destroy()
    },
  }
}

/**
 * Appends records to the Redis stream; a repeated batch keeps its number and is stored once.
 * @param {LifecycleStore} store @param {number} maxLength entries; 0: unlimited
 * @param {() => void} before called before each batch
 * @returns {Destination}
 */
export function streamDestination(store, maxLength, before) {
  let number = 0
  return {
    name: 'redis',
    batchSize: 500,
    async write(records) {
      before()
      await store.append(number + 1, records, maxLength).catch(() => {
        throw new Error('Redis is unreachable or rejected the command')
      })
      number++
    },
    async close() {},
  }
}
