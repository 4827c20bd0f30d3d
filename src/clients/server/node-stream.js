import { withPiece } from './chunk-maker.js'

/** @import { Socket } from 'node:net' */
/** @import { ChunkMaker, Pending } from './chunk-maker.js' */
/** @import { StreamRoute } from './contract.js' */

const CLOSE_TIMEOUT = 5000

export class NodeStream {
  /** @type {any} */
  session = null
  #res
  #socket
  #host
  #route
  /** Written in this turn. @type {Pending} */
  #pending = null
  #held = false
  /** Bytes of a message written when nothing was unread: long replies are no backlog. */
  #alone = 0
  #over = false
  #closed = false
  /** @type {NodeJS.Timeout | undefined} */
  #closeTimer

  /**
   * @param {import('node:http').ServerResponse} res @param {Socket} socket
   * @param {StreamRoute} route @param {import('./node-exchange.js').Host} host
   */
  constructor(res, socket, route, host) {
    this.#res = res
    this.#socket = socket
    this.#route = route
    this.#host = host
    res.once('close', () => this.#close())
    // Clients may disconnect during a write; `close` follows.
    res.on('error', () => {})
    this.#hold()
  }

  get remoteAddress() {
    return addressOf(this.#socket)
  }

  /** @param {string | Uint8Array} data */
  write(data) {
    if (this.#over || data.length === 0) return
    this.#pending = withPiece(this.#pending, data)
    this.#hold()
  }

  /** @param {ChunkMaker} chunks */
  release(chunks) {
    this.#held = false
    this.flush(chunks)
  }

  /** @param {ChunkMaker} chunks */
  flush(chunks) {
    if (this.#over) return
    const pending = this.#pending
    this.#pending = null
    const idle = this.unread === 0
    if (idle) this.#alone = 0
    if (pending === null) this.#res.flushHeaders()
    else this.#res.write(chunks.make(pending))
    const { unread } = this
    if (unread === 0) return
    this.#host.slow.add(this)
    const { maxBuffered } = this.#route
    if (unread <= maxBuffered) return
    if (idle && pending !== null)
      this.#alone = Buffer.byteLength(Array.isArray(pending) ? pending[0] : pending)
    if (unread > maxBuffered + this.#alone) this.#route.overflow(this)
  }

  get unread() {
    return this.#closed ? 0 : this.#res.writableLength
  }

  /** @param {string | Uint8Array} data */
  end(data) {
    if (this.#over) return
    this.#over = true
    this.#closeTimer = setTimeout(() => this.#socket.destroy(), CLOSE_TIMEOUT)
    this.#closeTimer.unref()
    this.#res.end(this.#host.chunks.make(withPiece(this.#pending, data)))
    this.#pending = null
  }

  cut() {
    if (this.#closed) return
    this.#over = true
    this.#pending = null
    this.#socket.destroy()
  }

  #hold() {
    if (this.#held) return
    this.#held = true
    this.#host.hold(this)
  }

  #close() {
    if (this.#closed) return
    this.#closed = true
    this.#over = true
    this.#pending = null
    clearTimeout(this.#closeTimer)
    this.#route.close(this)
  }
}

/** @param {Socket} socket */
export function addressOf({ remoteAddress = '' }) {
  // An IPv4 client on a dual-stack socket.
  return remoteAddress.startsWith('::ffff:') ? remoteAddress.slice(7) : remoteAddress
}
