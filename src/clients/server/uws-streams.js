import { ChunkMaker, withPiece } from './chunk-maker.js'
import { asBytes } from './text.js'
import { addressOf, writeHead } from './uws-exchange.js'

/** @import { HttpResponse } from 'uWebSockets.js' */
/** @import { Pending } from './chunk-maker.js' */
/** @import { Backlog, StreamRoute } from './contract.js' */
/** @import { Head } from './text.js' */

/**
 * Properties added to the library's response.
 * @typedef {object} StreamState
 * @property {any} session
 * @property {{route: StreamRoute, streams: UwsStreams}} group
 * @property {number} state
 * @property {Pending} pending data written in this turn; not null: to be flushed
 * @property {StreamQueue | null} queue while the client has a backlog
 * @property {Head | null} head until it is sent
 *
 * @typedef {HttpResponse & StreamState} UwsStream
 */

const OPEN = 0
/** `end` was called; earlier data may be unsent. */
const ENDING = 1
/** The handle is invalid, or about to be. */
const OVER = 2

const CLOSE_TIMEOUT = 5000
/** After a failed write, the library cuts the connection with a timeout of 10 s. */
const REARM_INTERVAL = 4000
const CHUNK_SIZE = 32768
/** Maximum bytes in a possibly blocked library buffer, except for a longer message. */
const MAX_STUCK = 65536

class StreamQueue {
  /** @type {Uint8Array[]} */
  pieces = []
  waiting = 0
  /** Bytes written since the library's buffer was empty: an upper bound. */
  stuck
  /** A write has failed; no `onWritable` since. */
  blocked = true
  /** The client has read, but the next piece exceeds MAX_STUCK. */
  skipped = false
  /** Time of the cut, ms of `performance.now()`; finite once ending. */
  deadline = Infinity

  /** @param {number} stuck */
  constructor(stuck) {
    this.stuck = stuck
  }

  /** @param {Uint8Array} piece */
  add(piece) {
    if (piece.length === 0) return
    this.pieces.push(piece)
    this.waiting += piece.length
  }

  /** @returns {Uint8Array} the first message; a whole chunk if the library's buffer is empty */
  nextChunk() {
    let count = 1
    if (this.stuck === 0) {
      let size = this.pieces[0].length
      while (count < this.pieces.length && (size += this.pieces[count].length) <= CHUNK_SIZE) count++
    }
    const chunk =
      count === 1
        ? /** @type {Uint8Array} */ (this.pieces.shift())
        : Buffer.concat(this.pieces.splice(0, count))
    this.waiting -= chunk.length
    return chunk
  }
}

/**
 * Streams of one worker on uWebSockets.js.
 *
 * The library does not report the fill level of a response's buffer, but a write within a cork returns whether EARLIER
 * data is still in it. So the first message behind stuck data detects the backlog; later ones wait in a queue with
 * known size and messages shared with other streams. With an `onWritable` handler, the library drains its buffer only
 * at the end of a cork, even an empty one; without a handler, it cuts the client 10 s later.
 */
export class UwsStreams {
  /** @type {Map<StreamRoute, {route: StreamRoute, streams: UwsStreams}>} */
  #groups = new Map()
  /** With pending data. @type {UwsStream[]} */
  #dirty = []
  /** Cut, with pending `close` calls. @type {UwsStream[]} */
  #cut = []
  /** With a queue. @type {Set<UwsStream>} */
  #slow = new Set()
  #scheduled = false
  #flushSoon = () => this.#flush()
  #chunks = new ChunkMaker()
  #rearmAt = 0

  // Arguments and result of the shared cork callbacks.
  #target = /** @type {UwsStream} */ (/** @type {any} */ (null))
  /** @type {string | Uint8Array} */
  #chunk = ''
  #drained = true
  #writeCorked = () => {
    this.#writeHead()
    this.#drained = this.#target.write(asBytes(this.#chunk))
  }
  #endCorked = () => {
    this.#writeHead()
    this.#target.end(asBytes(this.#chunk))
  }

  /** @param {HttpResponse} res @param {Head} head @param {StreamRoute} route @returns {UwsStream} */
  begin(res, head, route) {
    let group = this.#groups.get(route)
    if (group === undefined) this.#groups.set(route, (group = { route, streams: this }))
    const stream = /** @type {UwsStream} */ (res)
    stream.session = null
    stream.group = group
    stream.state = OPEN
    stream.pending = null
    stream.queue = null
    stream.head = head
    // One bound function for both uses less memory than closures.
    const signal = onSignal.bind(stream)
    res.onAborted(/** @type {() => void} */ (signal))
    res.onWritable(signal)
    return stream
  }

  /** @param {UwsStream} stream */
  remoteAddress(stream) {
    return stream.state === OVER ? '' : addressOf(stream)
  }

  /** @param {UwsStream} stream @param {string | Uint8Array} data */
  write(stream, data) {
    if (stream.state === OPEN && data.length > 0) this.#add(stream, data)
  }

  /** @param {UwsStream} stream */
  flush(stream) {
    const { pending } = stream
    if (pending === null) return
    stream.pending = null
    this.#send(stream, pending)
  }

  /** @param {UwsStream} stream @param {string | Uint8Array} data */
  end(stream, data) {
    if (stream.state !== OPEN) return
    stream.state = ENDING
    this.#add(stream, data)
  }

  /** @param {UwsStream} stream */
  cut(stream) {
    if (stream.state === OVER) return
    this.#release(stream)
    this.#cut.push(stream)
    this.#schedule()
    stream.close()
  }

  /** Checks the streams with a backlog; called about once a second. */
  sweep() {
    if (this.#slow.size === 0) return
    const now = performance.now()
    const rearm = now >= this.#rearmAt
    if (rearm) this.#rearmAt = now + REARM_INTERVAL
    for (const stream of this.#slow) {
      const queue = /** @type {StreamQueue} */ (stream.queue)
      if (queue.deadline <= now) stream.close()
      else if (queue.skipped) this.#feed(stream, queue, true)
      // Unless blocked, this would arm the timeout.
      else if (rearm && queue.blocked) rearmTimeout(stream)
    }
  }

  /** @param {Backlog} backlog */
  addTo(backlog) {
    for (const stream of this.#slow) if (stream.queue !== null) backlog.add(this.unread(stream))
  }

  /** @param {UwsStream} stream */
  unread({ queue }) {
    return queue === null ? 0 : queue.waiting + (queue.blocked ? queue.stuck : 0)
  }

  /** The client disconnected. @param {UwsStream} stream */
  aborted(stream) {
    if (stream.state === OVER) return
    this.#release(stream)
    stream.group.route.close(stream)
  }

  /** The client has read data. @param {UwsStream} stream */
  writable(stream) {
    const { queue } = stream
    if (queue !== null) queue.blocked = false
    if (queue === null || queue.pieces.length === 0) stream.cork(nothing)
    else this.#feed(stream, queue, false)
  }

  /** @param {UwsStream} stream @param {string | Uint8Array} data */
  #add(stream, data) {
    if (stream.pending === null) {
      this.#dirty.push(stream)
      this.#schedule()
    }
    stream.pending = withPiece(stream.pending, data)
  }

  #schedule() {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(this.#flushSoon)
  }

  #flush() {
    this.#scheduled = false
    const dirty = this.#dirty
    const cut = this.#cut
    this.#dirty = []
    this.#cut = []
    for (const stream of dirty) this.flush(stream)
    this.#chunks.clear()
    for (const stream of cut) stream.group.route.close(stream)
  }

  /** @param {UwsStream} stream @param {NonNullable<Pending>} pending */
  #send(stream, pending) {
    if (stream.queue !== null) {
      this.#queue(stream, stream.queue, pending)
    } else if (Array.isArray(pending) && totalLength(pending) > CHUNK_SIZE) {
      this.#queue(stream, this.#addQueue(stream, 0), pending)
    } else if (stream.state === ENDING) {
      this.#finish(stream, this.#chunks.make(pending))
    } else {
      const chunk = this.#chunks.make(pending)
      if (!this.#write(stream, chunk)) this.#addQueue(stream, this.#chunks.bytes(chunk).length)
    }
  }

  /** @param {UwsStream} stream @param {number} stuck maximum bytes in the library's buffer */
  #addQueue(stream, stuck) {
    this.#slow.add(stream)
    return (stream.queue = new StreamQueue(stuck))
  }

  /** @param {UwsStream} stream @param {StreamQueue} queue @param {NonNullable<Pending>} pending */
  #queue(stream, queue, pending) {
    // The library does not report an empty buffer: with an empty queue, try to write.
    const idle = queue.pieces.length === 0
    if (Array.isArray(pending)) for (const piece of pending) queue.add(this.#chunks.bytes(piece))
    else queue.add(this.#chunks.bytes(pending))
    if (stream.state === ENDING) queue.deadline = performance.now() + CLOSE_TIMEOUT
    if (idle) this.#feed(stream, queue, false)
    if (stream.state === OPEN && queue.waiting > stream.group.route.maxBuffered)
      stream.group.route.overflow(stream)
  }

  /**
   * Writes queued messages until one gets stuck.
   * @param {UwsStream} stream @param {StreamQueue} queue @param {boolean} force one message even above MAX_STUCK
   */
  #feed(stream, queue, force) {
    queue.skipped = false
    while (queue.pieces.length > 0) {
      if (!force && queue.stuck > 0 && queue.stuck + queue.pieces[0].length > MAX_STUCK) {
        // An empty cork drains the buffer. If data remains, `onWritable` is called; else the sweep continues.
        queue.skipped = true
        stream.cork(nothing)
        return
      }
      force = false
      const chunk = queue.nextChunk()
      if (!this.#write(stream, chunk)) {
        queue.stuck += chunk.length
        queue.blocked = true
        return
      }
      queue.stuck = 0
    }
    if (stream.state === ENDING) {
      this.#finish(stream, '')
    } else if (queue.stuck === 0) {
      stream.queue = null
      this.#slow.delete(stream)
    }
  }

  /** @param {UwsStream} stream @param {string | Uint8Array} chunk @returns {boolean} false: data is stuck */
  #write(stream, chunk) {
    this.#target = stream
    this.#chunk = chunk
    stream.cork(this.#writeCorked)
    return this.#drained
  }

  /** @param {UwsStream} stream @param {string | Uint8Array} chunk */
  #finish(stream, chunk) {
    this.#release(stream)
    this.#target = stream
    this.#chunk = chunk
    stream.cork(this.#endCorked)
    stream.group.route.close(stream)
  }

  /** The library cannot end a head without data. */
  #writeHead() {
    const { head } = this.#target
    if (head === null) return
    this.#target.head = null
    writeHead(this.#target, head)
  }

  /** @param {UwsStream} stream */
  #release(stream) {
    stream.state = OVER
    stream.pending = null
    if (stream.queue === null) return
    stream.queue = null
    this.#slow.delete(stream)
  }
}

/** `onAborted` has no argument, `onWritable` has one. @this {UwsStream} @param {number} [offset] */
function onSignal(offset) {
  if (offset === undefined) this.group.streams.aborted(this)
  else this.group.streams.writable(this)
  return true
}

/** Restarts the library's 10 s timeout. @param {UwsStream} stream */
function rearmTimeout(stream) {
  stream.pause()
  stream.resume()
}

function nothing() {}

/** @param {(string | Uint8Array)[]} pieces */
function totalLength(pieces) {
  let length = 0
  for (const piece of pieces) length += piece.length
  return length
}
