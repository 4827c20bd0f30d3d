// One end of a control line: messages are objects, each a line of JSON. An empty line is a sign of life.

export { Asker } from './asker.js'

/** Letters that a line may have, if nothing else is said, and that may wait for the other side to read: more, and it does not read. */
export const MAX_LINE = 16 << 20
const KB = 1 << 10
const MB = 1 << 20
/** ms */
const BEAT = 5_000
/** Beats without a word from the other side, after which it is dead. */
const MAX_SILENT = 3
/** What the other side may take to close, ms. */
const GRACE = 2_000

export class Line {
  #socket
  /** Of the line that is not whole yet. */
  #rest = ''
  #silent = 0
  #beat
  /** @type {(message: any) => void} */
  #onMessage = () => {}
  /** @type {(reason: string) => void} */
  #onClose = () => {}
  /** @type {Promise<void>} */
  #gone
  /** Letters of the longest line that is taken. */
  limit = MAX_LINE
  /** Why it is closed; '' while it is open. */
  reason = ''

  /**
   * @param {import('node:net').Socket} socket authenticated
   * @param {string} identity of the side that dialled, `run/id`
   */
  constructor(socket, identity) {
    this.#socket = socket
    this.identity = identity
    socket.setNoDelay().setEncoding('utf8')
    this.#beat = setInterval(() => {
      if (++this.#silent > MAX_SILENT) this.close('no sign of life')
      else this.#write('')
    }, BEAT)
    this.#gone = new Promise(resolve => {
      socket.once('close', () => {
        this.close('the other side closed the line')
        resolve()
      })
    })
    socket.on('error', error =>
      this.close(/** @type {NodeJS.ErrnoException} */ (error).code ?? error.message),
    )
  }

  /**
   * Who gets the messages, which are objects but otherwise unchecked. Nothing is read before it is set.
   * @param {(message: any) => void} listener
   */
  set onMessage(listener) {
    this.#onMessage = listener
    if (this.#socket.listenerCount('data') === 0)
      this.#socket.on('data', text => this.#onData(/** @type {any} */ (text)))
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
    this.#write(JSON.stringify(message))
  }

  /** @param {string} text of a line */
  #write(text) {
    if (text.length >= MAX_LINE) throw new RangeError(`${text.length} bytes are too many`)
    if (this.reason) return
    if (this.#socket.writableLength > MAX_LINE) this.close('the other side does not read')
    else this.#socket.write(`${text}\n`)
  }

  /**
   * Closes it: what was sent has a moment to arrive, what comes is not looked at any more.
   * @param {string} [reason]
   * @returns {Promise<void>} when it is closed
   */
  close(reason = 'closed') {
    if (!this.reason) {
      this.reason = reason
      clearInterval(this.#beat)
      this.#socket.end()
      setTimeout(() => this.#socket.destroy(), GRACE).unref()
      this.#onClose(reason)
    }
    return this.#gone
  }

  /** @param {string} text */
  #onData(text) {
    if (this.reason) return
    this.#silent = 0
    // What has come of a long line is put together once, not searched anew with each part.
    const [end, ...lines] = text.split('\n')
    this.#rest += end
    for (const line of lines) {
      if (this.#rest && !this.reason) this.#take(this.#rest)
      this.#rest = line
    }
    if (this.#rest.length > this.limit) this.#tooLong()
  }

  #tooLong() {
    this.#rest = ''
    this.close(`a line of more than ${this.limit >= MB ? `${this.limit / MB} MB` : `${this.limit / KB} KB`}`)
  }

  /** @param {string} line */
  #take(line) {
    if (line.length > this.limit) return this.#tooLong()
    let message
    try {
      message = JSON.parse(line)
    } catch {}
    if (message?.constructor === Object) this.#onMessage(message)
    else this.close('a line that is no JSON object')
  }
}
