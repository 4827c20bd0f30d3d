import { HttpWire } from '../transport/http.js'
import { OPEN } from '../transport/wire.js'

/** s until a batch has failed. */
export const PATIENCE = 10

/** A keep-alive connection to the server API, for one request at a time. Its lane is told each answer, and that it is closed. */
export class ApiWire extends HttpWire {
  /** @param {import('../transport/target.js').Target} target @param {import('./lane.js').Lane} lane */
  constructor(target, lane) {
    super(target)
    this.lane = lane
    this.text = ''
    this.open()
    target.dialer.watch(this, PATIENCE)
  }

  /** @override */
  opened() {
    this.state = OPEN
    this.lane.opened(this)
  }

  /** @param {string} text */
  send(text) {
    this.write(Buffer.from(text))
  }

  /** @override @param {Buffer} buffer @param {number} start @param {number} end */
  body(buffer, start, end) {
    this.text += buffer.toString('latin1', start, end)
  }

  /** @override */
  done() {
    const { text } = this
    this.text = ''
    if (!this.kept) this.close()
    this.lane.replied(this, text, this.status)
  }

  close() {
    this.end('closed')
  }

  /** @override */
  gone() {
    this.lane.closed(this, this.reason)
  }
}
