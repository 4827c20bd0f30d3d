// The clients of `bench -- recovery`, in a process of their own: WebSockets that all ask for the same recovery at once.
// Replies are checked while they arrive and not kept: hundreds of clients get megabytes each.

import { connect as connectTcp } from 'node:net'

/**
 * @typedef {object} Orders argument of the process, JSON
 * @property {string} url @property {number} clients @property {string} channel @property {string} epoch
 * @property {number} since offset of the last publication that the clients have @property {number} publications missed
 *
 * @typedef {object} Totals
 * @property {number} recovered clients that got every publication, in order
 * @property {number} refused clients with the reply `recovered: false`
 * @property {number} incomplete clients with `recovered: true` and other publications
 * @property {number} closed clients whose connection ended before the answer
 * @property {number} bytes of all replies
 */

const OFFSET = Buffer.from('"offset":')
const RECOVERED = Buffer.from('"recovered":true')
/** Bytes that are looked at again with the next chunk: longer than what is searched for, digits included. */
const OVERLAP = 40
const TEXT = 1

/** One client. It understands as much of RFC 6455 and of the client protocol as it needs. */
class Client {
  /** Answers to `connect` and `subscribe`. */
  #answers = 0
  #upgraded = false
  /** Bytes of a header that has not arrived whole. @type {Buffer} */
  #rest = Buffer.alloc(0)
  #opcode = 0
  /** Bytes of the frame that are still to come. */
  #left = 0
  /** @type {Buffer} */
  #tail = Buffer.alloc(0)
  #next
  #last
  #said = false
  #inOrder = true
  bytes = 0

  /** @param {Orders} orders @param {(client: Client) => void} changed */
  constructor(orders, changed) {
    this.orders = orders
    this.changed = changed
    this.state = 'connecting'
    this.#next = orders.since + 1
    this.#last = orders.since + orders.publications
    const { hostname, port } = new URL(orders.url)
    this.socket = connectTcp({ host: hostname, port: Number(port) })
    this.socket.on('error', () => {})
    this.socket.on('close', () => this.#become(this.state === 'done' ? 'done' : 'closed'))
    this.socket.on('data', chunk => this.#read(chunk))
    this.socket.write(
      `GET /connection/websocket HTTP/1.1\r\nHost: ${hostname}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
        'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n',
    )
  }

  /** @param {string} state */
  #become(state) {
    if (this.state === state) return
    this.state = state
    this.changed(this)
  }

  /** @param {object} command */
  #send(command) {
    const payload = Buffer.from(JSON.stringify(command))
    // A client masks its frames; zeros are a mask, too.
    const head = Buffer.from([0x80 | TEXT, 0x80 | 126, payload.length >> 8, payload.length & 255, 0, 0, 0, 0])
    this.socket.write(Buffer.concat([head, payload]))
  }

  recover() {
    const { channel, since, epoch } = this.orders
    this.#send({ id: 2, subscribe: { channel, recover: true, offset: since, epoch } })
  }

  /** @param {Buffer} chunk */
  #read(chunk) {
    let bytes = this.#rest.length > 0 ? Buffer.concat([this.#rest, chunk]) : chunk
    this.#rest = Buffer.alloc(0)
    if (!this.#upgraded) {
      const end = bytes.indexOf('\r\n\r\n')
      if (end < 0) return void (this.#rest = bytes)
      this.#upgraded = true
      bytes = bytes.subarray(end + 4)
      this.#send({ id: 1, connect: {} })
    }
    while (bytes.length > 0) {
      if (this.#left === 0) {
        const short = bytes.length < 2 ? 0 : bytes[1] & 127
        const head = short === 127 ? 10 : short === 126 ? 4 : 2
        if (bytes.length < head) return void (this.#rest = Buffer.from(bytes))
        this.#opcode = bytes[0] & 15
        this.#left =
          short === 127 ? Number(bytes.readBigUInt64BE(2)) : short === 126 ? bytes.readUInt16BE(2) : short
        bytes = bytes.subarray(head)
      }
      const part = bytes.subarray(0, this.#left)
      bytes = bytes.subarray(part.length)
      this.#left -= part.length
      if (this.#opcode <= TEXT) this.#payload(part, this.#left === 0)
    }
  }

  /** @param {Buffer} part of a message @param {boolean} whole whether it is the last one */
  #payload(part, whole) {
    this.bytes += part.length
    if (this.#answers === 1) this.#check(part, whole)
    if (!whole) return
    this.#answers++
    if (this.#answers === 1) this.#become('connected')
    else if (this.#answers === 2) this.#become('done')
  }

  /** @param {Buffer} part @param {boolean} whole */
  #check(part, whole) {
    const bytes = Buffer.concat([this.#tail, part])
    const end = whole ? bytes.length : bytes.length - OVERLAP
    let at = bytes.indexOf(OFFSET)
    for (; at >= 0 && at < end; at = bytes.indexOf(OFFSET, at + 1)) {
      const offset = Number.parseInt(bytes.toString('latin1', at + OFFSET.length, at + OVERLAP), 10)
      // The result itself has the offset of the request.
      if (offset === this.orders.since) continue
      if (offset !== this.#next) this.#inOrder = false
      this.#next = offset + 1
    }
    if (bytes.includes(RECOVERED)) this.#said = true
    this.#tail = Buffer.from(bytes.subarray(Math.max(0, end)))
  }

  /** @returns {'recovered' | 'refused' | 'incomplete' | 'closed'} */
  get outcome() {
    if (this.state !== 'done') return 'closed'
    if (!this.#said) return 'refused'
    return this.#inOrder && this.#next === this.#last + 1 ? 'recovered' : 'incomplete'
  }
}

/** @param {Orders} orders */
function run(orders) {
  const ended = (/** @type {Client} */ { state }) => state === 'done' || state === 'closed'
  let open = false
  let told = false
  const changed = () => {
    if (!open && clients.every(({ state }) => state === 'connected')) {
      open = true
      process.send?.({ connected: clients.length })
    }
    if (told || !clients.every(ended)) return
    told = true
    /** @type {Totals} */
    const totals = { recovered: 0, refused: 0, incomplete: 0, closed: 0, bytes: 0 }
    for (const client of clients) {
      totals[client.outcome]++
      totals.bytes += client.bytes
      client.socket.destroy()
    }
    process.send?.({ totals })
  }
  /** @type {Client[]} */
  const clients = []
  for (let i = 0; i < orders.clients; i++) clients.push(new Client(orders, changed))
  process.on('message', () => {
    for (const client of clients) client.recover()
  })
}

process.on('disconnect', () => process.exit(0))
run(JSON.parse(process.argv[2]))
