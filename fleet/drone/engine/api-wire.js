import { HttpWire } from '../transport/http.js'
import { CLOSED, OPEN } from '../transport/wire.js'

/** A keep-alive connection to the server API, for one request at a time. Its lane is told each answer, or why there is none. */
export class ApiWire extends HttpWire {
  #lane
  #asked = false
  #request = new Uint8Array(0)
  /** @type {Buffer[]} */
  #parts = []

  /** @param {import('../transport/target.js').Target} target @param {import('./lane.js').Lane} lane */
  constructor(target, lane) {
    super(target)
    this.#lane = lane
  }

  /** @param {Uint8Array<ArrayBuffer>} request @param {number} patience s */
  ask(request, patience) {
    this.#asked = true
    this.#request = request
    this.target.dialer.watch(this, patience)
    if (this.state === OPEN) this.write(request)
    else this.open()
  }

  /** @override */
  opened() {
    this.state = OPEN
    this.write(this.#request)
  }

  /** @override @param {Buffer} buffer @param {number} start @param {number} end */
  body(buffer, start, end) {
    this.#parts.push(Buffer.from(buffer.subarray(start, end)))
  }

  /** @override */
  done() {
    if (!this.kept) this.end('closed')
    this.#tell(this.status === 200 ? '' : `HTTP ${this.status}`)
  }

  /** @override */
  gone() {
    this.state = CLOSED
    this.#tell(this.reason || 'closed by target')
  }

  /** @param {string} reason why there is no answer */
  #tell(reason) {
    this.target.dialer.unwatch(this)
    const text = `${Buffer.concat(this.#parts)}`
    this.#parts = []
    if (!this.#asked) return
    this.#asked = false
    this.#lane.replied(text, reason)
  }
}
