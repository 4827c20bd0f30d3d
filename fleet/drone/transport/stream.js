// http_stream and uni_http_stream: lines of JSON in the endless answer to a POST. Commands go to the emulation endpoint.

import { Connection } from './connection.js'
import { field } from './http.js'
import { OPEN, OPENING } from './wire.js'

const D = 100

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

  /** A web page is what a proxy or another server answers. @param {string} type of content, '' if the target says none */
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

  /**
   * The POST was answered, or never will be.
   * @param {number} status 0: it was not
   * @param {string} reason
   */
  posted(status, reason) {
    this.posting = false
    if (status !== 204 && status !== 200) this.end(`send: ${reason}`)
    else this.flush()
  }
}
