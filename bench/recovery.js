// Hundreds of clients concurrently recover megabytes, while a drone publishes to another channel: latency of these
// publishes, memory, and correctness of the recoveries.

import { once } from 'node:events'
import { connect as connectTcp } from 'node:net'
import { rounded } from '../fleet/runner/figures.js'
import { processTree, rssOf } from '../fleet/runner/proc.js'
import { RunError } from '../fleet/runner/target.js'
import { measurement } from './measurement.js'

const CHANNEL = 'history'
const PUBLICATIONS = 300
const SIZE = 20_000
const MIB = 2 ** 20
const MEMORY_INTERVAL_MS = 50
const OFFSET = Buffer.from('"offset":')
const RECOVERED = Buffer.from('"recovered":true')
/** Bytes kept for the next chunk, to find RECOVERED, and OFFSET with its digits, across chunks. */
const OVERLAP = 40
/** Offset of the last publication received by clients. */
const SINCE = 1
const TEXT = 1

/** Checks a recovery reply as it arrives, without storing it: hundreds of clients receive megabytes concurrently. */
export class Client {
  bytes = 0
  #socket
  #upgraded = false
  #replies = 0
  /** An incomplete HTTP or frame header. @type {Buffer} */
  #header = Buffer.alloc(0)
  #left = 0
  #opcode = 0
  /** Last bytes of the previous chunk. @type {Buffer} */
  #tail = Buffer.alloc(0)
  #next = SINCE + 1
  #isRecovered = false
  #inOrder = true

  /** @param {string} url http:// */
  constructor(url) {
    const { hostname, port } = new URL(url)
    this.#socket = connectTcp({ host: hostname, port: Number(port) })
    /** Resolves with the reply to `connect`; rejects if the connection ends before. */
    this.connected = this.#reply(1)
    this.#socket.on('data', chunk => this.#read(chunk)).on('error', () => {})
    this.#socket.write(
      `GET /connection/websocket HTTP/1.1\r\nHost: ${hostname}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
        'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n',
    )
  }

  /** @param {number} count @returns {Promise<void>} */
  async #reply(count) {
    while (this.#replies < count && !this.#socket.destroyed)
      await Promise.race([once(this.#socket, 'reply'), once(this.#socket, 'close')]).catch(() => {})
    if (this.#replies < count) throw new RunError('a client could not connect or was disconnected')
  }

  /** @param {object} command */
  #send(command) {
    const payload = Buffer.from(JSON.stringify(command))
    // A zero mask does not change the payload.
    const head = Buffer.from([0x80 | TEXT, 0x80 | 126, payload.length >> 8, payload.length & 255, 0, 0, 0, 0])
    this.#socket.write(Buffer.concat([head, payload]))
  }

  /** @param {string} epoch @returns {Promise<'recovered' | 'refused' | 'incomplete' | 'closed'>} */
  async recover(epoch) {
    this.#send({ id: 2, subscribe: { channel: CHANNEL, recover: true, offset: SINCE, epoch } })
    const isAnswered = await this.#reply(2).then(
      () => true,
      () => false,
    )
    this.#socket.destroy()
    if (!isAnswered) return 'closed'
    if (!this.#isRecovered) return 'refused'
    return this.#inOrder && this.#next === SINCE + 1 + PUBLICATIONS ? 'recovered' : 'incomplete'
  }

  /** @param {Buffer} chunk */
  #read(chunk) {
    let bytes = this.#header.length > 0 ? Buffer.concat([this.#header, chunk]) : chunk
    this.#header = Buffer.alloc(0)
    if (!this.#upgraded) {
      const end = bytes.indexOf('\r\n\r\n')
      if (end < 0) return void (this.#header = bytes)
      if (!bytes.toString('latin1', 0, end).startsWith('HTTP/1.1 101')) return void this.#socket.destroy()
      this.#upgraded = true
      bytes = bytes.subarray(end + 4)
      this.#send({ id: 1, connect: {} })
    }
    while (bytes.length > 0) {
      if (this.#left === 0) {
        const short = bytes.length < 2 ? 0 : bytes[1] & 127
        const head = short === 127 ? 10 : short === 126 ? 4 : 2
        if (bytes.length < head) return void (this.#header = Buffer.from(bytes))
        this.#opcode = bytes[0] & 15
        this.#left =
          short === 127 ? Number(bytes.readBigUInt64BE(2)) : short === 126 ? bytes.readUInt16BE(2) : short
        bytes = bytes.subarray(head)
      }
      const part = bytes.subarray(0, this.#left)
      bytes = bytes.subarray(part.length)
      this.#left -= part.length
      if (this.#opcode > TEXT) continue
      this.bytes += part.length
      if (this.#replies === 1) this.#check(part, this.#left === 0)
      if (this.#left > 0) continue
      this.#replies++
      this.#socket.emit('reply')
    }
  }

  /** Checks the offsets in a part of the reply to `subscribe`. @param {Buffer} part @param {boolean} isLast */
  #check(part, isLast) {
    const bytes = Buffer.concat([this.#tail, part])
    const end = isLast ? bytes.length : bytes.length - OVERLAP
    let at = bytes.indexOf(OFFSET)
    for (; at >= 0 && at < end; at = bytes.indexOf(OFFSET, at + 1)) {
      const offset = Number.parseInt(bytes.toString('latin1', at + OFFSET.length, at + OVERLAP), 10)
      // The subscribe result repeats the offset of the request.
      if (offset === SINCE) continue
      if (offset !== this.#next) this.#inOrder = false
      this.#next = offset + 1
    }
    if (bytes.includes(RECOVERED)) this.#isRecovered = true
    this.#tail = Buffer.from(bytes.subarray(Math.max(0, end)))
  }
}

/** @param {number} pid of the primary @returns {number[]} resident MiB of the primary, and of its largest worker */
function memoryOf(pid) {
  const [primary, ...workers] = processTree(pid).map(process => rssOf(process) / MIB)
  return [primary, Math.max(...workers, 0)].map(value => rounded(value, 1))
}

/** @param {number} clients @param {number} size bytes @returns {import('../fleet/scenarios/contract.js').Step['work']} */
const recoveringOf =
  (clients, size) =>
  async ({ servers, progress }) => {
    const [gateway] = servers.gateways
    const call = async (/** @type {string} */ method, /** @type {object} */ params) => {
      const headers = { 'X-API-Key': servers.apiKey }
      const answer = await fetch(`${gateway.url}/api/${method}`, {
        method: 'POST',
        headers,
        body: JSON.stringify(params),
      })
      return /** @type {any} */ (await answer.json()).result
    }
    for (let n = 0; n <= PUBLICATIONS; n++)
      await call('publish', { channel: CHANNEL, data: { text: 'x'.repeat(size) } })
    const { epoch } = await call('history', { channel: CHANNEL, limit: 0 })
    const all = Array.from({ length: clients }, () => new Client(gateway.url))
    await Promise.all(all.map(({ connected }) => connected))
    const workers = processTree(gateway.pid).slice(1)
    const [idlePrimary, idleWorker] = memoryOf(gateway.pid)
    let [maxPrimary, maxWorker] = [idlePrimary, idleWorker]
    const sampling = setInterval(() => {
      const [primary, worker] = memoryOf(gateway.pid)
      maxPrimary = Math.max(maxPrimary, primary)
      maxWorker = Math.max(maxWorker, worker)
    }, MEMORY_INTERVAL_MS)
    progress('all clients recover')
    const began = performance.now()
    const outcomes = await Promise.all(all.map(client => client.recover(epoch)))
    clearInterval(sampling)
    const alive = new Set(processTree(gateway.pid))
    const count = (/** @type {string} */ name) => outcomes.filter(outcome => outcome === name).length
    return {
      recovered: count('recovered'),
      refused: count('refused'),
      incomplete: count('incomplete'),
      dropped: count('closed'),
      exited_workers: workers.filter(pid => !alive.has(pid)).length,
      reply_mib: rounded(all.reduce((sum, { bytes }) => sum + bytes, 0) / MIB, 1),
      seconds: rounded((performance.now() - began) / 1000, 2),
      idle_primary_mib: idlePrimary,
      idle_worker_mib: idleWorker,
      max_primary_mib: maxPrimary,
      max_worker_mib: maxWorker,
    }
  }

export const recovery = measurement({
  name: 'recovery',
  summary:
    'clients recover 300 publications of 20 KB each at once, while others publish (queues of 16 MB, or 1 MB)',
  clients: 400,
  variants: ['16 MB', '1 MB'],
  zeros: ['incomplete', 'dropped', 'exited_workers'],
  measure: ({ n, variant, overrides }) => ({
    config: {
      client: {
        queue_max_size: variant === '1 MB' ? MIB : 16 * MIB,
        ping_interval: '10m',
        recovery_max_publication_limit: PUBLICATIONS,
      },
    },
    channels: { history_size: PUBLICATIONS + 1, history_ttl: '600s', force_recovery: true },
    steps: [
      {
        name: 'recovery',
        settings: {
          ...{ n: 1, channels: ['other'], publish_channels: ['other'] },
          ...{ publish_rate: 200, publish_via: 'single', publish_lanes: 4 },
        },
        settle: 1,
        work: recoveringOf(n, overrides?.publish_size ?? SIZE),
      },
    ],
  }),
})
