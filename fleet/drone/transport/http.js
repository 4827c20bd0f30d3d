// Answers of an HTTP/1.1 server, as they come: one after another, with a length, in chunks or until the end.

import { CLOSED, lineEnd, Wire } from './wire.js'

/** What the lines are that come when no data is left: of the head, of a chunk's size (empty behind its data), of the trailer. */
const HEAD = 0
const BODY = 1
const SIZE = 2
const TRAILER = 3

const MAX_HEAD = 16_384

/** What a subclass has: `opened`, `answered`, `body`, `done` and `gone`. */
export class HttpWire extends Wire {
  /** @param {import('./target.js').Target} target */
  constructor(target) {
    super(target)
    this.phase = HEAD
    /** The head, or the line, as far as it has come. */
    this.head = ''
    /** Bytes of data that are to come; Infinity: until the end of the connection, or of another protocol. */
    this.left = 0
    this.status = 0
    /** Whether the server keeps the connection when it has answered. */
    this.kept = true
  }

  /**
   * The head of an answer is there.
   * @param {number} _status
   * @param {string} _head
   */
  answered(_status, _head) {}

  /** @param {Buffer} _buffer @param {number} _start @param {number} _end of a piece of the body */
  body(_buffer, _start, _end) {}

  /** The answer is complete. */
  done() {}

  /** @override @param {Buffer} buffer @param {number} at @param {number} end */
  receive(buffer, at, end) {
    while (at < end && this.state < CLOSED) {
      const stop = this.left > 0 ? Math.min(end, at + this.left) : lineEnd(buffer, at, end)
      if (this.left > 0) {
        this.left -= stop - at
        this.body(buffer, at, stop)
        at = stop
        if (this.left === 0 && this.phase === BODY) this.#done()
      } else {
        this.head += buffer.toString('latin1', at, stop)
        at = stop + 1
        if (this.head.length > MAX_HEAD) this.end('headers too long')
        else if (stop < end) this.#line()
      }
    }
  }

  /** A line is whole. */
  #line() {
    const { phase, head } = this
    if (phase === HEAD) {
      this.head += '\n'
      const [, version, status] = /^HTTP\/1\.(.) (\d{3})/.exec(head) ?? []
      if (!status) this.end('no HTTP')
      else if (/\n\r?$/.test(head)) this.#begin(version, Number(status), head)
      return
    }
    const size = Number.parseInt(head, 16)
    this.head = ''
    if (phase === TRAILER) {
      if (head.length < 2) this.#done()
    } else if (size > 0) this.left = size
    else if (size === 0) this.phase = TRAILER
  }

  /** @param {string} version @param {number} status @param {string} head */
  #begin(version, status, head) {
    this.head = ''
    // Others than 101 only announce the answer.
    if (status < 200 && status !== 101) return
    const chunked = /\ntransfer-encoding:.*chunked/i.test(head)
    const length = status === 204 ? '0' : field(head, 'content-length')
    this.status = status
    this.kept = version === '1' && !/\nconnection:.*close/i.test(head)
    this.phase = chunked ? SIZE : BODY
    this.left = chunked ? 0 : length === '' ? Infinity : Number.parseInt(length, 10)
    this.answered(status, head)
    if (!chunked && !this.left && this.state < CLOSED) this.#done()
  }

  #done() {
    this.phase = HEAD
    this.done()
  }
}

/**
 * @param {string} head
 * @param {string} name
 * @returns {string} '' if there is none. It may keep the whole head in memory
 */
export function field(head, name) {
  return new RegExp(`\n${name}: *(.*)`, 'i').exec(head)?.[1] ?? ''
}
