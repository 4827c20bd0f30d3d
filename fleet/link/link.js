// One end of a control connection between controller and drone. Each message is an object, sent as one line of JSON; an
// empty line is a heartbeat. link/ imports only Node.js modules: drone, bootstrap and controller run it. Guarantees:
// - messages arrive whole and in order, or the link closes with a reason;
// - a peer is disconnected if it sends nothing, does not read, or sends anything but JSON objects;
// - every request resolves with its reply, or rejects.

/** Maximum characters of a line; also the maximum unsent bytes to a peer. */
export const MAX_LINE = 16 << 20
const KB = 1 << 10
const MB = 1 << 20
/** ms between heartbeats. */
const HEARTBEAT = 5_000
/** Heartbeat intervals without data from the peer; one more closes the link. */
const MAX_MISSED_HEARTBEATS = 3
/** ms until the socket is destroyed if the peer keeps it open. */
const CLOSE_TIMEOUT = 2_000
/** Default timeout of a request, ms. */
const ANSWER_TIMEOUT = 30_000

export class Link {
  #socket
  #rest = ''
  #missedHeartbeats = 0
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
  maxLine = MAX_LINE
  /** Close reason; '' while the link is open. */
  reason = ''

  /** @param {import('node:net').Socket} socket authenticated @param {string} identity of the dialling side, `run/id` */
  constructor(socket, identity) {
    this.#socket = socket
    this.identity = identity
    socket.setNoDelay().setEncoding('utf8')
    this.#heartbeat = setInterval(() => {
      if (++this.#missedHeartbeats > MAX_MISSED_HEARTBEATS)
        this.close(`no data from the peer for ${(HEARTBEAT * this.#missedHeartbeats) / 1000} s`)
      else this.#write('')
    }, HEARTBEAT)
    this.#closed = new Promise(resolve => {
      socket.once('close', () => {
        this.close('the peer closed the connection')
        resolve()
      })
    })
    socket.on('error', error =>
      this.close(/** @type {NodeJS.ErrnoException} */ (error).code ?? error.message),
    )
  }

  /**
   * Called with every message except replies. The link does not read before this is set or a request is sent.
   * @param {(message: any) => void} listener
   */
  set onMessage(listener) {
    this.#onMessage = listener
    this.#read()
  }

  /** Called once with the reason, even if the link is already closed. @param {(reason: string) => void} listener */
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
   * @param {object} message without `ask`, its request id, repeated in the reply @param {{timeout?: number}} [options]
   * @returns {Promise<any>} the result; rejects with the peer's error, the reason of a close, or a timeout (ms)
   */
  request(message, { timeout = ANSWER_TIMEOUT } = {}) {
    return new Promise((resolve, reject) => {
      if (this.reason) return reject(new Error(this.reason))
      const ask = ++this.#lastRequest
      this.#read()
      this.send({ ...message, ask })
      // Sending to a peer that does not read closes the link.
      if (this.reason) return reject(new Error(this.reason))
      const timer = setTimeout(
        () => this.#onAnswer({ ask, error: `no response within ${timeout / 1000} s` }),
        timeout,
      )
      this.#requests.set(ask, { resolve, reject, timer })
    })
  }

  /** Ignores replies to unknown requests. @param {{ask: number, result?: any, error?: any}} answer */
  #onAnswer({ ask, result, error }) {
    const request = this.#requests.get(ask)
    if (!request) return
    this.#requests.delete(ask)
    clearTimeout(request.timer)
    if (error === undefined) request.resolve(result)
    else request.reject(new Error(String(error)))
  }

  /** @param {string} line @throws {RangeError} it is too long */
  #write(line) {
    if (line.length >= MAX_LINE) throw new RangeError(`a message of ${line.length} characters is too long`)
    if (this.reason) return
    if (this.#socket.writableLength > MAX_LINE) this.close('the peer does not read')
    else this.#socket.write(`${line}\n`)
  }

  /** Flushes buffered data for at most 2 s and ignores received data. @param {string} [reason] */
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
    this.#missedHeartbeats = 0
    // Searches only the new chunk: long lines must not cost quadratic time.
    const [end, ...lines] = text.split('\n')
    this.#rest += end
    for (const line of lines) {
      if (this.#rest && !this.reason) this.#onLine(this.#rest)
      this.#rest = line
    }
    if (this.#rest.length > this.maxLine) this.#closeTooLong()
  }

  #closeTooLong() {
    this.#rest = ''
    const size = this.maxLine >= MB ? `${this.maxLine / MB} MB` : `${this.maxLine / KB} KB`
    this.close(`line longer than ${size}`)
  }

  /** @param {string} line */
  #onLine(line) {
    if (line.length > this.maxLine) return this.#closeTooLong()
    let message
    try {
      message = JSON.parse(line)
    } catch {}
    if (message?.constructor !== Object) this.close('line is not a JSON object')
    else if (message.type === 'answer') this.#onAnswer(message)
    else this.#onMessage(message)
  }
}
