import { retryAfter } from './contract.js'
import { addressOf, NodeStream } from './node-stream.js'
import { headersInBytes } from './text.js'

/** @import { IncomingMessage, ServerResponse } from 'node:http' */
/** @import { Exchange, StreamRoute } from './contract.js' */

const BLOCK = 16_384
/** Maximum bytes of unfinished bodies: sixteen times the largest limit. */
const MAX_BODIES = 256 * 1024 * 1024
const EMPTY = Buffer.alloc(0)

/** @typedef {{bytes: number, max: number}} Bodies of a server, unfinished */

/** @returns {Bodies} */
export const createBodies = (max = MAX_BODIES) => ({ bytes: 0, max })

/** An unfinished body, in blocks: pieces may be one byte, and a Buffer takes some 100 bytes. */
export class Body {
  size = 0
  #bodies
  /** @type {Buffer[]} */
  #blocks = []
  /** @type {Buffer | null} */
  #block = null
  #used = 0

  /** @param {Bodies} bodies */
  constructor(bodies) {
    this.#bodies = bodies
  }

  get capacity() {
    return this.#blocks.reduce((sum, { length }) => sum + length, this.#block?.length ?? 0)
  }

  /** @param {Buffer} piece */
  add(piece) {
    this.size += piece.length
    this.#bodies.bytes += piece.length
    if (this.#block === null && piece.length >= BLOCK) {
      this.#blocks.push(piece)
      return
    }
    for (let at = 0; at < piece.length; ) {
      this.#block ??= Buffer.allocUnsafeSlow(BLOCK)
      const copied = piece.copy(this.#block, this.#used, at)
      at += copied
      this.#used += copied
      if (this.#used < BLOCK) return
      this.#blocks.push(this.#block)
      this.#block = null
      this.#used = 0
    }
  }

  take() {
    const { size } = this
    const blocks =
      this.#block === null ? this.#blocks : [...this.#blocks, this.#block.subarray(0, this.#used)]
    this.drop()
    return blocks.length === 0 ? EMPTY : blocks.length === 1 ? blocks[0] : Buffer.concat(blocks, size)
  }

  drop() {
    this.#bodies.bytes -= this.size
    this.size = 0
    this.#blocks = []
    this.#block = null
    this.#used = 0
  }
}

/** Cuts a client that reads nothing of a response. net.Socket checks twice: after 8 to 16 s; uws: 10 to 14 s. */
const UNREAD_TIMEOUT = 8000

/**
 * @typedef {object} Host shared by all exchanges of a server
 * @property {(error: Error) => void} log
 * @property {import('./chunk-maker.js').ChunkMaker} chunks
 * @property {Set<any>} slow connections and streams with unread bytes after a write
 * @property {Bodies} bodies
 * @property {boolean} closing every response ends its connection
 * @property {number} unanswered requests without a response or a `waiter`
 * @property {(socket: import('node:net').Socket) => void} done a request of the connection is complete
 * @property {(stream: NodeStream) => void} hold releases the stream at the end of this turn
 */

export class NodeExchange {
  #req
  #res
  #host
  /** @type {Exchange['waiter']} */
  #waiter = null
  /** Counted in `unanswered`, until the response closes. */
  #counted = false
  #streaming = false
  /** @type {Body | null} */
  #body = null

  /**
   * @param {IncomingMessage} req
   * @param {ServerResponse | null} res null for an upgrade
   * @param {Host} host
   */
  constructor(req, res, host) {
    this.#req = req
    this.#res = res
    this.#host = host
    const url = req.url ?? '/'
    const mark = url.indexOf('?')
    this.method = req.method ?? 'GET'
    this.path = mark < 0 ? url : url.slice(0, mark)
    this.query = mark < 0 ? '' : url.slice(mark + 1)
    if (res === null) return
    this.#count(true)
    res.once('close', () => this.#closed())
  }

  /** @param {boolean} counted */
  #count(counted) {
    if (counted === this.#counted) return
    this.#counted = counted
    this.#host.unanswered += counted ? 1 : -1
  }

  get gone() {
    const { destroyed } = this.#req.socket
    if (this.#res === null) return destroyed
    return destroyed || this.#streaming || this.#res.writableEnded || this.#res.destroyed
  }

  /** @param {string} name */
  header(name) {
    const value = this.#req.headers[name]
    return typeof value === 'string' ? value : (value?.join(', ') ?? '')
  }

  headers() {
    return this.#req.rawHeaders.map((text, at) => (at % 2 === 0 ? text.toLowerCase() : text))
  }

  remoteAddress() {
    return addressOf(this.#req.socket)
  }

  /** @param {number} limit bytes @param {(body: Buffer | null) => void} done */
  body(limit, done) {
    if (this.gone) return
    const { bodies } = this.#host
    const body = new Body(bodies)
    this.#body = body
    let over = false
    this.#req.on('data', chunk => {
      // Drops the rest: a close with unread data resets the connection, which can discard the response.
      if (over || this.gone) return
      body.add(chunk)
      over = body.size > limit || bodies.bytes > bodies.max
      if (!over) return
      const tooLong = body.size > limit
      body.drop()
      if (tooLong) this.#call(done, null)
      else this.reply(503, retryAfter(), '')
    })
    this.#req.on('end', () => {
      if (!over && !this.gone) this.#call(done, body.take())
    })
  }

  /** @param {number} status @param {Record<string, string> | null} headers @param {string | Uint8Array} body */
  reply(status, headers, body) {
    if (this.gone || this.#res === null) return
    const head = this.#head(headers)
    if (head === null) return
    this.waiter = null
    if (this.#host.closing) this.#res.shouldKeepAlive = false
    if (status === 204 || status === 304) {
      this.#res.writeHead(status, head)
      this.#res.end()
      return
    }
    const length = Buffer.byteLength(body)
    this.#res.writeHead(status, { ...head, 'Content-Length': length })
    this.#res.end(body)
    // node:http replaces the timeout on completion.
    this.#req.socket.setTimeout(UNREAD_TIMEOUT)
  }

  get waiter() {
    return this.#waiter
  }

  set waiter(waiter) {
    this.#waiter = waiter
    if (this.#res !== null && !this.#streaming) this.#count(waiter === null)
  }

  /** @param {number} status @param {Record<string, string> | null} headers @param {StreamRoute} route */
  stream(status, headers, route) {
    const res = this.#res
    if (this.gone || res === null) return null
    if (this.method === 'HEAD') {
      this.reply(status, headers, '')
      return null
    }
    const head = this.#head(headers)
    if (head === null) return null
    this.#streaming = true
    this.#waiter = null
    this.#count(false)
    res.writeHead(status, head)
    return new NodeStream(res, this.#req.socket, route, this.#host)
  }

  /** @param {Record<string, string> | null} headers @returns null: 500 was sent */
  #head(headers) {
    try {
      return headersInBytes(headers)
    } catch (error) {
      this.fail(error)
      return null
    }
  }

  /** @param {Error} error of a handler */
  fail(error) {
    this.#host.log(error)
    this.reply(500, null, '')
  }

  #closed() {
    this.#count(false)
    this.#body?.drop()
    this.#host.done(this.#req.socket)
    const waiter = this.#waiter
    this.#waiter = null
    waiter?.abandoned()
  }

  /** @param {(body: Buffer | null) => void} done @param {Buffer | null} body */
  #call(done, body) {
    try {
      done(body)
    } catch (error) {
      this.fail(error)
    }
  }
}
