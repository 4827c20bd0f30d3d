// long_poll: Halley's two-way long-poll (docs/long-poll.md). A poll waits; commands go beside it, in numbered POSTs.

import { field } from './http.js'
import { StreamConnection } from './stream.js'
import { OPEN } from './wire.js'

/** s that a poll may wait for something to come. Its answer may take twice as long. */
const POLL = 25
/** Polls, or POSTs, that are made again, at once, when their connection was cut. */
const MAX_REPEATS = 3

export class LongPollConnection extends StreamConnection {
  /** @param {ConstructorParameters<typeof StreamConnection>} args */
  constructor(...args) {
    super(...args)
    this.seq = 0
    this.sent = 1
    /** Commands of the POST that is not confirmed. */
    this.sending = ''
    /** Polls since the last that was answered, POSTs since the last that was confirmed. */
    this.repeats = 0
    this.resends = 0
    /** Halley-Close: these are the last messages. */
    this.over = ''
  }

  /** @override */
  opened() {
    if (this.session) this.#poll()
    else super.opened()
  }

  #poll() {
    // After a cut, whether the session is there is to be known soon.
    const wait = this.repeats > 0 ? 1 : POLL
    this.dialer.watch(this, 2 * POLL)
    this.write(this.#post(`ack=${this.seq}&timeout=${wait}`))
  }

  /** @param {string} query @param {string} [commands] */
  #post(query, commands = '') {
    return this.target.post(`${this.dialer.path}?session=${this.session}&${query}`, commands)
  }

  /** @override @param {number} status @param {string} head */
  answered(status, head) {
    super.answered(status, head)
    // A copy: a part of the head would keep the whole of it.
    this.session ||= `${Buffer.from(field(head, 'halley-session'))}`
    this.repeats = 0
    this.seq = Number(field(head, 'halley-seq'))
    // The reason, in plain text, is in the last message: the disconnect push.
    this.over = field(head, 'halley-close')
  }

  /** @override */
  done() {
    if (this.over || !this.session) this.end(this.over || 'no session', Number(this.over.slice(0, 4)))
    else if (this.kept) this.#poll()
    else this.socket?.destroy()
  }

  /** @override The session outlives its connections: the next poll says whether it is still there. */
  again() {
    // What came of an answer has been told to the listener, and would come again.
    const again = this.session && !this.phase && !this.head && this.repeats++ < MAX_REPEATS
    return !!again || super.again()
  }

  /** @override */
  close() {
    const leaving = this.state === OPEN
    super.close()
    if (leaving) this.target.posts.push({ request: () => this.#post('close=1'), posted() {} })
  }

  /** @override */
  request() {
    if (this.state > OPEN) return null
    this.sending ||= this.commands()
    return this.#post(`send=${this.sent}`, this.sending)
  }

  /** @override @param {number} status @param {string} reason */
  posted(status, reason) {
    // The poll tells how a session has ended that is not known any more.
    if (status === 404) return
    if (status === 0 && this.resends++ < MAX_REPEATS) return this.target.posts.push(this)
    this.sending = ''
    this.sent++
    this.resends = 0
    super.posted(status, reason)
  }
}
