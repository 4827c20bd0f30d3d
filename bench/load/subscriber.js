import { connect } from 'node:net'
import { maskedFrame, OPCODE } from './websocket.js'
import { WIRES } from './wires.js'

/** @typedef {import('./subscribers.js').Subscribers} Subscribers */

/** 20,000 connections of one address to one port leave the kernel some ports to choose from. */
const CONNECTIONS_PER_ADDRESS = 20_000

const HANDSHAKE = 0
const HELLO = 1
const READY = 2
const ENDED = 3

const END_OF_HEAD = Buffer.from('\r\n\r\n')
const LINE_FEED = 10

/**
 * One client with one subscription: a request, with most wires a hello, and then every message is counted.
 *
 *   HANDSHAKE --head--> HELLO --welcome--> READY --close--> ENDED
 *        '-------head, without a welcome-----^
 */
export class Subscriber {
  #state = HANDSHAKE
  #sequence = 0
  /** @type {Buffer | null} the beginning of a frame whose rest has not come yet */
  #rest = null
  #group
  #wire
  #channel
  #startedAt
  #socket

  /**
   * @param {Subscribers} group what it counts into
   * @param {number} index of this client among all clients of the run
   * @param {number} channel number of its channel
   */
  constructor(group, index, channel) {
    this.#group = group
    this.#wire = WIRES[group.target.wire]
    this.#channel = channel
    this.#startedAt = group.now()
    const address = Math.floor(index / CONNECTIONS_PER_ADDRESS)
    this.#socket = connect({
      host: group.target.host,
      port: group.target.port,
      localAddress: address === 0 ? undefined : `127.1.0.${address}`,
      noDelay: true,
      // All sockets of a process read into the same buffer: what is in it is used before the next one reads.
      onread: { buffer: group.buffer, callback: length => this.#read(length) },
    })
    this.#socket.on('connect', () => {
      const { target } = this.#group
      const request = this.#wire.request(`${target.host}:${target.port}`, target.path, channel)
      this.#socket.write(request, 'latin1')
    })
    this.#socket.on('error', error => this.end(error.message))
    this.#socket.on('close', () => this.end('the server closed the connection'))
  }

  /** @returns {number} */
  get channel() {
    return this.#channel
  }

  /** @returns {boolean} whether it is connected, and has its subscription if it has asked for one */
  get ready() {
    return this.#state === READY
  }

  /** @param {Buffer} bytes */
  write(bytes) {
    this.#socket.write(bytes)
  }

  /** @returns {boolean} whether it still waits for its subscription */
  get pending() {
    return this.#state < READY
  }

  /** @param {string} reason */
  end(reason) {
    if (this.#state === ENDED) return
    const wasReady = this.#state === READY
    this.#state = ENDED
    this.#socket.destroy()
    this.#group.ended(this, wasReady, reason)
  }

  /** Goes, as a client that has been closed: no fault of anybody. */
  leave() {
    this.#state = ENDED
    this.#socket.destroy()
  }

  /**
   * @param {number} length of what was read into the group's buffer
   * @returns {boolean}
   */
  #read(length) {
    /** @type {Buffer} */
    let bytes = this.#group.buffer
    let end = length
    if (this.#rest !== null) {
      bytes = Buffer.concat([this.#rest, bytes.subarray(0, length)])
      end = bytes.length
      this.#rest = null
    }
    let at = this.#state === HANDSHAKE ? this.#handshake(bytes, end) : 0
    const { frames } = this.#group
    this.#group.touch()
    if (!this.#wire.framed && this.#state !== HANDSHAKE) at = this.#lines(bytes, at, end)
    else
      while (this.#state !== HANDSHAKE && this.#state !== ENDED && frames.read(bytes, at, end)) {
        at = frames.end
        this.#frame(bytes, frames.opcode, frames.start, frames.end)
      }
    if (at < end && this.#state !== ENDED) this.#rest = Buffer.from(bytes.subarray(at, end))
    return true
  }

  /**
   * @param {Buffer} bytes
   * @param {number} end
   * @returns {number} where the first frame begins
   */
  #handshake(bytes, end) {
    const head = bytes.subarray(0, end).indexOf(END_OF_HEAD)
    if (head < 0) return 0
    const status = bytes.toString('latin1', 9, 12)
    const { hello, welcome } = this.#wire
    if (status !== this.#wire.status) {
      this.end(`the request was answered with ${status}`)
    } else if (welcome !== null) {
      this.#state = HELLO
      if (hello !== null) this.#socket.write(hello(this.#channel))
    } else {
      this.#begin()
    }
    return head + END_OF_HEAD.length
  }

  #begin() {
    this.#state = READY
    this.#group.ready(this, this.#group.now() - this.#startedAt)
  }

  /**
   * @param {Buffer} bytes
   * @param {number} opcode
   * @param {number} start of the payload
   * @param {number} end of the payload
   */
  #frame(bytes, opcode, start, end) {
    if (opcode === OPCODE.close) {
      const code = end - start >= 2 ? bytes.readUInt16BE(start) : 1005
      this.end(`close ${code} ${bytes.toString('utf8', start + 2, end)}`.trim())
    } else if (opcode === OPCODE.ping) {
      this.#socket.write(maskedFrame(OPCODE.pong, bytes.subarray(start, end)))
    } else if (this.#isPing(bytes, start, end)) {
      if (this.#wire.pong !== null) this.#socket.write(this.#wire.pong)
    } else {
      if (this.#state === HELLO) this.#reply(bytes.subarray(start, end))
      this.#sequence = this.#group.messages(bytes, start, end, this.#sequence)
    }
  }

  /**
   * @param {Buffer} bytes
   * @param {number} at
   * @param {number} end
   * @returns {number} where the line begins that is not whole yet
   */
  #lines(bytes, at, end) {
    const last = bytes.subarray(at, end).lastIndexOf(LINE_FEED)
    if (last < 0) return at
    const next = at + last + 1
    if (this.#state === HELLO) this.#reply(bytes.subarray(at, next))
    this.#sequence = this.#group.messages(bytes, at, next, this.#sequence)
    return next
  }

  /**
   * @param {Buffer} bytes
   * @param {number} start
   * @param {number} end
   */
  #isPing(bytes, start, end) {
    const { ping } = this.#wire
    return end - start === ping.length && bytes.compare(ping, 0, ping.length, start, end) === 0
  }

  /** @param {Buffer} answer */
  #reply(answer) {
    const { welcome, refusals } = this.#wire
    if (refusals.some(refusal => answer.includes(refusal)))
      this.end(`the server answered ${answer.toString('utf8', 0, 200)}`)
    else if (welcome !== null && answer.includes(welcome)) this.#begin()
  }
}
