// A server to load: its address, how to open sockets, and the shared state of its connections.

import { lookup } from 'node:dns/promises'
import { isIP, Socket } from 'node:net'
import { createSecureContext, connect as tlsConnect } from 'node:tls'
import { Sources } from './addresses.js'
import { HttpWire } from './http.js'
import { ANSWER_TIMEOUT, OPEN, onRead } from './wire.js'

const MAX_WIRES = 64
/** Maximum bytes of a response: a reply to each command of a batch. */
const MAX_ANSWER = 1 << 22
/** s without a POST until a connection is closed. Less than servers wait: a server that closes first loses a POST. */
const IDLE_TIMEOUT = 3

export class Target {
  /** Addresses of the host, all of one family. @type {Promise<import('node:dns').LookupAddress[]> | null} */
  #addresses = null
  #nextAddress = 0

  /**
   * @param {import('./dialer.js').Dialer} dialer @param {string} url http:, https:, ws: or wss:, with an optional path
   * @param {Sources} [sources] none: the kernel's choice @throws {Error} an invalid URL
   */
  constructor(dialer, url, sources = new Sources([], '')) {
    const parsed = URL.canParse(url) ? new URL(url) : null
    const scheme = parsed?.protocol.match(/^(?:http|ws)(s?):$/)
    if (!parsed || !scheme) throw new Error(`target "${url}" is not a URL like http://127.0.0.1:8000`)
    const { hostname, host, pathname } = parsed
    const name = hostname.replace(/[[\]]/g, '')
    const secure = scheme[1] !== ''
    const port = Number(parsed.port) || (secure ? 443 : 80)
    this.dialer = dialer
    this.secure = secure
    this.host = host
    this.prefix = pathname.replace(/\/+$/, '')
    /** Forms of its name in an allow list. */
    this.names = [name, hostname, `${hostname}:${port}`]
    this.sources = sources
    this.posts = new Posts(this)
    this.openEvent = secure ? 'secureConnect' : 'connect'
    /** @type {any} */
    this.options = {
      host: name,
      port,
      noDelay: true,
      autoSelectFamily: false,
      onread: { buffer: dialer.buffer, callback: onRead },
      /** @param {string} name @param {object} _options @param {Function} done */
      lookup: (name, _options, done) =>
        this.#resolve(name).then(
          found => {
            const { address, family } = found[this.#nextAddress++ % found.length]
            done(null, address, family)
          },
          error => done(error),
        ),
      ...(secure && { secureContext: createSecureContext(), servername: isIP(name) ? '' : name }),
    }
  }

  /** Resolves the name once. @param {string} name */
  #resolve(name) {
    this.#addresses ??= lookup(name, { all: true, verbatim: false, family: this.sources.family }).then(
      // localhost has two families, and many servers listen on the first one only.
      found => found.filter(({ family }) => family === found[0].family),
      error => {
        this.#addresses = null
        throw error
      },
    )
    return this.#addresses
  }

  /** @param {string} start method and path of the request, without the prefix @param {string} headers lines with CRLF */
  head(start, headers) {
    return `${start.replace(' ', ` ${this.prefix}`)} HTTP/1.1\r\nHost: ${this.host}\r\n${headers}\r\n`
  }

  /** @param {string} path @param {string} body JSON @param {string} [moreHeaders] lines with CRLF */
  post(path, body, moreHeaders = '') {
    const length = Buffer.byteLength(body)
    const headers = `Content-Type: application/json\r\nContent-Length: ${length}\r\n${moreHeaders}`
    return Buffer.from(this.head(`POST ${path}`, headers) + body)
  }

  /** @param {number} pair of address and port @returns {import('./wire.js').WireSocket} connecting */
  connect(pair) {
    const options = { ...this.options, ...this.sources.at(pair) }
    return /** @type {any} */ (this.secure ? tlsConnect(options) : new Socket(options).connect(options))
  }
}

/**
 * `request` makes the next POST, null: none; `posted` gets the response: `status` 0 if it failed, `text` in latin1.
 * @typedef {{request: () => Buffer | null, posted: (status: number, reason: string, text: string) => void}} Sender
 */

class Posts {
  /** @type {Sender[]} waiting, each at most once */
  queue = []
  /** @type {Set<PostWire>} */
  wires = new Set()
  #target

  /** @param {Target} target */
  constructor(target) {
    this.#target = target
  }

  /** @param {Sender} sender its `request` is called in turn */
  push(sender) {
    this.queue.push(sender)
    for (const wire of this.wires) if (wire.state === OPEN && !wire.sender) return wire.next()
    this.openWire()
  }

  openWire() {
    if (this.queue.length > 0 && this.wires.size < MAX_WIRES) new PostWire(this.#target, this).open()
  }
}

class PostWire extends HttpWire {
  /** Sender of the POST in flight. @type {Sender | undefined} */
  sender
  answer = ''

  /** @param {Target} target @param {Posts} posts */
  constructor(target, posts) {
    super(target)
    this.posts = posts
    posts.wires.add(this)
  }

  next() {
    let request
    while (!request && (this.sender = this.posts.queue.shift())) request = this.sender.request()
    this.dialer.watch(this, request ? ANSWER_TIMEOUT : IDLE_TIMEOUT)
    if (request) this.write(request)
  }

  opened() {
    this.state = OPEN
    this.next()
  }

  answered() {
    if (!this.sender) this.end('unexpected response')
  }

  /** @override @param {Buffer} buffer @param {number} start @param {number} end */
  body(buffer, start, end) {
    this.answer += buffer.toString('latin1', start, end)
    if (this.answer.length > MAX_ANSWER) this.end('response too long')
  }

  done() {
    const { sender, status, answer } = this
    this.answer = ''
    this.sender = undefined
    if (!this.kept) this.end('closed')
    // The sender may push its next POST, which uses this wire.
    sender?.posted(status, `HTTP ${status}`, answer)
    if (this.state === OPEN && !this.sender) this.next()
  }

  gone() {
    const { posts } = this
    posts.wires.delete(this)
    // A wire that never connected has no sender. One waiting POST fails with it: else the queue would never end.
    if (this.status === 0) this.sender ??= posts.queue.shift()
    this.sender?.posted(0, this.reason, '')
    posts.openWire()
  }
}
