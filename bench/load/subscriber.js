import { connect } from 'node:net'
import { maskedFrame, OPCODE, upgradeRequest } from './websocket.js'

/** @typedef {import('./subscribers.js').Subscribers} Subscribers */

/** 20,000 connections of one address to one port leave the kernel some ports to choose from. */
const CONNECTIONS_PER_ADDRESS = 20_000

const HANDSHAKE = 0
const HELLO = 1
const READY = 2
const ENDED = 3

const PING = Buffer.from('{}')
const PONG_FRAME = maskedFrame(OPCODE.text, '{}')
const END_OF_HEAD = Buffer.from('\r\n\r\n')
const SECOND_REPLY = Buffer.from('"id":2')
const ERROR = Buffer.from('"error"')

/**
 * One client with one subscription: a WebSocket upgrade, with the Centrifuge JSON protocol a connect and a subscribe in one
 * frame, and then every message is counted.
 *
 *   HANDSHAKE --101--> HELLO --reply 2--> READY --close--> ENDED
 *        '------101, without a protocol-----^
 */
export class Subscriber {
  #state = HANDSHAKE
  #sequence = 0
  /** @type {Buffer | null} the beginning of a frame whose rest has not come yet */
  #rest = null
  #group
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
      const path = target.path.replace('%d', String(channel))
      this.#socket.write(upgradeRequest(`${target.host}:${target.port}`, path), 'latin1')
    })
    this.#socket.on('error', error => this.end(error.message))
    this.#socket.on('close', () => this.end('the server closed the connection'))
  }

  /** @returns {number} */
  get channel() {
    return this.#channel
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
    if (status !== '101') {
      this.end(`the upgrade was answered with ${status}`)
    } else if (this.#group.target.protocol === 'centrifuge') {
      this.#state = HELLO
      const hello = `{"id":1,"connect":{}}\n{"id":2,"subscribe":{"channel":"ch${this.#channel}"}}`
      this.#socket.write(maskedFrame(OPCODE.text, hello))
    } else {
      this.#ready()
    }
    return head + END_OF_HEAD.length
  }

  #ready() {
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
    } else if (end - start === PING.length && bytes[start] === PING[0] && bytes[start + 1] === PING[1]) {
      this.#socket.write(PONG_FRAME)
    } else {
      if (this.#state === HELLO) this.#reply(bytes.subarray(start, end))
      this.#sequence = this.#group.messages(bytes, start, end, this.#sequence)
    }
  }

  /** @param {Buffer} frame */
  #reply(frame) {
    if (frame.includes(ERROR)) this.end(`the server answered ${frame.toString('utf8', 0, 200)}`)
    else if (frame.includes(SECOND_REPLY)) this.#ready()
  }
}
