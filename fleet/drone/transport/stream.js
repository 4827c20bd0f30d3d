// http_stream and uni_http_stream: lines of JSON in the endless answer to a POST. Commands go to the emulation endpoint.

import { Connection } from './connection.js'
import { OPEN, OPENING } from './wire.js'

/** What may wait to be sent, characters. */
const MAX_OUTBOX = 1 << 20
/** Commands that leave in one POST, characters: servers take 64 KiB, and quotes are escaped. */
const MAX_POST = 30_000
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
    /** What a POST begins with; '' before the connect reply. */
    this.session = ''
    /** Whether a POST waits or is under way: one after another keep their order. */
    this.posting = false
  }

  /** @override */
  opened() {
    this.write(this.target.post(this.target.dialer.path, this.outbox))
    this.outbox = ''
  }

  /** @override @param {number} status @param {string} _head */
  answered(status, _head) {
    if (status !== 200) this.end(`HTTP ${status}`)
  }

  /** @override @param {Buffer} buffer @param {number} start @param {number} end */
  line(buffer, start, end) {
    const { oneWay } = this.target.dialer
    // {"disconnect": ... or {"push":{"disconnect": ...
    if (buffer[start + (oneWay ? 2 : 10)] === D) {
      const message = parse(buffer, start, end)
      const disconnect = (oneWay ? message : message?.push)?.disconnect
      if (disconnect) return this.end(`${disconnect.reason}`, Number(disconnect.code) || 0)
    }
    if (this.state === OPENING && !oneWay) this.named(parse(buffer, start, end)?.connect)
    super.line(buffer, start, end)
  }

  /** The connect reply has come. @param {{session?: string, node?: string} | undefined} reply */
  named(reply) {
    if (reply) this.session = JSON.stringify({ session: reply.session, node: reply.node })
    if (this.outbox !== '') this.send('')
  }

  /** @override @param {string} text */
  send(text) {
    if (this.target.dialer.oneWay || this.state > OPEN) return
    this.outbox += this.outbox === '' || text === '' ? text : `\n${text}`
    if (this.outbox.length > MAX_OUTBOX) return this.end('outbox is full', 0, true)
    if (this.session === '' || this.posting) return
    this.posting = true
    this.target.posts.push(this)
  }

  /** @returns {string} the commands to send next */
  commands() {
    const { outbox } = this
    const cut = outbox.length > MAX_POST ? outbox.lastIndexOf('\n', MAX_POST) : -1
    this.outbox = cut > 0 ? outbox.slice(cut + 1) : ''
    return cut > 0 ? outbox.slice(0, cut) : outbox
  }

  /** @returns {Buffer | null} the request to make; null: there is none any more */
  request() {
    if (this.state > OPEN) return null
    const data = JSON.stringify(this.commands())
    return this.target.post('/emulation', `${this.session.slice(0, -1)},"data":${data}}`)
  }

  /**
   * The POST was answered, or never will be.
   * @param {number} status 0: it was not
   * @param {string} reason
   */
  posted(status, reason) {
    this.posting = false
    if (status !== 204 && status !== 200) this.end(`send: ${status ? `HTTP ${status}` : reason}`)
    else if (this.outbox !== '') this.send('')
  }
}
