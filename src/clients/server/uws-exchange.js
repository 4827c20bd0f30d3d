import { asBytes, headBytes, inBytes, nameBytes } from './text.js'

/** @import { HttpRequest, HttpResponse } from 'uWebSockets.js' */
/** @import { Exchange, Stream, StreamRoute } from './contract.js' */
/** @import { Head } from './text.js' */

/** In text that the library has decoded: bytes that were no UTF-8. */
const REPLACEMENT = '\ufffd'
const CONTENT_LENGTH = Buffer.from('Content-Length')
const [, CONNECTION, CLOSE] = headBytes(200, { Connection: 'close' })

/** MUST be called within a cork, like all writes of the library. @param {HttpResponse} res @param {Head} head */
export function writeHead(res, head) {
  // The library writes 200 by itself.
  if (head[0] !== OK) res.writeStatus(head[0])
  for (let i = 1; i < head.length; i += 2) res.writeHeader(head[i], head[i + 1])
}

const [OK] = headBytes(200, null)
const EMPTY_BODY = Buffer.alloc(0)

/** @param {string} method @param {number} status */
const isBare = (method, status) => method === 'HEAD' || status === 204 || status === 304

/** Bytes of answers between two checks, at least and at most: clients cannot know which one is checked. */
const CHECK_AFTER = { least: 500_000, most: 1_500_000 }
/** Bytes of a head, about. */
const HEAD_SIZE = 200

/**
 * Decides which answers find out whether their connection has unread ones.
 *
 * The library keeps all that a client does not read, and says of no connection how much that is. It says of an answer
 * with a body whether the kernel has taken it (`tryEnd`). The rest of such an answer waits until the client reads, and
 * the library ends the connection when another request comes before that. So a client that pipelines requests and does
 * not read is cut, on average after 1 MB in the memory of the worker: on a check, a connection is met as often as it has
 * bytes to answer. A check costs more than `end`, and one that meets a connection in a moment of congestion may cut it,
 * if it pipelines; others are not affected.
 */
export class UnreadChecks {
  #left = CHECK_AFTER.most

  /** @param {number} size of the answer's body, bytes @returns {boolean} */
  isDue(size) {
    this.#left -= size + HEAD_SIZE
    if (this.#left > 0) return false
    const { least, most } = CHECK_AFTER
    this.#left = least + Math.random() * (most - least)
    return true
  }
}

/**
 * Ends an answer with a body. What the kernel does not take waits for the client.
 * @param {HttpResponse} res @param {Uint8Array} body
 */
function offer(res, body) {
  if (res.tryEnd(asBytes(body), body.length)[1]) return
  const sent = res.getWriteOffset()
  // The caller may reuse its bytes.
  const rest = Buffer.from(body.subarray(sent))
  res.onAborted(() => {})
  res.onWritable(offset => res.tryEnd(asBytes(rest.subarray(offset - sent)), body.length)[0])
}

/**
 * @typedef {object} Host shared by all exchanges of a server
 * @property {(error: Error) => void} log for errors of handlers
 * @property {import('./uws-streams.js').UwsStreams} streams
 * @property {UnreadChecks} checks
 * @property {boolean} closing the server drains: every answer ends its connection
 * @property {number} unanswered requests without an answer, except those that wait (`waiter`)
 */

/**
 * The `Exchange` of uWebSockets.js. Every call into the library crosses from JavaScript to C++, so values are read on
 * demand, and the abort handler is attached only to requests without an immediate answer.
 */
export class UwsExchange {
  /** @type {HttpResponse} */
  #res
  /** @type {HttpRequest | null} until the handler has returned */
  #req
  /** Within a callback of the library, which is corked. */
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
      // The library has decoded it as UTF-8. For the first header of a name, `getHeader` also has bytes that are none.
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

  /** Nothing more can be sent. */
  #end() {
    this.gone = true
    if (this.#watched && this.#waiter === null) this.#host.unanswered--
    this.#waiter = null
  }

  /** @param {number} limit bytes @param {(body: Buffer | null) => void} done */
  body(limit, done) {
    if (this.gone) return
    this.#watch()
    /** @type {Buffer[] | null} copies of earlier chunks, which are valid only during their callback */
    let chunks = null
    let size = 0
    let over = false
    this.#res.onData((data, last) => {
      if (over || this.gone) return
      size += data.byteLength
      if (size > limit) {
        // Read and drop the rest: closing with unread data resets the connection, and a reset can overtake the answer.
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
    // The library cannot tell whether it could send an answer without a body, see `UnreadChecks`.
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

  /**
   * @param {number} status @param {Record<string, string> | null} headers
   * @param {StreamRoute} route
   * @returns {Stream | null}
   */
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

  /**
   * @param {number} status @param {Record<string, string> | null} headers
   * @returns {Head | null} null: HTTP cannot carry it, and the answer was 500
   */
  #head(status, headers) {
    try {
      return headBytes(status, headers)
    } catch (error) {
      this.fail(error)
      return null
    }
  }

  /** The handler has returned: an answer may follow later. */
  handlerReturned() {
    this.#corked = false
    this.#req = null
    if (!this.gone) this.#watch()
  }

  /** A handler has thrown. @param {Error} error */
  fail(error) {
    this.#host.log(error)
    this.reply(500, null, '')
  }

  /** @param {number} status @param {Head} head @param {string | Uint8Array} body */
  #write(status, head, body) {
    const res = this.#res
    const { closing } = this.#host
    writeHead(res, head)
    // The library cannot end a connection after an answer without body: the client does, as the header asks it to.
    if (closing && isBare(this.method, status)) res.writeHeader(CONNECTION, CLOSE)
    if (this.method === 'HEAD') {
      // `endWithoutBody` with a length argument would wait forever for a body.
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

/**
 * @param {{getRemoteAddress: () => ArrayBuffer, getRemoteAddressAsText: () => ArrayBuffer}} handle of the library
 * @returns {string} address of its peer
 */
export function addressOf(handle) {
  const bytes = new Uint8Array(handle.getRemoteAddress())
  if (bytes.length === 4) return bytes.join('.')
  // An IPv4 client on a dual-stack socket is ::ffff:a.b.c.d: return a.b.c.d.
  if (
    bytes.length === 16 &&
    bytes[10] === 0xff &&
    bytes[11] === 0xff &&
    bytes.subarray(0, 10).every(isZero)
  ) {
    return bytes.subarray(12).join('.')
  }
  return Buffer.from(handle.getRemoteAddressAsText()).toString('latin1')
}

/** @param {number} byte */
function isZero(byte) {
  return byte === 0
}
