// Answers of an HTTP/1.1 server, as they come: one after another, with a length, in chunks or until the end.

import { OVER, Remainder, Wire } from './wire.js'

export const HEAD = 0
/** A body, or the data of a chunk. */
const BODY = 1
const CHUNK = 2
/** Line of a chunk's size: hexadecimal digits, and what is behind them. */
const SIZE = 3
const EXTENSION = 4
const CHUNK_END = 5
const TRAILER = 6
/** Until the end of the connection, or of another protocol. */
export const RAW = 7

const MAX_HEAD = 16_384
const MAX_CHUNK = 2 ** 31 - 1
const HEAD_END = Buffer.from('\r\n\r\n')
const CR = 13
const LF = 10

/** What a subclass has: `opened`, `answered`, `body`, `done` and `gone`. */
export class HttpWire extends Wire {
  /** @param {import('./target.js').Target} target */
  constructor(target) {
    super(target)
    this.phase = HEAD
    /** Bytes that the body or chunk still has; in the trailer, of its line. */
    this.left = 0
    this.status = 0
    /** Whether the server keeps the connection when it has answered. */
    this.kept = true
    /** @type {Remainder | null} what is not whole yet */
    this.rest = null
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
    while (at < end && this.state < OVER) {
      const { phase } = this
      if (phase === RAW) return this.body(buffer, at, end)
      if (phase === HEAD) at = this.#head(buffer, at, end)
      else if (phase <= CHUNK) {
        const to = Math.min(end, at + this.left)
        this.left -= to - at
        this.body(buffer, at, to)
        at = to
        if (this.left > 0) return
        if (phase === BODY) this.#done()
        else this.phase = CHUNK_END
      } else this.#frame(phase, buffer[at++])
    }
  }

  /** @param {Buffer} buffer @param {number} at @param {number} end @returns {number} where the head ends */
  #head(buffer, at, end) {
    const { rest } = this
    const before = rest?.length ?? 0
    rest?.append(buffer, at, end)
    const bytes = rest?.bytes ?? buffer
    const from = rest ? 0 : at
    const length = before + end - at
    const stop = bytes.indexOf(HEAD_END, from) - from
    const whole = stop >= 0 && stop + 4 <= length
    const head = bytes.toString('latin1', from, from + (whole ? stop : Math.min(12, length)))
    const status = Number(head.slice(9, 12))
    if (!'HTTP/1.'.startsWith(head.slice(0, 7)) || (whole && !(status >= 100))) this.end('no HTTP')
    else if ((whole ? stop : length) > MAX_HEAD) this.end('headers too long')
    else if (whole) {
      this.rest = null
      this.#begin(status, head)
      return at + stop + 4 - before
    } else this.rest ??= new Remainder(buffer, at, end)
    return end
  }

  /** @param {number} status @param {string} head */
  #begin(status, head) {
    // Others than 101 only announce the answer.
    if (status < 200 && status !== 101) return
    this.status = status
    if (status === 101) {
      this.phase = RAW
      return this.answered(status, head)
    }
    const length = status === 204 || status === 304 ? '0' : field(head, 'content-length')
    this.kept = head[7] === '1' && !/close/i.test(field(head, 'connection'))
    this.left = Number(length)
    this.phase = /chunked/i.test(field(head, 'transfer-encoding')) ? SIZE : length === '' ? RAW : BODY
    if (this.phase === SIZE) this.left = 0
    if (!(this.left >= 0)) return this.end('no HTTP')
    this.answered(status, head)
    if (this.phase === BODY && this.left === 0 && this.state < OVER) this.#done()
  }

  /** What is between the data of chunks. @param {number} phase @param {number} byte */
  #frame(phase, byte) {
    if (byte === LF) {
      if (phase === CHUNK_END) {
        this.phase = SIZE
        this.left = 0
      } else if (phase !== TRAILER) this.phase = this.left === 0 ? TRAILER : CHUNK
      else if (this.left === 0) this.#done()
      else this.left = 0
    } else if (byte === CR || phase === EXTENSION) return
    else if (phase === TRAILER) this.left = 1
    else if (phase === SIZE) {
      const digit = Number.parseInt(String.fromCharCode(byte), 16)
      if (digit >= 0) this.left = this.left * 16 + digit
      else this.phase = EXTENSION
      if (this.left > MAX_CHUNK) this.end('bad chunk')
    } else this.end('bad chunk')
  }

  #done() {
    this.phase = HEAD
    this.done()
  }
}

/**
 * @param {string} head
 * @param {string} name in lower case
 * @returns {string} '' if there is none. It may keep the whole head in memory
 */
export function field(head, name) {
  const at = head.toLowerCase().indexOf(`\r\n${name}:`)
  if (at < 0) return ''
  const end = head.indexOf('\r\n', at + 2)
  return head.slice(at + name.length + 3, end < 0 ? undefined : end).trim()
}
