// One end of a control line: messages are objects, each a line of JSON. An empty line is a sign of life.

export { Asker } from './asker.js'

/** Bytes that a line may have, and that may wait for the other side to read; then it is taken for one that does not. */
export const MAX_LINE = 16 << 20
/** ms */
const BEAT = 5_000
/** Beats without a byte from the other side, after which it is dead. */
const MAX_SILENT = 3
/** What the other side may take to close, ms. */
const GRACE = 2_000
const NEWLINE = 10

export class Line {
  #socket
  /** @type {Buffer[]} of the line that is not whole yet */
  #chunks = []
  #size = 0
  #silent = 0
  #beat
  /** @type {(message: any) => void} */
  #onMessage = () => {}
  /** @type {(reason: string) => void} */
  #onClose = () => {}
  /** @type {Promise<void>} */
  #gone
  /** Why it is closed; '' while it is open. */
  reason = ''

  /**
   * @param {import('node:net').Socket} socket authenticated
   * @param {string} identity of the side that dialled, `run/id`
   */
  constructor(socket, identity) {
    this.#socket = socket
    this.identity = identity
    socket.setNoDelay(true)
    this.#beat = setInterval(() => this.#onBeat(), BEAT)
    this.#gone = new Promise(resolve => {
      socket.once('close', () => {
        this.#end('the other side closed the line')
        resolve()
      })
    })
    socket.on('error', error => this.#end(/** @type {NodeJS.ErrnoException} */ (error).code ?? error.message))
  }

  /**
   * Who gets the messages, which are objects but otherwise unchecked. Nothing is read before it is set.
   * @param {(message: any) => void} listener
   */
  set onMessage(listener) {
    this.#onMessage = listener
    if (this.#socket.listenerCount('data') === 0) this.#socket.on('data', chunk => this.#onData(chunk))
  }

  /**
   * Is called once, with the reason, also when the line was closed before.
   * @param {(reason: string) => void} listener
   */
  set onClose(listener) {
    this.#onClose = listener
    if (this.reason) queueMicrotask(() => listener(this.reason))
  }

  /**
   * Does nothing when the line is closed.
   * @param {object} message
   * @throws {RangeError} it is longer than a line may be
   */
  send(message) {
    const text = `${JSON.stringify(message)}\n`
    if (text.length > MAX_LINE) throw new RangeError(`${text.length} bytes are too many for the line`)
    this.#write(text)
  }

  /** @param {string} text */
  #write(text) {
    if (this.reason) return
    if (this.#socket.writableLength > MAX_LINE) this.#end('the other side does not read')
    else this.#socket.write(text)
  }

  /**
   * Closes it once all that was sent is on its way.
   * @param {string} [reason]
   * @returns {Promise<void>} when it is closed
   */
  close(reason = 'closed') {
    if (this.reason === '') {
      this.#socket.end()
      setTimeout(() => this.#socket.destroy(), GRACE).unref()
      this.#end(reason, false)
    }
    return this.#gone
  }

  #onBeat() {
    if (++this.#silent > MAX_SILENT) this.#end(`no sign of life for ${(BEAT * MAX_SILENT) / 1000} s`)
    else this.#write('\n')
  }

  /** @param {Buffer} chunk */
  #onData(chunk) {
    this.#silent = 0
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      this.#keep(chunk.subarray(start, end))
      start = end + 1
      const text = Buffer.concat(this.#chunks).toString()
      this.#chunks.length = this.#size = 0
      if (text !== '') this.#take(text)
      if (this.reason) return
    }
    this.#keep(chunk.subarray(start))
  }

  /** @param {Buffer} part of a line */
  #keep(part) {
    this.#size += part.length
    if (this.#size > MAX_LINE) this.#end(`a line of more than ${MAX_LINE >> 20} MiB`)
    else if (part.length > 0) this.#chunks.push(part)
  }

  /** @param {string} text */
  #take(text) {
    let message
    try {
      message = JSON.parse(text)
    } catch {}
    if (message?.constructor === Object) this.#onMessage(message)
    else this.#end('a line that is no JSON object')
  }

  /**
   * @param {string} reason
   * @param {boolean} [destroy]
   */
  #end(reason, destroy = true) {
    if (this.reason) return
    this.reason = reason
    this.#chunks = []
    clearInterval(this.#beat)
    if (destroy) this.#socket.destroy()
    this.#onClose(reason)
  }
}
