// One end of a control connection between controller and drone. Each message is an object, sent as one line of JSON; an
// empty line is a heartbeat. link/ imports only Node.js, since drone, bootstrap and controller all run it. It promises:
// - messages arrive whole and in order, or the link closes with a reason;
// - a peer that is silent, does not read, or sends something other than JSON objects is disconnected;
// - every request is answered, or rejects.

/** Maximum characters of a line, unless `limit` is lower, and of unsent data to a peer that does not read. */
export const MAX_LINE = 16 << 20
const KB = 1 << 10
const MB = 1 << 20
/** ms between heartbeats. */
const HEARTBEAT = 5_000
/** Silent heartbeats after which the link is closed. */
const MAX_SILENT = 3
/** ms for the peer to close. */
const CLOSE_TIMEOUT = 2_000
/** Default ms for an answer. */
const ANSWER_TIMEOUT = 30_000

export class Link {
  #socket
  /** Beginning of an incomplete line. */
  #rest = ''
  #silent = 0
  #heartbeat
  /** @type {(message: any) => void} */
  #onMessage = () => {}
  /** @type {(reason: string) => void} */
  #onClose = () => {}
  /** @type {Promise<void>} */
  #closed
  #lastRequest = 0
  /** @type {Map<number, {resolve: (result: any) => void, reject: (error: Error) => void, timer: NodeJS.Timeout}>} */
  #requests = new Map()
  /** Maximum characters of a received line. */
  limit = MAX_LINE
  /** Why it is closed; '': open. */
  reason = ''

  /**
   * @param {import('node:net').Socket} socket authenticated
   * @param {string} identity of the dialling side, `run/id`
   */
  constructor(socket, identity) {
    this.#socket = socket
    this.identity = identity
    socket.setNoDelay().setEncoding('utf8')
    this.#heartbeat = setInterval(() => {
      if (++this.#silent > MAX_SILENT) this.close('no sign of life')
      else this.#write('')
    }, HEARTBEAT)
    this.#closed = new Promise(resolve => {
      socket.once('close', () => {
        this.close('the other side closed the connection')
        resolve()
      })
    })
    socket.on('error', error =>
      this.close(/** @type {NodeJS.ErrnoException} */ (error).code ?? error.message),
    )
  }

  /**
   * Receives every message that is not an answer: an object, otherwise unchecked. The link reads nothing before this
   * is set or a request is sent. @param {(message: any) => void} listener
   */
  set onMessage(listener) {
    this.#onMessage = listener
    this.#read()
  }

  /** Called once, with the reason, even if the link is closed already. @param {(reason: string) => void} listener */
  set onClose(listener) {
    this.#onClose = listener
    if (this.reason) queueMicrotask(() => listener(this.reason))
  }

  #read() {
    if (this.#socket.listenerCount('data') === 0)
      this.#socket.on('data', text => this.#onData(/** @type {any} */ (text)))
  }

  /** Does nothing on a closed link. @param {object} message @throws {RangeError} the line is too long */
  send(message) {
    this.#write(JSON.stringify(message))
  }

  /**
   * @param {object} message without its `ask`, the number of the request
   * @param {{timeout?: number}} [options] ms
   * @returns {Promise<any>} the result
   * @throws {Error} the peer's error, the reason of the close, or a timeout
   */
  request(message, { timeout = ANSWER_TIMEOUT } = {}) {
    return new Promise((resolve, reject) => {
      if (this.reason) return reject(new Error(this.reason))
      const ask = ++this.#lastRequest
      this.#read()
      this.send({ ...message, ask })
      const timer = setTimeout(
        () => this.#onAnswer({ ask, error: `no answer within ${timeout / 1000} s` }),
        timeout,
      )
      this.#requests.set(ask, { resolve, reject, timer })
    })
  }

  /** Ignores an answer without a request. @param {{ask: number, result?: any, error?: any}} answer */
  #onAnswer({ ask, result, error }) {
    const request = this.#requests.get(ask)
    if (!request) return
    this.#requests.delete(ask)
    clearTimeout(request.timer)
    if (error === undefined) request.resolve(result)
    else request.reject(new Error(String(error)))
  }

  /** @param {string} text of a line */
  #write(text) {
    if (text.length >= MAX_LINE) throw new RangeError(`${text.length} bytes are too many`)
    if (this.reason) return
    if (this.#socket.writableLength > MAX_LINE) this.close('the other side does not read')
    else this.#socket.write(`${text}\n`)
  }

  /**
   * Waits a moment for sent data to arrive, and ignores received data.
   * @param {string} [reason] @returns {Promise<void>} when it is closed
   */
  close(reason = 'closed') {
    if (!this.reason) {
      this.reason = reason
      clearInterval(this.#heartbeat)
      this.#socket.end()
      setTimeout(() => this.#socket.destroy(), CLOSE_TIMEOUT).unref()
      for (const ask of [...this.#requests.keys()]) this.#onAnswer({ ask, error: reason })
      this.#onClose(reason)
    }
    return this.#closed
  }

  /** @param {string} text */
  #onData(text) {
    if (this.reason) return
    this.#silent = 0
    // A long line is concatenated once, not searched again with each chunk.
    const [end, ...lines] = text.split('\n')
    this.#rest += end
    for (const line of lines) {
      if (this.#rest && !this.reason) this.#onLine(this.#rest)
      this.#rest = line
    }
    if (this.#rest.length > this.limit) this.#tooLong()
  }

  #tooLong() {
    this.#rest = ''
    this.close(`a line of more than ${this.limit >= MB ? `${this.limit / MB} MB` : `${this.limit / KB} KB`}`)
  }

  /** @param {string} line */
  #onLine(line) {
    if (line.length > this.limit) return this.#tooLong()
    let message
    try {
      message = JSON.parse(line)
    } catch {}
    if (message?.constructor !== Object) this.close('a line that is not a JSON object')
    else if (message.type === 'answer') this.#onAnswer(message)
    else this.#onMessage(message)
  }
}
