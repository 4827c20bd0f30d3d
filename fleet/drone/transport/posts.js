// POSTs of all connections to a target: over a few connections of their own that are kept open while there is something to do.

import { HttpWire } from './http.js'
import { OPEN } from './wire.js'

/** Connections at once, at most. */
const MAX_WIRES = 64
/** s without a POST after which a connection is closed: before servers do, in whose closing a POST would be lost. */
const IDLE = 3
/** s that an answer may take. */
const PATIENCE = 20

/**
 * Who has something to send.
 * @typedef {{request: () => Buffer | null, posted: (status: number, reason: string) => void}} Sender
 */

export class Posts {
  /** @type {Sender[]} each once at most */
  #queue = []
  /** @type {PostWire[]} */
  #idle = []
  #wires = 0
  #target

  /** @param {import('./target.js').Target} target */
  constructor(target) {
    this.#target = target
  }

  /** @param {Sender} sender whose `request` is asked for when it is its turn */
  push(sender) {
    const wire = this.#idle.pop()
    if (wire) wire.post(sender) || this.#idle.push(wire)
    else if (this.#wires === MAX_WIRES) this.#queue.push(sender)
    else {
      this.#wires++
      new PostWire(this.#target, this, sender).open()
    }
  }

  /** @param {PostWire} wire has nothing to do */
  free(wire) {
    for (let sender = this.#queue.shift(); sender; sender = this.#queue.shift()) {
      if (wire.post(sender)) return
    }
    this.#idle.push(wire)
  }

  /** @param {PostWire} wire takes no more */
  drop(wire) {
    const at = this.#idle.indexOf(wire)
    if (at >= 0) this.#idle.splice(at, 1)
  }

  /** @param {PostWire} wire */
  gone(wire) {
    this.#wires--
    this.drop(wire)
    const sender = this.#queue.shift()
    if (sender) this.push(sender)
  }
}

class PostWire extends HttpWire {
  /** @param {import('./target.js').Target} target @param {Posts} posts @param {Sender} sender */
  constructor(target, posts, sender) {
    super(target)
    this.posts = posts
    /** @type {Sender | null} whose POST is under way */
    this.sender = sender
    target.dialer.watch(this, PATIENCE)
  }

  /** @param {Sender} sender @returns {boolean} false: it has nothing to send any more */
  post(sender) {
    const request = sender.request()
    if (request === null) return false
    this.sender = sender
    this.target.dialer.watch(this, PATIENCE)
    this.write(request)
    return true
  }

  /** @override */
  opened() {
    const { sender } = this
    this.state = OPEN
    this.sender = null
    if (!sender || !this.post(sender)) this.#free()
  }

  /** @override @param {Parameters<HttpWire['end']>} args */
  end(...args) {
    this.posts.drop(this)
    super.end(...args)
  }

  #free() {
    this.target.dialer.watch(this, IDLE)
    this.posts.free(this)
  }

  /** @override */
  answered() {
    // An answer that nobody asked for.
    if (this.sender === null) this.end('unasked answer')
  }

  /** @override */
  done() {
    const { sender, status } = this
    this.sender = null
    sender?.posted(status, '')
    if (this.kept) this.#free()
    else this.end('closed')
  }

  /** @override */
  gone() {
    const { sender } = this
    this.sender = null
    this.target.dialer.unwatch(this)
    this.posts.gone(this)
    sender?.posted(0, this.reason || 'closed by target')
  }
}
