// One of the servers that connections go to: its address, how a socket to it is made, and what is shared by its
// connections.

import { lookup } from 'node:dns/promises'
import { isIP, Socket } from 'node:net'
import { createSecureContext, connect as tlsConnect } from 'node:tls'
import { Sources } from './addresses.js'
import { HttpWire } from './http.js'
import { OPEN, onRead, PATIENCE } from './wire.js'

/** Connections at once, at most. */
const MAX_WIRES = 64
/** Bytes of an answer: a reply to each command of a batch. */
const MAX_ANSWER = 1 << 22
/** s without a POST after which a connection is closed: before servers do, in whose closing a POST would be lost. */
const IDLE = 3

export class Target {
  /** @type {Promise<import('node:dns').LookupAddress[]> | null} of the host, all of one family */
  #found = null
  #turn = 0

  /**
   * @param {import('./dialer.js').Dialer} dialer
   * @param {string} url http:, https:, ws: or wss:, with a prefix of the paths if there is one
   * @param {Sources} [sources] none: the kernel's choice
   * @throws {Error} if it is none
   */
  constructor(dialer, url, sources = new Sources([], '')) {
    const parsed = URL.canParse(url) ? new URL(url) : null
    const scheme = parsed?.protocol.match(/^(?:http|ws)(s?):$/)
    if (!parsed || !scheme) throw new Error(`target "${url}" is no URL like http://127.0.0.1:8000`)
    const { hostname, host, pathname } = parsed
    const name = hostname.replace(/[[\]]/g, '')
    const secure = scheme[1] !== ''
    const port = Number(parsed.port) || (secure ? 443 : 80)
    this.dialer = dialer
    this.secure = secure
    this.host = host
    this.prefix = pathname.replace(/\/+$/, '')
    /** Under which it may be allowed. */
    this.names = [name, hostname, `${hostname}:${port}`]
    this.sources = sources
    this.posts = new Posts(this)
    /** The event that tells that a socket is open. */
    this.opened = secure ? 'secureConnect' : 'connect'
    /** @type {any} */
    this.options = {
      host: name,
      port,
      noDelay: true,
      autoSelectFamily: false,
      onread: { buffer: dialer.buffer, callback: onRead },
      /** @param {string} name @param {object} _options @param {Function} done */
      lookup: (name, _options, done) =>
        this.#look(name).then(
          found => {
            // Several addresses take turns.
            const { address, family } = found[this.#turn++ % found.length]
            done(null, address, family)
          },
          error => done(error),
        ),
      ...(secure && { secureContext: createSecureContext(), servername: isIP(name) ? '' : name }),
    }
  }

  /** Asks once. @param {string} name */
  #look(name) {
    this.#found ??= lookup(name, { all: true, verbatim: false, family: this.sources.family }).then(
      // localhost has two, and many servers listen on the first one only.
      found => found.filter(({ family }) => family === found[0].family),
      error => {
        this.#found = null
        throw error
      },
    )
    return this.#found
  }

  /**
   * @param {string} start method and path of the request, behind the prefix
   * @param {string} headers lines, each with its end
   */
  head(start, headers) {
    return `${start.replace(' ', ` ${this.prefix}`)} HTTP/1.1\r\nHost: ${this.host}\r\n${headers}\r\n`
  }

  /** @param {string} path @param {string} body JSON @param {string} [more] headers */
  post(path, body, more = '') {
    const length = Buffer.byteLength(body)
    const headers = `Content-Type: application/json\r\nContent-Length: ${length}\r\n${more}`
    return Buffer.from(this.head(`POST ${path}`, headers) + body)
  }

  /** @param {number} pair @returns {import('./wire.js').WireSocket} that is connecting */
  connect(pair) {
    const options = { ...this.options, ...this.sources.at(pair) }
    return /** @type {any} */ (this.secure ? tlsConnect(options) : new Socket(options).connect(options))
  }
}

/**
 * Who has something to send. `text`: of the answer, a character for each byte.
 * @typedef {{request: () => Buffer | null, posted: (status: number, reason: string, text: string) => void}} Sender
 */

/** The POSTs of all connections to a target, over a few connections that stay open while they are used. */
class Posts {
  /** @type {Sender[]} each once at most */
  queue = []
  /** @type {Set<PostWire>} */
  wires = new Set()
  #target

  /** @param {import('./target.js').Target} target */
  constructor(target) {
    this.#target = target
  }

  /** @param {Sender} sender whose `request` is asked for when it is its turn */
  push(sender) {
    this.queue.push(sender)
    for (const wire of this.wires) if (wire.state === OPEN && !wire.sender) return wire.next()
    this.more()
  }

  more() {
    if (this.queue.length > 0 && this.wires.size < MAX_WIRES) new PostWire(this.#target, this).open()
  }
}

class PostWire extends HttpWire {
  /** @type {Sender | undefined} whose POST is under way */
  sender
  answer = ''

  /** @param {import('./target.js').Target} target @param {Posts} posts */
  constructor(target, posts) {
    super(target)
    this.posts = posts
    posts.wires.add(this)
  }

  next() {
    let request
    while (!request && (this.sender = this.posts.queue.shift())) request = this.sender.request()
    this.dialer.watch(this, request ? PATIENCE : IDLE)
    if (request) this.write(request)
  }

  /** @override */
  opened() {
    this.state = OPEN
    this.next()
  }

  /** @override */
  answered() {
    if (!this.sender) this.end('answer to no request')
  }

  /** @override @param {Buffer} buffer @param {number} start @param {number} end */
  body(buffer, start, end) {
    this.answer += buffer.toString('latin1', start, end)
    if (this.answer.length > MAX_ANSWER) this.end('answer too long')
  }

  /** @override */
  done() {
    const { sender, status, answer } = this
    this.answer = ''
    this.sender = undefined
    if (!this.kept) this.end('closed')
    // It may have more, and take this wire for it.
    sender?.posted(status, `HTTP ${status}`, answer)
    if (this.state === OPEN && !this.sender) this.next()
  }

  /** @override */
  gone() {
    const { posts } = this
    posts.wires.delete(this)
    // One that was never connected has not come to any.
    if (this.status === 0) this.sender ??= posts.queue.shift()
    this.sender?.posted(0, this.reason, '')
    posts.more()
  }
}
