// POSTs of all connections to a target: over a few connections of their own that are kept open while there is something to do.

import { HttpWire } from './http.js'
import { OPEN, PATIENCE } from './wire.js'

/** Connections at once, at most. */
const MAX_WIRES = 64
/** Bytes of an answer: a reply to each command of a batch. */
const MAX_ANSWER = 1 << 22
/** s without a POST after which a connection is closed: before servers do, in whose closing a POST would be lost. */
const IDLE = 3

/**
 * Who has something to send. `text`: of the answer, a character for each byte.
 * @typedef {{request: () => Buffer | null, posted: (status: number, reason: string, text: string) => void}} Sender
 */

export class Posts {
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
