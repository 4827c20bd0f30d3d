// HTTP transports. Each connect request is a POST: servers bound the length of URLs.
//
//   http_stream, uni_http_stream   lines of JSON in an endless answer; commands go to the emulation endpoint
//   sse, uni_sse                   the same with the data of events
//   long_poll                      two-way long-poll (docs/long-poll.md): a poll waits; commands go in numbered POSTs

import { Connection } from './connection.js'
import { field } from './http.js'
import { OPEN, OPENING } from './wire.js'

const D = 100
const SPACE = 32
/** s that a poll may wait for something to come. Its answer may take twice as long. */
const POLL = 25
/** Polls, or POSTs, that are made again, at once, when their connection was cut. */
const MAX_REPEATS = 3

/** @param {Buffer} buffer @param {number} start @param {number} end @returns {any} undefined: no JSON */
function parse(buffer, start, end) {
  try {
    return JSON.parse(buffer.toString('utf8', start, end))
  } catch {}
}

export class StreamConnection extends Connection {
  /** @param {ConstructorParameters<typeof Connection>} args */
  constructor(...args) {
    super(...args)
    /** Known when the target has answered: commands are sent then. */
    this.session = ''
    this.node = ''
    /** Whether a POST waits or is under way: one after another keep their order. */
    this.posting = false
  }

  /** @override */
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

  /** A web page comes from a proxy or another server. @param {string} type of content; '': none is given */
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

  /** @override */
  flush() {
    if (!this.session || this.posting || !this.outbox) return
    this.posting = true
    this.target.posts.push(this)
  }

  /** @returns {string} the commands to send next: servers take 64 KB, and quotes are escaped */
  commands() {
    const [commands] = /^.{1,30000}(?=\n|$)/s.exec(this.outbox) ?? [this.outbox]
    this.outbox = this.outbox.slice(commands.length + 1)
    return commands
  }

  /** @returns {Buffer | null} the request to make; null: there is none any more */
  request() {
    if (this.state > OPEN) return null
    const { session, node } = this
    return this.target.post('/emulation', JSON.stringify({ session, node, data: this.commands() }))
  }

  /** The POST was answered, or never will be. @param {number} status 0: it was not @param {string} reason */
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
