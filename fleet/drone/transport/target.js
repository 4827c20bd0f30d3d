// A server to load: its address, how sockets to it are made, and what its connections share.

import { lookup } from 'node:dns/promises'
import { isIP, Socket } from 'node:net'
import { createSecureContext, connect as tlsConnect } from 'node:tls'
import { Sources } from './addresses.js'
import { HttpWire } from './http.js'
import { ANSWER_TIMEOUT, OPEN, onRead } from './wire.js'

/** Maximum number of connections for POSTs. */
const MAX_WIRES = 64
/** Maximum bytes of a response: a reply to each command of a batch. */
const MAX_ANSWER = 1 << 22
/** s without a POST after which a connection is closed. Servers wait longer: closing first, they would lose a POST. */
const IDLE_TIMEOUT = 3

export class Target {
  /** Addresses of the host, all of one family. @type {Promise<import('node:dns').LookupAddress[]> | null} */
  #addresses = null
  /** Connections go to the addresses in turn. */
  #nextAddress = 0

  /**
   * @param {import('./dialer.js').Dialer} dialer
   * @param {string} url http:, https:, ws: or wss:, with an optional path prefix
   * @param {Sources} [sources] none: the kernel's choice
   * @throws {Error} an invalid URL
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
    /** Event of a socket that is connected. */
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

  /**
   * @param {string} start method and path of the request, without the prefix @param {string} headers lines with CRLF
   */
  head(start, headers) {
    return `${start.replace(' ', ` ${this.prefix}`)} HTTP/1.1\r\nHost: ${this.host}\r\n${headers}\r\n`
  }

  /** @param {string} path @param {string} body JSON @param {string} [moreHeaders] lines with CRLF */
  post(path, body, moreHeaders = '') {
    const length = Buffer.byteLength(body)
    const headers = `Content-Type: application/json\r\nContent-Length: ${length}\r\n${moreHeaders}`
    return Buffer.from(this.head(`POST ${path}`, headers) + body)
  }

  /**
   * @param {number} pair index of the source address and port
   * @returns {import('./wire.js').WireSocket} that is connecting
   */
  connect(pair) {
    const options = { ...this.options, ...this.sources.at(pair) }
    return /** @type {any} */ (this.secure ? tlsConnect(options) : new Socket(options).connect(options))
  }
}

/**
 * Sends POSTs. `request` makes the next one, null: none any more; `posted` gets the response: `status` 0 if the POST
 * failed, `text` the body as latin1.
 * @typedef {{request: () => Buffer | null, posted: (status: number, reason: string, text: string) => void}} Sender
 */

/** Sends the POSTs of all connections to a target over a few kept connections. */
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

  /** @param {Sender} sender its `request` is called when its turn comes */
  push(sender) {
    this.queue.push(sender)
    for (const wire of this.wires) if (wire.state === OPEN && !wire.sender) return wire.next()
    this.openWire()
  }

  /** Opens a connection for waiting POSTs, within the limit. */
  openWire() {
    if (this.queue.length > 0 && this.wires.size < MAX_WIRES) new PostWire(this.#target, this).open()
  }
}

/** A kept connection for POSTs, one at a time. */
class PostWire extends HttpWire {
  /** Owner of the POST under way. @type {Sender | undefined} */
  sender
  answer = ''

  /** @param {Target} target @param {Posts} posts */
  constructor(target, posts) {
    super(target)
    this.posts = posts
    posts.wires.add(this)
  }

  /** Sends the next waiting POST, or waits for one. */
  next() {
    let request
    while (!request && (this.sender = this.posts.queue.shift())) request = this.sender.request()
    this.dialer.watch(this, request ? ANSWER_TIMEOUT : IDLE_TIMEOUT)
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
    // The sender may push its next POST, which takes this wire.
    sender?.posted(status, `HTTP ${status}`, answer)
    if (this.state === OPEN && !this.sender) this.next()
  }

  /** @override */
  gone() {
    const { posts } = this
    posts.wires.delete(this)
    // A wire that never connected has no sender. One waiting POST fails with it: else the queue would never end.
    if (this.status === 0) this.sender ??= posts.queue.shift()
    this.sender?.posted(0, this.reason, '')
    posts.openWire()
  }
}
