import { SlicedWork } from '../../base/slices.js'
import { Backlog, retryAfter, UpgradeRefusal } from './contract.js'
import { chooseSubprotocol, DEFLATE_OFFER, offersDeflate } from './handshake.js'
import { asBytes, closeReason, keyBytes, topicBytes, valueBytes } from './text.js'
import { addressOf, UwsExchange } from './uws-exchange.js'

/** @import { HttpRequest, HttpResponse, TemplatedApp, us_socket_context_t } from 'uWebSockets.js' */
/** @import { WebSocketRoute } from './contract.js' */

/**
 * @typedef {object} Group the open sockets of one route. A socket stores its index in `open`, for removal in one step
 * @property {WebSocketRoute} route
 * @property {number} compressFrom messages of this many bytes are compressed where negotiated; Infinity: none
 * @property {any[]} open
 */

// A socket's `place`: its index in its group while it is open, then one of these.
const CLOSING = -1
const CLOSED = -2

/** Connections that a sweep visits between two looks at the clock, some µs. */
const SWEPT_AT_ONCE = 32
/** Connections that were sent something while corked, up to which a sweep looks at these alone. */
const MAX_CORKED = 1024
/** A message up to so many times as long as allowed is read, to close with 1009. */
const READ_TIMES = 4
/** Reason of the library for the end of a connection that has announced a longer message. */
const TOO_LONG = 'Received too big message'
const CLOSE_TIMEOUT = 5000
/** With 0, the timeout that `end()` arms closes the descriptor at the library's next 4 s tick. */
const NO_IDLE_TIMEOUT = 0

const NOTHING = Buffer.alloc(0)
const DEFLATE = Buffer.from(DEFLATE_OFFER)
const [PROTOCOL, EXTENSIONS, KEY] = ['protocol', 'extensions', 'key'].map(name =>
  Buffer.from(`sec-websocket-${name}`),
)

/** Empty: `upgrade()` copies user data onto the socket, property by property. */
const NO_USER_DATA = Object.freeze({})

/**
 * The WebSockets of one worker on uWebSockets.js. Topics are in C++: a publish does not visit JavaScript for each
 * connection, so sweeps over the open sockets, in slices, find slow readers.
 */
export class UwsWebSockets {
  #uws
  #app
  #host
  #pendingCloses = new PendingCloses(CLOSE_TIMEOUT)
  /** @type {Group[]} */
  #groups = []
  /** Bytes published since the last sweep: an upper bound for the growth of each backlog. */
  #unswept = 0
  #sweepAbove = Infinity
  /** Minimum of the groups. */
  #compressFrom = Infinity
  #sweep = new SlicedWork(
    () => this.#sweepNext(),
    () => this.#swept(),
  )
  /** Where the sweep is: index of a group, and the number of its connections that are left. */
  #sweptGroup = 0
  #unvisited = 0
  /** Found by the sweep so far. */
  #found = new Backlog()
  /** Result of the last sweep. */
  #backlog = new Backlog()
  /** @type {any[]} connections with more than maxBuffered unread after a `send` of this turn of the event loop */
  #overfull = []
  /** Since the timer's last sweep, something was sent whose write may be stuck. */
  #dirty = false
  /** @type {any[]} connections that were sent something while corked since then, unless `#dirty` says it */
  #sentCorked = []
  /** Within a callback that the library corks: `send` reports success for data that leaves later. */
  #corked = false
  /** Result of `upgrade` for `open`, which the library calls within `res.upgrade()`. */
  #accepted = /** @type {any} */ (null)

  /**
   * @param {typeof import('uWebSockets.js')} uws
   * @param {TemplatedApp} app
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
      // One compressor and decompressor for all. The library compresses for each receiver, at its own level.
      compression: !route.compression ? 0 : this.#uws.SHARED_COMPRESSOR | this.#uws.SHARED_DECOMPRESSOR,
      idleTimeout: NO_IDLE_TIMEOUT,
      sendPingsAutomatically: false,
      // The library keeps what has come of an unfinished message, up to this.
      maxPayloadLength: READ_TIMES * route.maxMessage,
      // Hard limit behind the sweeps: the client has missed a message and must not receive another.
      maxBackpressure: 2 * route.maxBuffered + 1024 * 1024,
      // A number in older releases of the library, which read `true` as 1.
      closeOnBackpressureLimit: /** @type {any} */ (true),
      upgrade: (res, req, context) => this.#upgrade(path, route, res, req, context),
      open: ws => this.#open(group, ws),
      message: (ws, data, binary) => this.#message(route, ws, data, binary),
      drain: ws => this.#pendingCloses.drained(ws),
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
    // Later: the caller may be in the middle of its work.
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
    // In slices that begin later: the data is not in the sockets yet, and the caller may be in the middle of its work.
    if (this.#unswept > this.#sweepAbove) this.#startSweep()
  }

  /** @param {any} ws @param {() => void} work */
  cork(ws, work) {
    if (ws.place < 0) {
      work()
      return
    }
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
    if (ws.getBufferedAmount() === 0) {
      ws.end(code, asBytes(closeReason(reason)))
      return
    }
    for (const topic of ws.getTopics()) ws.unsubscribe(topicBytes(topic))
    this.#pendingCloses.add(ws, code, reason)
  }

  /** @param {any} ws */
  terminate(ws) {
    if (ws.place !== CLOSED) ws.close()
  }

  /** Checks slow readers and pending closes; called about once a second. */
  sweep() {
    this.#pendingCloses.sweep()
    const sent = this.#sentCorked
    this.#sentCorked = []
    this.#dirty ||= sent.some(ws => this.buffered(ws) > 0)
    // With a backlog, the clients may have read since.
    if (!this.#dirty && this.#backlog.bytes === 0) return
    this.#startSweep()
  }

  /** @returns {{bytes: number, largest: number}} */
  backlog() {
    return this.#backlog
  }

  /**
   * @param {string} path @param {WebSocketRoute} route
   * @param {HttpResponse} res @param {HttpRequest} req
   * @param {us_socket_context_t} context
   */
  #upgrade(path, route, res, req, context) {
    const exchange = new UwsExchange(res, req, 'GET', path, this.#host)
    const protocol = chooseSubprotocol(req.getHeader(PROTOCOL), route.protocols)
    let accepted
    try {
      accepted = route.upgrade(exchange, protocol)
    } catch (error) {
      exchange.fail(error)
      return
    }
    if (typeof accepted === 'number') {
      exchange.reply(accepted, accepted === 503 ? retryAfter() : null, '')
      return
    }
    if (accepted instanceof UpgradeRefusal) {
      exchange.reply(accepted.status, accepted.headers, accepted.body)
      return
    }
    this.#accepted = accepted
    const deflate = route.compression && offersDeflate(req.getHeader(EXTENSIONS))
    // Not `asBytes`, which `open` uses, too.
    const key = keyBytes(req.getHeader(KEY))
    res.upgrade(NO_USER_DATA, key, valueBytes(protocol), deflate ? DEFLATE : NOTHING, context)
  }

  /** @param {Group} group @param {any} ws */
  #open(group, ws) {
    const accepted = this.#accepted
    this.#accepted = null
    // Always these three in this order: one hidden class, and they fit its first storage block.
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
    const notice = this.#pendingCloses.remove(ws)
    if (notice !== undefined) return group.route.close(ws, notice.code, notice.reason)
    const text = Buffer.from(reason).toString()
    if (code === 1006 && text === TOO_LONG) group.route.close(ws, 1009, '')
    else group.route.close(ws, code, text)
  }

  /** Removes a socket from the open ones; the last one moves to its place. @param {any} ws */
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

  /** Begins a sweep over all connections. What is published meanwhile counts for the next one. */
  #startSweep() {
    if (this.#sweep.running) return
    this.#dirty = false
    this.#unswept = 0
    this.#found = new Backlog()
    this.#sweptGroup = 0
    this.#unvisited = Infinity
    this.#sweep.start()
  }

  /**
   * Visits some connections, backwards: when one is removed, now or between two slices, the last one moves to its
   * place, which has been visited. So none is skipped; one may be visited twice.
   * @returns {boolean} false: all are visited
   */
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

/**
 * @typedef {object} CloseNotice
 * @property {number} code
 * @property {string} reason
 * @property {number} deadline ms of `performance.now()`
 */

/**
 * Connections with a backlog that wait for their close frame, until the peer has read the backlog or the time is over.
 * uWebSockets.js sends a close frame only as the last act: `end()` releases the handle, and about four seconds later
 * the library cuts the connection with its unsent data.
 */
class PendingCloses {
  /** @type {Map<any, CloseNotice>} by connection; a Map, because it is small and rarely used */
  #waiting = new Map()
  #timeout

  /** @param {number} timeout ms a peer has to read its backlog */
  constructor(timeout) {
    this.#timeout = timeout
  }

  /** @param {any} ws @param {number} code @param {string} reason */
  add(ws, code, reason) {
    this.#waiting.set(ws, { code, reason, deadline: performance.now() + this.#timeout })
  }

  /** The connection is gone. @param {any} ws @returns {CloseNotice | undefined} */
  remove(ws) {
    const notice = this.#waiting.get(ws)
    if (notice !== undefined) this.#waiting.delete(ws)
    return notice
  }

  /** The peer has read something. @param {any} ws */
  drained(ws) {
    const notice = this.#waiting.get(ws)
    if (notice !== undefined && ws.getBufferedAmount() === 0)
      ws.end(notice.code, asBytes(closeReason(notice.reason)))
  }

  /** Cuts connections after their deadline. */
  sweep() {
    if (this.#waiting.size === 0) return
    const now = performance.now()
    for (const [ws, notice] of this.#waiting) if (notice.deadline <= now) ws.close()
  }
}
