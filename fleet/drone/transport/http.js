// Responses of an HTTP/1.1 server (RFC 9112): consecutive, with a length, in chunks, or until the end. An invalid
// response ends the connection with a reason. All stored data is bounded.

import { CLOSED, lineEnd, Wire } from './wire.js'

/** Expected part of a response: line of the head, data, chunk-size line, end of the chunk, line of the trailer. */
const HEAD = 0
const BODY = 1
const SIZE = 2
const CHUNK_END = 3
const TRAILER = 4

const MAX_HEAD = 16_384
const MAX_LINE = 1024
const CR = 13
const LF = 10

const STATUS_LINE = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: [^\n]*)?\r?$/
/** At most 4 GB: no gateway sends larger chunks. */
const MAX_DIGITS = 8
const CHUNK_SIZE = /^([\da-f]{1,8})[ \t]*(?:;.*)?\r?$/i

export class HttpWire extends Wire {
  /** @param {import('./target.js').Target} target */
  constructor(target) {
    super(target)
    this.phase = HEAD
    this.head = ''
    this.trailer = 0
    /** Remaining bytes of data; Infinity: until the connection ends, or for another protocol. */
    this.left = 0
    this.status = 0
    this.kept = true
  }

  /** The head is complete. @param {number} _status @param {string} _head */
  answered(_status, _head) {}

  /** @param {Buffer} _buffer @param {number} _start @param {number} _end of a piece of the body */
  body(_buffer, _start, _end) {}

  done() {}

  /** Whether a response of known length is incomplete. */
  get unfinished() {
    if (this.phase === HEAD) return this.head !== ''
    return this.phase === CHUNK_END || (this.left > 0 && this.left < Infinity)
  }

  /** @override @param {Buffer} buffer @param {number} at @param {number} end */
  receive(buffer, at, end) {
    while (at < end && this.state < CLOSED) {
      if (this.left > 0) {
        const stop = Math.min(end, at + this.left)
        this.left -= stop - at
        this.body(buffer, at, stop)
        at = stop
        if (this.left > 0) continue
        if (this.phase === BODY) this.#done()
        else this.phase = CHUNK_END
      } else {
        const next = this.head === '' ? this.#shortLine(buffer, at, end) : at
        if (next > at) {
          at = next
          continue
        }
        const stop = lineEnd(buffer, at, end)
        this.head += buffer.toString('latin1', at, stop)
        at = stop + 1
        if (this.phase === SIZE && this.head.length > MAX_LINE) this.end('bad chunk size')
        else if (this.head.length + this.trailer > MAX_HEAD) this.end('headers too long')
        else if (stop < end) this.#line()
      }
    }
  }

  /**
   * Reads a line between chunks without a string: idle streams receive little else.
   * @param {Buffer} buffer @param {number} at @param {number} end @returns {number} its end; `at`: `#line` must read it
   */
  #shortLine(buffer, at, end) {
    let stop = at
    let size = 0
    if (this.phase === SIZE)
      for (; stop < end && stop - at < MAX_DIGITS; stop++) {
        const digit = hexDigit(buffer[stop])
        if (digit < 0) break
        size = size * 16 + digit
      }
    if (stop + 1 >= end || buffer[stop] !== CR || buffer[stop + 1] !== LF) return at
    if (size > 0) this.left = size
    else if (this.phase === CHUNK_END) this.phase = SIZE
    else return at
    return stop + 2
  }

  /** `head` holds a complete line. */
  #line() {
    const { phase, head } = this
    if (phase === HEAD) {
      const first = head.indexOf('\n')
      const match = STATUS_LINE.exec(first < 0 ? head : head.slice(0, first))
      if (!match) return this.end('not HTTP')
      if (/\n\r?$/.test(head)) this.#begin(match[1], Number(match[2]), head)
      else this.head += '\n'
      return
    }
    this.head = ''
    if (phase === SIZE) {
      const [, size] = CHUNK_SIZE.exec(head) ?? []
      if (size === undefined) return this.end('bad chunk size')
      this.left = Number.parseInt(size, 16)
      if (this.left === 0) this.phase = TRAILER
    } else if (phase === CHUNK_END) {
      if (head !== '' && head !== '\r') return this.end('bad chunk end')
      this.phase = SIZE
    } else if (head === '' || head === '\r') this.#done()
    else this.trailer += head.length
  }

  /** @param {string} version @param {number} status @param {string} head */
  #begin(version, status, head) {
    this.head = ''
    // Other 1xx responses only announce the final one.
    if (status < 200 && status !== 101) return
    const encoding = field(head, 'transfer-encoding').toLowerCase()
    const length = status === 204 || status === 304 ? '0' : field(head, 'content-length')
    if (encoding !== '' && encoding !== 'chunked') return this.end('unknown Transfer-Encoding')
    if (!/^\d{0,15}$/.test(length)) return this.end('bad Content-Length')
    this.status = status
    this.kept = version === '1' && !/close/i.test(field(head, 'connection'))
    this.trailer = 0
    if (status !== 101 && encoding) this.phase = SIZE
    else {
      this.phase = BODY
      this.left = status === 101 || length === '' ? Infinity : Number(length)
    }
    this.answered(status, head)
    if (this.phase === BODY && this.left === 0 && this.state < CLOSED) this.#done()
  }

  #done() {
    this.phase = HEAD
    this.done()
  }
}

/** @param {number} byte @returns {number} -1: not hexadecimal */
function hexDigit(byte) {
  if (byte >= 48 && byte <= 57) return byte - 48
  const lower = byte | 32
  return lower >= 97 && lower <= 102 ? lower - 87 : -1
}

/** By field name: the few fields used by the transports. @type {Map<string, RegExp>} */
const FIELDS = new Map()

/** Values joined by commas; may keep the head in memory. @param {string} head @param {string} name @returns {string} */
export function field(head, name) {
  let pattern = FIELDS.get(name)
  if (!pattern) {
    pattern = new RegExp(`\n${name}:[ \t]*([^\r\n]*)`, 'gi')
    FIELDS.set(name, pattern)
  }
  return [...head.matchAll(pattern)].map(([, value]) => value.trim()).join(', ')
}
