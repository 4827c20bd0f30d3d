// long_poll: Halley's two-way long-poll (docs/long-poll.md). A poll waits; commands go beside it, in numbered POSTs.

import { field, HEAD } from './http.js'
import { StreamConnection } from './stream.js'
import { OPEN } from './wire.js'

/** s that a poll may wait for something to come. Its answer may take twice as long. */
const POLL = 25
/** Polls that are made again, one a second, while the session is out of reach or connections are cut. */
const MAX_REPEATS = 8
/** POSTs that are made again when their connection was cut. */
const MAX_RESENDS = 2

export class LongPollConnection extends StreamConnection {
  /** @param {ConstructorParameters<typeof StreamConnection>} args */
  constructor(...args) {
    super(...args)
    this.seq = 0
    this.sent = 0
    /** Commands of the POST that is not confirmed. */
    this.sending = ''
    /** Polls since the last that was answered. */
    this.repeats = 0
    this.resends = 0
    /** Halley-Close: these are the last messages. */
    this.over = ''
    /** Whether the target is still to be told that this is over. */
    this.leaving = false
  }

  /** @override */
  opened() {
    if (this.session === '') super.opened()
    else this.#poll()
  }

  #poll() {
    // After a cut, whether the session is there is to be known soon.
    const wait = this.repeats === 0 ? POLL : 1
    this.target.dialer.watch(this, 2 * wait)
    this.write(this.target.post(this.#path(`&ack=${this.seq}&timeout=${wait}`), ''))
  }

  /** @param {string} query */
  #path(query) {
    return `${this.target.dialer.path}?session=${this.session}${query}`
  }

  /** @override @param {number} status @param {string} head */
  answered(status, head) {
    if (status === 503 && this.session !== '') return
    super.answered(status, head)
    // A copy: a part of the head would keep the whole of it.
    if (this.session === '') this.session = Buffer.from(field(head, 'halley-session')).toString()
    if (this.session === '') this.end('no session')
    this.repeats = 0
    this.seq = Number(field(head, 'halley-seq'))
    // The reason, in plain text, is in the last message: the disconnect push.
    this.over = field(head, 'halley-close')
  }

  /** @override The session has its name already. */
  named() {
    if (this.outbox !== '') this.send('')
  }

  /** @override */
  done() {
    if (this.over !== '') this.end(this.over, Number(this.over.slice(0, 4)))
    else if (this.status === 503) this.#lose('HTTP 503')
    else if (this.kept) this.#poll()
    else this.socket?.destroy()
  }

  /** @param {string} reason if there is no other poll */
  #lose(reason) {
    this.blame(reason)
    this.socket?.destroy()
  }

  /** @override */
  expire() {
    if (this.state !== OPEN) super.expire()
    else if (this.socket === null) this.open()
    else this.#lose('timeout')
  }

  /** @override */
  gone() {
    // The session outlives its connections: the next poll says whether it is still there.
    // What came of an answer has been told to the listener, and would come again.
    const untouched = this.phase === HEAD && this.rest === null
    const again = this.session !== '' && this.state <= OPEN && untouched && this.repeats++ < MAX_REPEATS
    if (!again || this.reason === 'ECONNREFUSED') return super.gone()
    this.reason = ''
    if (this.repeats === 1) this.open()
    else this.target.dialer.watch(this, 1)
  }

  /** @override */
  close() {
    const leaving = this.state === OPEN
    super.close()
    if (!leaving) return
    this.leaving = true
    if (!this.posting) this.target.posts.push(this)
  }

  /** @override */
  request() {
    const { leaving } = this
    if (this.state > OPEN && !leaving) return null
    this.leaving = false
    if (this.sending === '') this.sending = this.commands()
    const number = this.sending === '' ? '' : `&send=${this.sent + 1}`
    return this.target.post(this.#path(number + (leaving ? '&close=1' : '')), this.sending)
  }

  /** @override @param {number} status @param {string} reason */
  posted(status, reason) {
    if (status === 204) {
      this.sending = ''
      this.sent++
      this.resends = 0
    }
    if (this.leaving && status !== 0) this.target.posts.push(this)
    if (this.state > OPEN) return
    // The poll tells how a session has ended that is not known any more.
    if (status === 404) return
    if (status === 0 && ++this.resends <= MAX_RESENDS) this.target.posts.push(this)
    else super.posted(status, reason)
  }
}
