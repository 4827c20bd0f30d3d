// HTTP transports. Each connect request is a POST, because servers bound the length of URLs.
//
//   http_stream, uni_http_stream   lines of JSON in an endless response; commands go to the emulation endpoint
//   sse, uni_sse                   the same as data of events
//   long_poll                      two-way long-poll (docs/long-poll.md): a poll waits; commands go in numbered POSTs

import { Connection } from './connection.js'
import { field } from './http.js'
import { OPEN, OPENING } from './wire.js'

const D = 100
const SPACE = 32
/** Maximum duration of a poll, s. The response may take twice as long. */
const POLL = 25
/** Polls or POSTs repeated immediately after a lost connection. */
const MAX_REPEATS = 3

/** @param {Buffer} buffer @param {number} start @param {number} end @returns {any} undefined: not JSON */
function parse(buffer, start, end) {
  try {
    return JSON.parse(buffer.toString('utf8', start, end))
  } catch {}
}

export class StreamConnection extends Connection {
  static closesSocketOnly = true

  /** @param {ConstructorParameters<typeof Connection>} args */
  constructor(...args) {
    super(...args)
    /** Set by the connect response; commands require it. */
    this.session = ''
    this.node = ''
    this.posting = false
  }

  opened() {
    this.write(this.target.post(this.dialer.path, this.outbox))
    this.outbox = ''
  }

  /** @override @param {number} status @param {string} head */
  answered(status, head) {
    if (status !== 200) return this.end(`HTTP ${status}`)
    const type = field(head, 'content-type').toLowerCase()
    if (!this.takes(type)) this.end(`wrong content type ${type.slice(0, 50)}`)
  }

  /** A web page is from a proxy or another server. @param {string} type of content; '': none */
  takes(type) {
    return !type.startsWith('text/html')
  }

  /** @override @param {Buffer} buffer @param {number} start @param {number} end */
  line(buffer, start, end) {
    // {"disconnect": ... or {"push":{"disconnect": ...
    if (this.state === OPENING || buffer[start + 2] === D || buffer[start + 10] === D) {
      const message = parse(buffer, start, end)
      const { disconnect } = message?.push ?? message ?? {}
      if (disconnect) return this.end(`${disconnect.reason}`, Number(disconnect.code) || 0)
      if (message?.connect) {
        this.session ||= message.connect.session
        this.node = message.connect.node
        this.flush()
      }
    }
    super.line(buffer, start, end)
  }

  flush() {
    if (!this.session || this.posting || !this.outbox) return
    this.posting = true
    this.target.posts.push(this)
  }

  /** @returns {string} the commands to send next: servers accept 64 KB, and quotes are escaped */
  commands() {
    const [commands] = /^.{1,30000}(?=\n|$)/s.exec(this.outbox) ?? [this.outbox]
    this.outbox = this.outbox.slice(commands.length + 1)
    return commands
  }

  /** @returns {Buffer | null} null: nothing to send */
  request() {
    if (this.state > OPEN) return null
    const { session, node } = this
    return this.target.post('/emulation', JSON.stringify({ session, node, data: this.commands() }))
  }

  /** The POST completed or failed. @param {number} status 0: failed @param {string} reason */
  posted(status, reason) {
    this.posting = false
    if (status !== 204 && status !== 200) this.end(`send: ${reason}`)
    else this.flush()
  }
}

export class SseConnection extends StreamConnection {
  /** @override @param {string} type */
  takes(type) {
    return type === '' || type.startsWith('text/event-stream')
  }

  /** @override @param {Buffer} buffer @param {number} start @param {number} end */
  line(buffer, start, end) {
    const from = start + (buffer[start + 5] === SPACE ? 6 : 5)
    if (buffer[start] === D && from < end) super.line(buffer, from, end)
  }
}

export class LongPollConnection extends StreamConnection {
  static closesSocketOnly = false

  /** @param {ConstructorParameters<typeof StreamConnection>} args */
  constructor(...args) {
    super(...args)
    this.seq = 0
    this.sent = 1
    this.sending = ''
    /** Polls since the last response, POSTs since the last confirmation. */
    this.repeats = 0
    this.resends = 0
    /** Halley-Close: these are the last messages. */
    this.over = ''
  }

  opened() {
    if (this.session) this.#poll()
    else super.opened()
  }

  #poll() {
    // A short poll after a cut, to learn the session's state soon.
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
    // A copy: a substring would keep the whole head in memory.
    this.session ||= `${Buffer.from(field(head, 'halley-session'))}`
    this.repeats = 0
    this.seq = Number(field(head, 'halley-seq'))
    // The last message, the disconnect push, contains the reason as text.
    this.over = field(head, 'halley-close')
  }

  done() {
    if (this.over || !this.session) this.end(this.over || 'no session', Number(this.over.slice(0, 4)))
    else if (this.kept) this.#poll()
    else this.socket?.destroy()
  }

  /** @override The session outlives its connections: the next poll shows whether it still exists. */
  shouldReopen() {
    // Parts of the response would be delivered twice.
    const again = this.session && !this.phase && !this.head && this.repeats++ < MAX_REPEATS
    return !!again || super.shouldReopen()
  }

  close() {
    const leaving = this.state === OPEN
    super.close()
    if (leaving) this.target.posts.push({ request: () => this.#post('close=1'), posted() {} })
  }

  request() {
    if (this.state > OPEN) return null
    this.sending ||= this.commands()
    return this.#post(`send=${this.sent}`, this.sending)
  }

  /** @override @param {number} status @param {string} reason */
  posted(status, reason) {
    // The poll reports how an unknown session ended.
    if (status === 404) return
    if (status === 0 && this.resends++ < MAX_REPEATS) return this.target.posts.push(this)
    this.sending = ''
    this.sent++
    this.resends = 0
    super.posted(status, reason)
  }
}
