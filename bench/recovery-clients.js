// The clients of `bench -- recovery`, in a process of their own: WebSockets that all request the same recovery at once.
// Replies are checked as they arrive and not kept, because each of the hundreds of clients gets megabytes.
//
//   parent                        this process (argument: RecoveryClientsOptions as JSON)
//     <--- {type: 'connected'}      all clients are connected; or {type: 'error', message}
//     ---> any message              all clients request the recovery
//     <--- {type: 'totals', totals} every client has its reply or is closed

import { connect as connectTcp } from 'node:net'

/**
 * @typedef {object} RecoveryClientsOptions
 * @property {string} url http:// @property {number} clients @property {string} channel @property {string} epoch
 * @property {number} since offset of the last publication that the clients have
 * @property {number} publications number of those that they have missed
 *
 * @typedef {object} Totals
 * @property {number} recovered clients that got every publication, in order
 * @property {number} refused clients with the reply `recovered: false`
 * @property {number} incomplete clients with `recovered: true` and a publication missing, repeated or out of order
 * @property {number} closed clients whose connection ended before the reply
 * @property {number} bytes of all messages received
 */

const OFFSET = Buffer.from('"offset":')
const RECOVERED = Buffer.from('"recovered":true')
/** Bytes kept for the next chunk, so that none cuts RECOVERED, or OFFSET with its digits, in two. */
const OVERLAP = 40
/** Opcode of a text frame; 0 continues one. */
const TEXT = 1

/** One client: the part of RFC 6455 and of the client protocol that a recovery needs. */
class Client {
  /** 1: to `connect`; 2: to `subscribe`, too. */
  #replies = 0
  #upgraded = false
  /** An incomplete HTTP or frame header. @type {Buffer} */
  #header = Buffer.alloc(0)
  #opcode = 0
  /** Bytes of the frame's payload still to come. */
  #remaining = 0
  /** Last bytes of the previous chunk. @type {Buffer} */
  #tail = Buffer.alloc(0)
  #nextOffset
  #lastOffset
  /** The reply has `recovered: true`. */
  #recovered = false
  #inOrder = true
  bytes = 0
  /** Reason of a failed connect. */
  error = ''

  /** @param {RecoveryClientsOptions} options @param {(client: Client) => void} onState called when `state` changes */
  constructor(options, onState) {
    this.options = options
    this.onState = onState
    /** @type {'connecting' | 'connected' | 'done' | 'closed'} */
    this.state = 'connecting'
    this.#nextOffset = options.since + 1
    this.#lastOffset = options.since + options.publications
    const { hostname, port } = new URL(options.url)
    this.socket = connectTcp({ host: hostname, port: Number(port) })
    this.socket.on('error', ({ message }) => {
      this.error = message
    })
    this.socket.on('close', () => this.state !== 'done' && this.#setState('closed'))
    this.socket.on('data', chunk => this.#read(chunk))
    this.socket.write(
      `GET /connection/websocket HTTP/1.1\r\nHost: ${hostname}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
        'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n',
    )
  }

  /** @param {Client['state']} state */
  #setState(state) {
    this.state = state
    this.onState(this)
  }

  /** @param {object} command */
  #send(command) {
    const payload = Buffer.from(JSON.stringify(command))
    // A client must mask its frames. A mask of zeros leaves the payload as it is.
    const head = Buffer.from([0x80 | TEXT, 0x80 | 126, payload.length >> 8, payload.length & 255, 0, 0, 0, 0])
    this.socket.write(Buffer.concat([head, payload]))
  }

  recover() {
    const { channel, since, epoch } = this.options
    this.#send({ id: 2, subscribe: { channel, recover: true, offset: since, epoch } })
  }

  /** @param {Buffer} chunk */
  #read(chunk) {
    let bytes = this.#header.length > 0 ? Buffer.concat([this.#header, chunk]) : chunk
    this.#header = Buffer.alloc(0)
    if (!this.#upgraded) {
      const end = bytes.indexOf('\r\n\r\n')
      if (end < 0) return void (this.#header = bytes)
      const status = bytes.toString('latin1', 0, bytes.indexOf('\r\n'))
      if (!status.startsWith('HTTP/1.1 101')) {
        this.error = status
        return void this.socket.destroy()
      }
      this.#upgraded = true
      bytes = bytes.subarray(end + 4)
      this.#send({ id: 1, connect: {} })
    }
    while (bytes.length > 0) {
      if (this.#remaining === 0) {
        const short = bytes.length < 2 ? 0 : bytes[1] & 127
        const head = short === 127 ? 10 : short === 126 ? 4 : 2
        if (bytes.length < head) return void (this.#header = Buffer.from(bytes))
        this.#opcode = bytes[0] & 15
        this.#remaining =
          short === 127 ? Number(bytes.readBigUInt64BE(2)) : short === 126 ? bytes.readUInt16BE(2) : short
        bytes = bytes.subarray(head)
      }
      const part = bytes.subarray(0, this.#remaining)
      bytes = bytes.subarray(part.length)
      this.#remaining -= part.length
      if (this.#opcode <= TEXT) this.#onPayload(part, this.#remaining === 0)
    }
  }

  /** @param {Buffer} part of a message @param {boolean} last whether the message ends with it */
  #onPayload(part, last) {
    this.bytes += part.length
    if (this.#replies === 1) this.#check(part, last)
    if (!last) return
    this.#replies++
    if (this.#replies === 1) this.#setState('connected')
    else if (this.#replies === 2) this.#setState('done')
  }

  /** Checks the offsets in a part of the reply to `subscribe`. @param {Buffer} part @param {boolean} last */
  #check(part, last) {
    const bytes = Buffer.concat([this.#tail, part])
    const end = last ? bytes.length : bytes.length - OVERLAP
    let at = bytes.indexOf(OFFSET)
    for (; at >= 0 && at < end; at = bytes.indexOf(OFFSET, at + 1)) {
      const offset = Number.parseInt(bytes.toString('latin1', at + OFFSET.length, at + OVERLAP), 10)
      // The subscribe result repeats the offset of the request.
      if (offset === this.options.since) continue
      if (offset !== this.#nextOffset) this.#inOrder = false
      this.#nextOffset = offset + 1
    }
    if (bytes.includes(RECOVERED)) this.#recovered = true
    this.#tail = Buffer.from(bytes.subarray(Math.max(0, end)))
  }

  /** @returns {'recovered' | 'refused' | 'incomplete' | 'closed'} */
  get outcome() {
    if (this.state !== 'done') return 'closed'
    if (!this.#recovered) return 'refused'
    return this.#inOrder && this.#nextOffset === this.#lastOffset + 1 ? 'recovered' : 'incomplete'
  }
}

/** @param {RecoveryClientsOptions} options */
function run(options) {
  let allConnected = false
  let reported = false
  const onState = (/** @type {Client} */ { state, error }) => {
    if (reported) return
    if (!allConnected && state === 'closed') {
      reported = true
      process.send?.({
        type: 'error',
        message: `a client could not connect: ${error || 'connection closed'}`,
      })
    } else if (!allConnected && clients.every(client => client.state === 'connected')) {
      allConnected = true
      process.send?.({ type: 'connected' })
    } else if (clients.every(client => client.state === 'done' || client.state === 'closed')) {
      reported = true
      process.send?.({ type: 'totals', totals: totalsOf(clients) })
      for (const client of clients) client.socket.destroy()
    }
  }
  const clients = Array.from({ length: options.clients }, () => new Client(options, onState))
  process.on('message', () => {
    for (const client of clients) client.recover()
  })
}

/** @param {Client[]} clients @returns {Totals} */
function totalsOf(clients) {
  const totals = { recovered: 0, refused: 0, incomplete: 0, closed: 0, bytes: 0 }
  for (const { outcome, bytes } of clients) {
    totals[outcome]++
    totals.bytes += bytes
  }
  return totals
}

process.on('disconnect', () => process.exit(0))
run(JSON.parse(process.argv[2]))
