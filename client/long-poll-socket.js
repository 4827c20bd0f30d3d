// The shape of a browser's WebSocket over long-poll, for networks that let no WebSocket through. No dependencies; for browsers and for
// Node 20 and later. What goes over the wire: docs/long-poll.md.

const CONNECTING = 0
const OPEN = 1
const CLOSING = 2
const CLOSED = 3

/** How long a poll may wait for something to come, s. */
const POLL = 25
/** A request without an answer for so long (a poll: for so much longer) is given up and made again, ms. */
const PATIENCE = 10_000
/** Without any answer for so long the connection is lost, ms. The server keeps a session without polls for longer. */
const LOST = 20_000
const FIRST_DELAY = 100
const MAX_DELAY = 2000
/** Messages that wait are sent together up to about this length. */
const BATCH = 16_384
const PROTOBUF = 'centrifuge-protobuf'
const BINARY = 'application/octet-stream'
/** @type {Record<string, string>} */
const NONE = {}
const STATES = { CONNECTING, OPEN, CLOSING, CLOSED }

/** @typedef {{status: number, headers: Headers, data: any}} Answer */

/**
 * @implements {Pick<WebSocket, 'send' | 'close' | 'readyState' | 'protocol' | 'url' | 'bufferedAmount'>}
 */
export class LongPollSocket extends EventTarget {
  url
  protocol = ''
  extensions = ''
  /** @type {number} */
  readyState = CONNECTING
  /** @type {'blob' | 'arraybuffer'} */
  binaryType = 'blob'
  /** @type {((event: any) => void) | null} */
  onopen = null
  /** @type {((event: any) => void) | null} */
  onmessage = null
  /** @type {((event: any) => void) | null} */
  onerror = null
  /** @type {((event: any) => void) | null} */
  onclose = null
  /** The endpoint; once there is a session, with its name in it. */
  #at
  #binary
  /** @type {(string | Blob)[]} messages that the server has not confirmed */
  #queue = []
  /** POSTs of messages that it has confirmed. */
  #sent = 0
  #sending = false
  #batch = BATCH
  /** Whether the server knows that this is over, or cannot be told. */
  #over = false
  /** @type {AbortController | undefined} of the poll that is under way */
  #polling
  #leave = () => this.#bye()

  /**
   * @param {string | URL} url ws:, wss:, http: or https:
   * @param {string | string[]} [protocols] with `centrifuge-protobuf` messages are binary
   */
  constructor(url, protocols = []) {
    super()
    const { location, addEventListener } = globalThis
    const at = new URL(url, location?.href)
    this.url = at.href
    at.protocol = at.protocol.replace('ws', 'http')
    at.hash = ''
    this.#at = at.href
    const offered = [protocols].flat()
    this.#binary = offered.includes(PROTOBUF)
    if (this.#binary) this.protocol = PROTOBUF
    for (const type of ['open', 'message', 'error', 'close']) {
      this.addEventListener(type, event => /** @type {any} */ (this)[`on${type}`]?.(event))
    }
    addEventListener?.('pagehide', this.#leave)
    this.#run()
  }

  /** Bytes that the server has not confirmed. */
  get bufferedAmount() {
    return new Blob(this.#queue).size
  }

  /** @param {string | ArrayBuffer | ArrayBufferView<ArrayBuffer> | Blob} data */
  send(data) {
    if (this.readyState === CONNECTING) throw new DOMException('not open yet', 'InvalidStateError')
    if (this.readyState !== OPEN) return
    // A Blob has a copy: the caller may go on with its buffer.
    this.#queue.push(typeof data === 'string' ? data : new Blob([data]))
    this.#send()
  }

  /**
   * Ends the connection; what was sent before still goes out.
   * @param {number} [code] 1000 or 3000 to 4999
   * @param {string} [reason]
   */
  close(code, reason) {
    if (code !== undefined && code !== 1000 && !(code >= 3000 && code < 5000)) {
      throw new DOMException('code is neither 1000 nor 3000 to 4999', 'InvalidAccessError')
    }
    if (this.readyState >= CLOSING) return
    const opened = this.readyState === OPEN
    this.readyState = CLOSING
    this.#polling?.abort()
    if (opened) this.#send()
    setTimeout(() => (opened ? this.#end(code ?? 1005, reason) : this.#fail()))
  }

  async #run() {
    const headers = this.#binary ? { 'Content-Type': BINARY } : { ...NONE }
    let answer = await this.#request('', undefined, 0, headers)
    const name = answer?.headers.get('Halley-Session')
    if (!name) return this.#fail()
    this.#at += `${this.#at.includes('?') ? '&' : '?'}session=${name}`
    if (this.readyState !== CONNECTING) {
      // Closed meanwhile.
      this.#over = false
      return this.#bye()
    }
    this.readyState = OPEN
    this.dispatchEvent(new Event('open'))
    for (let seq = '0'; this.readyState === OPEN; ) {
      answer = await this.#request(`&ack=${seq}&timeout=${POLL}`, undefined, POLL * 1000)
      if (this.readyState !== OPEN) return
      if (answer?.status !== 200) return this.#fail()
      seq = /** @type {string} */ (answer.headers.get('Halley-Seq'))
      const close = answer.headers.get('Halley-Close')
      // Who hears of the end in the messages, and closes, need not tell the server.
      if (close) this.#over = true
      this.#receive(answer.data)
      if (close) return this.#end(Number(close.slice(0, 4)), decodeURIComponent(close.slice(5)))
    }
  }

  /** @param {any} data */
  #receive(data) {
    if (this.#binary) {
      if (data.byteLength === 0) return
      if (this.binaryType === 'blob') data = new Blob([data])
    } else if (data === '') return
    else data = data.slice(0, -1)
    this.dispatchEvent(new MessageEvent('message', { data }))
  }

  /** Sends what waits, one POST after another. */
  async #send() {
    if (this.#sending) return
    this.#sending = true
    // What is sent in one go leaves together.
    await null
    const queue = this.#queue
    while (queue.length > 0 && !this.#over) {
      const length = (/** @type {any} */ message) => message.size ?? message.length
      let count = 1
      for (let size = length(queue[0]); count < queue.length; count++) {
        if ((size += length(queue[count])) > this.#batch) break
      }
      const parts = queue.slice(0, count)
      const glue = this.#binary ? '' : '\n'
      const body = parts.every(part => typeof part === 'string')
        ? parts.join(glue)
        : new Blob(parts.flatMap(part => [glue, part]).slice(1))
      const answer = await this.#request(`&send=${this.#sent + 1}`, body, 0)
      if (this.#over) break
      if (answer?.status === 413 && count > 1) {
        // The server takes less in one POST than others do.
        this.#batch = 0
      } else if (answer?.status === 204) {
        this.#sent++
        queue.splice(0, count)
      } else if (answer?.status === 413) this.#end(1009, 'message size limit')
      // The next poll tells how the session has ended.
      else if (answer?.status === 404) queue.length = 0
      else this.#fail()
    }
    this.#sending = false
    if (this.readyState >= CLOSING) this.#bye()
  }

  /**
   * Makes a request again and again until it has an answer.
   * @param {string} params
   * @param {BodyInit | undefined} body
   * @param {number} waits ms that the answer may take by intent
   * @param {HeadersInit} [headers] of the opening request, which is made once
   * @returns {Promise<Answer | undefined>} undefined: there is none
   */
  async #request(params, body, waits, headers = NONE) {
    const poll = body === undefined
    let lost = 0
    for (let delay = FIRST_DELAY; poll ? this.readyState < CLOSING : !this.#over; ) {
      const abort = new AbortController()
      if (poll) this.#polling = abort
      const timer = setTimeout(() => abort.abort(), waits + PATIENCE)
      try {
        const response = await fetch(this.#at + params, {
          method: 'POST',
          body,
          headers,
          signal: abort.signal,
        })
        const data = await (this.#binary ? response.arrayBuffer() : response.text())
        const { status } = response
        // What stands between may answer in its own name.
        const own = poll ? response.headers.has('Halley-Seq') : status === 204
        if (own || (status >= 400 && status < 500 && status !== 408 && status !== 429)) {
          return { status, headers: response.headers, data }
        }
      } catch {
      } finally {
        clearTimeout(timer)
      }
      const now = Date.now()
      const patience = headers !== NONE || this.readyState === CLOSED ? 0 : LOST
      if (now - (lost ||= now) >= patience) return
      await new Promise(resolve => setTimeout(resolve, delay * (0.5 + Math.random() / 2)))
      delay = Math.min(delay * 2, MAX_DELAY)
    }
  }

  /** Tells the server that nobody will ask any more. */
  #bye() {
    if (this.#over || this.readyState === CONNECTING) return
    this.#over = true
    fetch(`${this.#at}&close=1`, { method: 'POST', keepalive: true }).catch(() => {})
  }

  #fail() {
    this.#over = true
    if (this.readyState === CLOSED) return
    this.dispatchEvent(new Event('error'))
    this.#end(1006)
  }

  /**
   * @param {number} code
   * @param {string} [reason]
   */
  #end(code, reason = '') {
    if (this.readyState === CLOSED) return
    this.readyState = CLOSED
    this.#polling?.abort()
    globalThis.removeEventListener?.('pagehide', this.#leave)
    // Not every platform has a CloseEvent.
    this.dispatchEvent(Object.assign(new Event('close'), { code, reason, wasClean: code !== 1006 }))
  }
}

Object.assign(LongPollSocket, STATES)
Object.assign(LongPollSocket.prototype, STATES)
