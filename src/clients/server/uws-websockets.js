import { SlicedWork } from '../../base/slices.js'
import { Backlog, retryAfter, UpgradeRefusal } from './contract.js'
import { chooseSubprotocol, DEFLATE_OFFER, offersDeflate } from './handshake.js'
import { asBytes, closeReason, keyBytes, topicBytes, valueBytes } from './text.js'
import { addressOf, UwsExchange } from './uws-exchange.js'

/** @import { HttpRequest, HttpResponse, TemplatedApp, us_socket_context_t } from 'uWebSockets.js' */
/** @import { WebSocketRoute } from './contract.js' */

/**
 * @typedef {object} Group a route's open sockets; each stores its index in `open`
 * @property {WebSocketRoute} route
 * @property {number} compressFrom bytes; Infinity: never compress
 * @property {any[]} open
 */

// A socket's `place`: index in its group while open, then one of these.
const CLOSING = -1
const CLOSED = -2

/** Connections visited by a sweep between two clock checks, some µs. */
const SWEPT_AT_ONCE = 32
/** Up to this number of corked connections, a sweep visits only these. */
const MAX_CORKED = 1024
/** Messages up to this multiple of the limit are read, to close with 1009. */
const READ_TIMES = 4
/** The library's close reason for longer messages. */
const TOO_LONG = 'Received too big message'
const CLOSE_TIMEOUT = 5000
/** With 0, the timeout armed by `end()` closes the descriptor at the library's next 4 s tick. */
const NO_IDLE_TIMEOUT = 0

const NOTHING = Buffer.alloc(0)
const DEFLATE = Buffer.from(DEFLATE_OFFER)
const [PROTOCOL, EXTENSIONS, KEY] = ['protocol', 'extensions', 'key'].map(name =>
  Buffer.from(`sec-websocket-${name}`),
)

/** `upgrade()` copies user data to the socket, property by property. */
const NO_USER_DATA = Object.freeze({})

/** WebSockets of one worker. A publish runs in C++ without JavaScript, so sweeps detect slow readers. */
export class UwsWebSockets {
  #uws
  #app
  #host
  /**
   * Close frames delayed until the peer has read its backlog, or until `deadline` (ms of `performance.now()`): `end()`
   * releases the handle, and the library cuts connections with unsent data about 4 s later.
   * @type {Map<any, {code: number, reason: string, deadline: number}>}
   */
  #closing = new Map()
  /** @type {Group[]} */
  #groups = []
  /** Bytes published since the last sweep: an upper bound of any backlog's growth. */
  #unswept = 0
  #sweepAbove = Infinity
  #compressFrom = Infinity
  #sweep = new SlicedWork(
    () => this.#sweepNext(),
    () => this.#swept(),
  )
  /** Position of the sweep: group index, and connections left in it. */
  #sweptGroup = 0
  #unvisited = 0
  #found = new Backlog()
  #backlog = new Backlog()
  /** Above maxBuffered after a `send` of this turn. @type {any[]} */
  #overfull = []
  /** A write since the timer's last sweep may be stuck. */
  #dirty = false
  /** Connections with corked messages since then, unless `#dirty`. @type {any[]} */
  #sentCorked = []
  /** In a cork, `send` reports success before data is written. */
  #corked = false
  /** Result of `upgrade` for `open`, called within `res.upgrade()`. */
  #accepted = /** @type {any} */ (null)

  /**
   * @param {typeof import('uWebSockets.js')} uws @param {TemplatedApp} app
   * @param {import('./uws-exchange.js').Host} host
   */
  constructor(uws, app, host) {
    this.#uws = uws
    this.#app = app
    this.#host = host
  }

  /** @param {string} path @param {WebSocketRoute} route */
  websocket(path, route) {
    /** @type {Group} */
    const group = { route, compressFrom: route.compression?.minSize ?? Infinity, open: [] }
    this.#groups.push(group)
    this.#compressFrom = Math.min(this.#compressFrom, group.compressFrom)
    this.#sweepAbove = Math.min(this.#sweepAbove, route.maxBuffered / 2)
    this.#app.ws(asBytes(path), {
      compression: !route.compression ? 0 : this.#uws.SHARED_COMPRESSOR | this.#uws.SHARED_DECOMPRESSOR,
      idleTimeout: NO_IDLE_TIMEOUT,
      sendPingsAutomatically: false,
      // Also limits unfinished messages.
      maxPayloadLength: READ_TIMES * route.maxMessage,
      // Clients must receive nothing after a missed message.
      maxBackpressure: 2 * route.maxBuffered + 1024 * 1024,
      // Older releases read `true` as 1.
      closeOnBackpressureLimit: /** @type {any} */ (true),
      upgrade: (res, req, context) => this.#upgrade(path, route, res, req, context),
      open: ws => this.#open(group, ws),
      message: (ws, data, binary) => this.#message(route, ws, data, binary),
      drain: ws => this.#drained(ws),
      pong: ws => this.#pong(route, ws),
      close: (ws, code, reason) => this.#closed(group, ws, code, reason),
    })
  }

  /** @param {any} ws @param {string | Uint8Array} data @param {boolean} binary */
  send(ws, data, binary) {
    if (ws.place < 0) return
    if (this.#corked) this.#leavesLater(ws)
    const compress = data.length >= ws.group.compressFrom
    if (ws.send(asBytes(data), binary, compress) === 1) return
    this.#dirty = true
    if (ws.getBufferedAmount() <= ws.group.route.maxBuffered) return
    // Deferred: the caller may still be working.
    if (this.#overfull.push(ws) === 1) setImmediate(() => this.#closeOverfull())
  }

  /** @param {any} ws */
  #leavesLater(ws) {
    const sent = this.#sentCorked
    if (!this.#dirty && sent.at(-1) !== ws && sent.push(ws) === MAX_CORKED) this.#dirty = true
  }

  /** @param {any} ws */
  ping(ws) {
    if (ws.place >= 0) ws.ping()
  }

  /** @param {any} ws @param {string} topic */
  subscribe(ws, topic) {
    if (ws.place >= 0) ws.subscribe(topicBytes(topic))
  }

  /** @param {any} ws @param {string} topic */
  unsubscribe(ws, topic) {
    if (ws.place >= 0) ws.unsubscribe(topicBytes(topic))
  }

  /** @param {string} topic @param {string | Uint8Array} data @param {boolean} binary */
  publish(topic, data, binary) {
    this.#app.publish(topicBytes(topic), asBytes(data), binary, data.length >= this.#compressFrom)
    this.#dirty = true
    this.#unswept += data.length
    // Deferred: the sockets do not have the data yet, and the caller may still be working.
    if (this.#unswept > this.#sweepAbove) this.#startSweep()
  }

  /** @param {any} ws @param {() => void} work */
  cork(ws, work) {
    if (ws.place < 0) return work()
    const before = this.#corked
    this.#corked = true
    ws.cork(work)
    this.#corked = before
  }

  /** @param {any} ws */
  buffered(ws) {
    return ws.place === CLOSED ? 0 : ws.getBufferedAmount()
  }

  /** @param {any} ws */
  remoteAddress(ws) {
    return ws.place === CLOSED ? '' : addressOf(ws)
  }

  /** @param {any} ws @param {number} code @param {string} reason */
  close(ws, code, reason) {
    if (ws.place < 0) return
    this.#remove(ws)
    if (ws.getBufferedAmount() === 0) return ws.end(code, asBytes(closeReason(reason)))
    for (const topic of ws.getTopics()) ws.unsubscribe(topicBytes(topic))
    this.#closing.set(ws, { code, reason, deadline: performance.now() + CLOSE_TIMEOUT })
  }

  /** The peer has read data. @param {any} ws */
  #drained(ws) {
    const notice = this.#closing.get(ws)
    if (notice !== undefined && ws.getBufferedAmount() === 0)
      ws.end(notice.code, asBytes(closeReason(notice.reason)))
  }

  /** @param {any} ws */
  terminate(ws) {
    if (ws.place !== CLOSED) ws.close()
  }

  /** Checks slow readers and pending closes, once a second. */
  sweep() {
    const now = performance.now()
    for (const [ws, { deadline }] of this.#closing) if (deadline <= now) ws.close()
    const sent = this.#sentCorked
    this.#sentCorked = []
    this.#dirty ||= sent.some(ws => this.buffered(ws) > 0)
    // A backlog may have shrunk.
    if (!this.#dirty && this.#backlog.bytes === 0) return
    this.#startSweep()
  }

  backlog() {
    return this.#backlog
  }

  /**
   * @param {string} path @param {WebSocketRoute} route @param {HttpResponse} res @param {HttpRequest} req
   * @param {us_socket_context_t} context
   */
  #upgrade(path, route, res, req, context) {
    const exchange = new UwsExchange(res, req, 'GET', path, this.#host)
    const protocol = chooseSubprotocol(req.getHeader(PROTOCOL), route.protocols)
    let accepted
    try {
      accepted = route.upgrade(exchange, protocol)
    } catch (error) {
      return exchange.fail(error)
    }
    if (typeof accepted === 'number')
      return exchange.reply(accepted, accepted === 503 ? retryAfter() : null, '')
    if (accepted instanceof UpgradeRefusal)
      return exchange.reply(accepted.status, accepted.headers, accepted.body)
    this.#accepted = accepted
    const deflate = route.compression && offersDeflate(req.getHeader(EXTENSIONS))
    // Not `asBytes`, which `open` also uses.
    const key = keyBytes(req.getHeader(KEY))
    res.upgrade(NO_USER_DATA, key, valueBytes(protocol), deflate ? DEFLATE : NOTHING, context)
  }

  /** @param {Group} group @param {any} ws */
  #open(group, ws) {
    const accepted = this.#accepted
    this.#accepted = null
    // This order keeps one hidden class and fits its first storage block.
    ws.session = null
    ws.group = group
    ws.place = group.open.push(ws) - 1
    group.route.open(ws, accepted)
  }

  /** @param {WebSocketRoute} route @param {any} ws @param {ArrayBuffer} data @param {boolean} binary */
  #message(route, ws, data, binary) {
    if (ws.place < 0) return
    this.#corked = true
    if (data.byteLength > route.maxMessage) this.close(ws, 1009, '')
    else route.message(ws, Buffer.from(data), binary)
    this.#corked = false
  }

  /** @param {WebSocketRoute} route @param {any} ws */
  #pong(route, ws) {
    if (ws.place >= 0) route.pong(ws)
  }

  /** @param {Group} group @param {any} ws @param {number} code @param {ArrayBuffer} reason */
  #closed(group, ws, code, reason) {
    if (ws.place >= 0) this.#remove(ws)
    ws.place = CLOSED
    const notice = this.#closing.get(ws)
    if (notice !== undefined) {
      this.#closing.delete(ws)
      return group.route.close(ws, notice.code, notice.reason)
    }
    const text = Buffer.from(reason).toString()
    if (code === 1006 && text === TOO_LONG) group.route.close(ws, 1009, '')
    else group.route.close(ws, code, text)
  }

  /** Moves the last open socket to its place. @param {any} ws */
  #remove(ws) {
    const { open } = ws.group
    const last = open.pop()
    if (last !== ws) {
      open[ws.place] = last
      last.place = ws.place
    }
    ws.place = CLOSING
  }

  #closeOverfull() {
    const overfull = this.#overfull
    this.#overfull = []
    for (const ws of overfull) {
      if (ws.place >= 0 && ws.getBufferedAmount() > ws.group.route.maxBuffered) ws.group.route.overflow(ws)
    }
  }

  /** Publications during a sweep count for the next one. */
  #startSweep() {
    if (this.#sweep.running) return
    this.#dirty = false
    this.#unswept = 0
    this.#found = new Backlog()
    this.#sweptGroup = 0
    this.#unvisited = Infinity
    this.#sweep.start()
  }

  /** Visits some connections, backwards: connections moved to a removed place are already visited. */
  #sweepNext() {
    const group = this.#groups[this.#sweptGroup]
    if (group === undefined) return false
    const { route, open } = group
    let i = Math.min(this.#unvisited, open.length)
    for (const stop = Math.max(0, i - SWEPT_AT_ONCE); i > stop; ) {
      const ws = open[--i]
      const unread = ws.getBufferedAmount()
      if (unread === 0) continue
      this.#found.add(unread)
      if (unread > route.maxBuffered) route.overflow(ws)
      i = Math.min(i, open.length)
    }
    this.#unvisited = i
    if (i === 0) {
      this.#sweptGroup++
      this.#unvisited = Infinity
    }
    return true
  }

  #swept() {
    this.#backlog = this.#found
    if (this.#unswept > this.#sweepAbove) this.#startSweep()
  }
}
