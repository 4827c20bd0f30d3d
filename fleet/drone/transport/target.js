// One of the servers that connections go to: its address, how a socket to it is made, and what is shared by its connections.

import { lookup } from 'node:dns/promises'
import { isIP, Socket } from 'node:net'
import { createSecureContext, connect as tlsConnect } from 'node:tls'
import { Posts } from './posts.js'
import { onRead } from './wire.js'

export class Target {
  /** @type {string[]} of the host, all of one family; none: not known yet */
  addresses = []
  /** @type {Promise<void> | null} */
  #looking = null
  #turn = 0

  /**
   * @param {import('./dialer.js').Dialer} dialer
   * @param {string} url http:, https:, ws: or wss:, with a prefix of the paths if there is one
   * @param {import('./addresses.js').Sources | null} sources
   * @param {boolean} insecure any certificate will do
   * @throws {Error} if it is none
   */
  constructor(dialer, url, sources, insecure) {
    const parsed = URL.canParse(url) ? new URL(url) : null
    const scheme = parsed?.protocol.match(/^(?:http|ws)(s?):$/)
    if (!parsed || !scheme) throw new Error(`target "${url}" is no URL like http://127.0.0.1:8000`)
    this.dialer = dialer
    this.url = url
    this.secure = scheme[1] !== ''
    this.name = parsed.hostname.replace(/^\[(.*)\]$/, '$1')
    this.port = Number(parsed.port) || (this.secure ? 443 : 80)
    this.sources = sources
    this.posts = new Posts(this)
    /** The event that tells that a socket is open. */
    this.opened = this.secure ? 'secureConnect' : 'connect'
    if (isIP(this.name)) this.addresses.push(this.name)
    this.prefix = parsed.pathname.replace(/\/+$/, '')
    this.host = parsed.host
    /** @type {any} */
    this.options = {
      port: this.port,
      noDelay: true,
      autoSelectFamily: false,
      onread: { buffer: dialer.buffer, callback: onRead },
      ...(this.secure && {
        secureContext: createSecureContext(),
        rejectUnauthorized: !insecure,
        servername: isIP(this.name) ? '' : this.name,
        ALPNProtocols: ['http/1.1'],
      }),
    }
  }

  /** @param {string[]} allow `host` or `host:port` */
  allowedBy(allow) {
    const { name, port } = this
    return allow
      .map(entry => entry.toLowerCase())
      .some(entry => [name, `[${name}]`, `${name}:${port}`, `[${name}]:${port}`].includes(entry))
  }

  /**
   * @param {string} start method and path of the request, behind the prefix
   * @param {string} [headers] lines, each with its end
   */
  head(start, headers = '') {
    return `${start.replace(' ', ` ${this.prefix}`)} HTTP/1.1\r\nHost: ${this.host}\r\n${headers}\r\n`
  }

  /** @param {string} path @param {string} body */
  post(path, body) {
    const length = Buffer.byteLength(body)
    const headers = `Content-Type: application/json\r\nContent-Length: ${length}\r\n`
    return Buffer.from(this.head(`POST ${path}`, headers) + body)
  }

  /**
   * @param {number} pair
   * @param {number} tries
   * @returns {import('./wire.js').WireSocket} that is connecting
   */
  connect(pair, tries) {
    const { addresses, sources, options } = this
    // A name may have several addresses, which take turns.
    options.host = addresses[(tries === 0 ? this.#turn++ : this.#turn) % addresses.length]
    options.localAddress = sources?.address(pair)
    options.localPort = sources?.port(pair)
    return /** @type {any} */ (this.secure ? tlsConnect(options) : new Socket(options).connect(options))
  }

  /**
   * Opens the wire when the name's addresses are known; they are looked up once.
   * @param {import('./wire.js').Wire} wire
   */
  resolve(wire) {
    this.#looking ??= this.#look()
    this.#looking.then(
      () => wire.open(),
      error => wire.end(error.code ?? error.message),
    )
  }

  async #look() {
    try {
      const found = await lookup(this.name, { all: true, verbatim: false, family: this.sources?.family ?? 0 })
      // localhost has two, and many servers listen on the first one only.
      this.addresses = found.filter(({ family }) => family === found[0].family).map(({ address }) => address)
    } finally {
      this.#looking = null
    }
  }
}
