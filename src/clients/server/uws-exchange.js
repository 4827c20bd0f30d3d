import { asBytes, headBytes, inBytes, nameBytes } from './text.js'

/** @import { HttpRequest, HttpResponse } from 'uWebSockets.js' */
/** @import { Exchange, Stream, StreamRoute } from './contract.js' */
/** @import { Head } from './text.js' */

/** Replaces invalid UTF-8. */
const REPLACEMENT = '\ufffd'
const CONTENT_LENGTH = Buffer.from('Content-Length')
const [, CONNECTION, CLOSE] = headBytes(200, { Connection: 'close' })

/** MUST be called within a cork. @param {HttpResponse} res @param {Head} head */
export function writeHead(res, head) {
  // The library writes 200 by default.
  if (head[0] !== OK) res.writeStatus(head[0])
  for (let i = 1; i < head.length; i += 2) res.writeHeader(head[i], head[i + 1])
}

const [OK] = headBytes(200, null)
const EMPTY_BODY = Buffer.alloc(0)

/** @param {string} method @param {number} status */
const isBare = (method, status) => method === 'HEAD' || status === 204 || status === 304

/** Bytes of responses between two checks, random so that clients cannot predict them. */
const CHECK_AFTER = { min: 500_000, max: 1_500_000 }
const HEAD_SIZE = 200

/**
 * Selects responses that check their connection for unread responses.
 *
 * The library buffers all unread data, and does not report its size. `tryEnd` reports whether the kernel has accepted a
 * response with a body; the rest waits until the client reads, and another request before that closes the connection.
 * This cuts clients that pipeline without reading, on average after 1 MB. A check costs more than `end`, and may cut a
 * pipelining connection during congestion.
 */
export class UnreadChecks {
  #left = CHECK_AFTER.max

  /** @param {number} size of the body, bytes */
  isDue(size) {
    this.#left -= size + HEAD_SIZE
    if (this.#left > 0) return false
    const { min, max } = CHECK_AFTER
    this.#left = min + Math.random() * (max - min)
    return true
  }
}

/** Ends a response; the rest waits until the client reads. @param {HttpResponse} res @param {Uint8Array} body */
function offer(res, body) {
  if (res.tryEnd(asBytes(body), body.length)[1]) return
  const sent = res.getWriteOffset()
  // The caller may reuse the buffer.
  const rest = Buffer.from(body.subarray(sent))
  res.onAborted(() => {})
  res.onWritable(offset => res.tryEnd(asBytes(rest.subarray(offset - sent)), body.length)[0])
}

/**
 * @typedef {object} Host shared by all exchanges of a server
 * @property {(error: Error) => void} log
 * @property {import('./uws-streams.js').UwsStreams} streams
 * @property {UnreadChecks} checks
 * @property {boolean} closing every response ends its connection
 * @property {number} unanswered requests without a response or a `waiter`
 */

/** Calls into C++ are expensive: values are read on demand, and only unanswered requests get an abort handler. */
export class UwsExchange {
  /** @type {HttpResponse} */
  #res
  /** Until the handler has returned. @type {HttpRequest | null} */
  #req
  /** Within a callback of the library. */
  #corked = true
  #watched = false
  #host
  /** @type {Exchange['waiter']} */
  #waiter = null
  gone = false

  /**
   * @param {HttpResponse} res @param {HttpRequest} req
   * @param {string} method upper case
   * @param {string} path
   * @param {Host} host
   */
  constructor(res, req, method, path, host) {
    this.#res = res
    this.#req = req
    this.#host = host
    this.method = method
    this.path = path
  }

  get query() {
    return this.#req?.getQuery() ?? ''
  }

  /** @param {string} name */
  header(name) {
    return this.#req === null ? '' : this.#req.getHeader(nameBytes(name))
  }

  headers() {
    const req = this.#req
    /** @type {string[]} */
    const lines = []
    req?.forEach((name, value) => {
      // For the first header of a name, `getHeader` also returns non-UTF-8 bytes.
      const lost = value.includes(REPLACEMENT) && !lines.includes(name)
      lines.push(name, lost ? req.getHeader(asBytes(name)) : inBytes(value))
    })
    return lines
  }

  remoteAddress() {
    return this.gone ? '' : addressOf(this.#res)
  }

  get waiter() {
    return this.#waiter
  }

  set waiter(waiter) {
    if (this.#watched && !this.gone) {
      if (this.#waiter === null) this.#host.unanswered--
      if (waiter === null) this.#host.unanswered++
    }
    this.#waiter = waiter
  }

  #end() {
    this.gone = true
    if (this.#watched && this.#waiter === null) this.#host.unanswered--
    this.#waiter = null
  }

  /** @param {number} limit bytes @param {(body: Buffer | null) => void} done */
  body(limit, done) {
    if (this.gone) return
    this.#watch()
    /** Copies: chunks are valid only during their callback. @type {Buffer[] | null} */
    let chunks = null
    let size = 0
    let over = false
    this.#res.onData((data, last) => {
      if (over || this.gone) return
      size += data.byteLength
      if (size > limit) {
        // Drops the rest: a close with unread data resets the connection, which can discard the response.
        over = true
        chunks = null
        this.#call(done, null)
      } else if (!last) {
        if (data.byteLength > 0) (chunks ??= []).push(Buffer.concat([Buffer.from(data)]))
      } else if (chunks === null) {
        this.#call(done, size === 0 ? EMPTY_BODY : Buffer.from(data))
      } else {
        chunks.push(Buffer.from(data))
        this.#call(done, Buffer.concat(chunks, size))
      }
    })
  }

  /** @param {number} status @param {Record<string, string> | null} headers @param {string | Uint8Array} body */
  reply(status, headers, body) {
    if (this.gone) return
    const head = this.#head(status, headers)
    if (head === null) return
    // Without a body, the library does not report kernel acceptance, see `UnreadChecks`.
    if (this.#corked && isBare(this.method, status) && this.#host.checks.isDue(0)) {
      this.#watch()
      setImmediate(() => this.#answer(status, head, body))
    } else this.#answer(status, head, body)
  }

  /** @param {number} status @param {Head} head @param {string | Uint8Array} body */
  #answer(status, head, body) {
    if (this.gone) return
    this.#end()
    if (this.#corked) this.#write(status, head, body)
    else this.#res.cork(() => this.#write(status, head, body))
  }

  /** @param {number} status @param {Record<string, string> | null} headers @param {StreamRoute} route */
  stream(status, headers, route) {
    if (this.gone) return null
    if (this.method === 'HEAD') {
      this.reply(status, headers, '')
      return null
    }
    const head = this.#head(status, headers)
    if (head === null) return null
    this.#end()
    return this.#host.streams.begin(this.#res, head, route)
  }

  /** @param {number} status @param {Record<string, string> | null} headers @returns {Head | null} null: 500 was sent */
  #head(status, headers) {
    try {
      return headBytes(status, headers)
    } catch (error) {
      this.fail(error)
      return null
    }
  }

  handlerReturned() {
    this.#corked = false
    this.#req = null
    if (!this.gone) this.#watch()
  }

  /** @param {Error} error of a handler */
  fail(error) {
    this.#host.log(error)
    this.reply(500, null, '')
  }

  /** @param {number} status @param {Head} head @param {string | Uint8Array} body */
  #write(status, head, body) {
    const res = this.#res
    const { closing } = this.#host
    writeHead(res, head)
    // The library cannot close a connection after a response without a body: the client closes it.
    if (closing && isBare(this.method, status)) res.writeHeader(CONNECTION, CLOSE)
    if (this.method === 'HEAD') {
      // `endWithoutBody` with a length would wait forever for a body.
      res.writeHeader(CONTENT_LENGTH, asBytes(String(Buffer.byteLength(body))))
      res.endWithoutBody()
    } else if (status === 204 || status === 304) {
      res.endWithoutBody()
    } else if (closing || body.length === 0 || !this.#host.checks.isDue(body.length)) {
      res.end(asBytes(body), closing)
    } else {
      offer(res, typeof body === 'string' ? Buffer.from(body) : body)
    }
  }

  /** @param {(body: Buffer | null) => void} done @param {Buffer | null} body */
  #call(done, body) {
    this.#corked = true
    try {
      done(body)
    } catch (error) {
      this.fail(error)
    }
    this.#corked = false
  }

  #abandon() {
    const waiter = this.#waiter
    if (!this.gone) this.#end()
    waiter?.abandoned()
  }

  #watch() {
    if (this.#watched) return
    this.#watched = true
    if (this.#waiter === null) this.#host.unanswered++
    this.#res.onAborted(this.#abandon.bind(this))
  }
}

const IPV4_PREFIX = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]

/** @param {{getRemoteAddress: () => ArrayBuffer, getRemoteAddressAsText: () => ArrayBuffer}} handle of the library */
export function addressOf(handle) {
  const bytes = new Uint8Array(handle.getRemoteAddress())
  if (bytes.length === 4) return bytes.join('.')
  // An IPv4 client on a dual-stack socket is ::ffff:a.b.c.d.
  if (IPV4_PREFIX.every((byte, at) => byte === bytes[at])) return bytes.subarray(12).join('.')
  return Buffer.from(handle.getRemoteAddressAsText()).toString('latin1')
}
