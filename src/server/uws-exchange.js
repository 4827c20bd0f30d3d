import { STATUS_CODES } from 'node:http'

const NOTHING = Buffer.alloc(0)

/** @param {number} status */
function statusLine(status) {
  return `${status} ${STATUS_CODES[status] ?? 'Unknown'}`
}

/**
 * The `Exchange` of uWebSockets.js. Every call into the library crosses from JavaScript to C++, so nothing is
 * read before it is asked for, and the abort handler is attached only to a request that is not answered at once.
 */
export class UwsExchange {
  /** @type {import('uWebSockets.js').HttpResponse} */
  #res
  /** @type {import('uWebSockets.js').HttpRequest} */
  #req
  /** Within a callback of the library, which corks by itself. */
  #corked = true
  #watched = false
  #log

  /**
   * @param {import('uWebSockets.js').HttpResponse} res
   * @param {import('uWebSockets.js').HttpRequest} req
   * @param {string} method upper case
   * @param {string} path
   * @param {(error: Error) => void} log gets what a handler threw
   */
  constructor(res, req, method, path, log) {
    this.#res = res
    this.#req = req
    this.#log = log
    this.method = method
    this.path = path
    this.query = req.getQuery() ?? ''
    this.gone = false
  }

  /** @param {string} name */
  header(name) {
    return this.#req.getHeader(name)
  }

  remoteAddress() {
    if (this.gone) return ''
    const bytes = new Uint8Array(this.#res.getRemoteAddress())
    if (bytes.length === 4) return bytes.join('.')
    // An IPv4 client on a dual-stack socket is ::ffff:a.b.c.d; everybody expects to see a.b.c.d.
    if (
      bytes.length === 16 &&
      bytes[10] === 0xff &&
      bytes[11] === 0xff &&
      bytes.subarray(0, 10).every(isZero)
    ) {
      return bytes.subarray(12).join('.')
    }
    return Buffer.from(this.#res.getRemoteAddressAsText()).toString('latin1')
  }

  /**
   * @param {number} limit bytes
   * @param {(body: Buffer | null) => void} done
   */
  body(limit, done) {
    if (this.gone) return
    this.#watch()
    /** @type {Buffer[] | null} what came before, copied: a chunk is valid only during its callback */
    let chunks = null
    let size = 0
    let over = false
    this.#res.onData((data, last) => {
      if (over || this.gone) return
      size += data.byteLength
      if (size > limit) {
        // The rest is still read, and dropped: a connection that is closed with unread data is reset, and a reset
        // can overtake the answer.
        over = true
        chunks = null
        this.#call(done, null)
      } else if (!last) {
        if (data.byteLength > 0) (chunks ??= []).push(Buffer.concat([Buffer.from(data)]))
      } else if (chunks === null) {
        this.#call(done, size === 0 ? NOTHING : Buffer.from(data))
      } else {
        chunks.push(Buffer.from(data))
        this.#call(done, Buffer.concat(chunks, size))
      }
    })
  }

  /**
   * @param {number} status
   * @param {Record<string, string> | null} headers
   * @param {string | Uint8Array} body
   */
  reply(status, headers, body) {
    if (this.gone) return
    this.gone = true
    if (this.#corked) this.#write(status, headers, body)
    else this.#res.cork(() => this.#write(status, headers, body))
  }

  /** The handler has returned: whoever has not answered yet, will do so later. */
  leave() {
    this.#corked = false
    if (!this.gone) this.#watch()
  }

  /** @param {Error} error what the handler threw */
  fail(error) {
    this.#log(error)
    this.reply(500, null, '')
  }

  /**
   * @param {number} status
   * @param {Record<string, string> | null} headers
   * @param {string | Uint8Array} body
   */
  #write(status, headers, body) {
    const res = this.#res
    if (status !== 200) res.writeStatus(statusLine(status)) // 200 is what the library writes by itself
    if (headers !== null) for (const name in headers) res.writeHeader(name, headers[name])
    if (this.method === 'HEAD') {
      // With a length of its own, `endWithoutBody` waits for a body for ever.
      res.writeHeader('Content-Length', `${Buffer.byteLength(body)}`)
      res.endWithoutBody()
    } else if (status === 204 || status === 304) {
      res.endWithoutBody()
    } else {
      res.end(body)
    }
  }

  /**
   * @param {(body: Buffer | null) => void} done
   * @param {Buffer | null} body
   */
  #call(done, body) {
    this.#corked = true
    try {
      done(body)
    } catch (error) {
      this.fail(error)
    }
    this.#corked = false
  }

  #watch() {
    if (this.#watched) return
    this.#watched = true
    this.#res.onAborted(() => {
      this.gone = true
    })
  }
}

/** @param {number} byte */
function isZero(byte) {
  return byte === 0
}
