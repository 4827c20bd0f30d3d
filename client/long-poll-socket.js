// A WebSocket over long-poll (docs/long-poll.md), for networks that block WebSockets. Replaces the WebSocket of
// SDKs, in browsers and in Node.js 20 or newer. No imports: pages load this file directly. Messages arrive in
// order and once, lost responses are requested again, and `close` is dispatched once.

const CONNECTING = 0
const OPEN = 1
const CLOSING = 2
const CLOSED = 3

const POLL_SECONDS = 25
/** Response timeout before a request is retried, ms; polls add their own timeout. */
const REQUEST_TIMEOUT = 10_000
/** Time without a response before the connection is lost, ms; less than the session timeout of the server. */
const RETRY_TIMEOUT = 20_000
/** Retry delays, ms. */
const FIRST_DELAY = 100
const MAX_DELAY = 2000
/** Approximate length of one POST of messages, characters or bytes. */
const BATCH_LENGTH = 16_384
const PROTOBUF = 'centrifuge-protobuf'
const BINARY = 'application/octet-stream'
const STATES = { CONNECTING, OPEN, CLOSING, CLOSED }

/** @implements {Pick<WebSocket, 'send' | 'close' | 'readyState' | 'protocol' | 'url' | 'bufferedAmount'>} */
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
  /** URL of the endpoint, with the session once it is open. */
  #endpoint
  #binary
  /** @type {(string | Blob)[]} messages unconfirmed by the server */
  #queue = []
  #confirmed = 0
  #sending = false
  #batchLength = BATCH_LENGTH
  /** No more requests: the session is closed or closing, or the server is unreachable. */
  #ended = false
  /** @type {AbortController | undefined} of the pending poll */
  #polling
  #onPageHide = () => this.#sendClose()

  /**
   * @param {string | URL} url ws:, wss:, http: or https:
   * @param {string | string[]} [protocols] `centrifuge-protobuf`: binary messages
   */
  constructor(url, protocols = []) {
    super()
    const { location, addEventListener } = globalThis
    const address = new URL(url, location?.href)
    this.url = address.href
    address.protocol = address.protocol.replace('ws', 'http')
    address.hash = ''
    this.#endpoint = address.href
    const offered = [protocols].flat()
    this.#binary = offered.includes(PROTOBUF)
    if (this.#binary) this.protocol = PROTOBUF
    for (const type of ['open', 'message', 'error', 'close']) {
      this.addEventListener(type, event => /** @type {any} */ (this)[`on${type}`]?.(event))
    }
    addEventListener?.('pagehide', this.#onPageHide)
    this.#run()
  }

  /** Bytes unconfirmed by the server. */
  get bufferedAmount() {
    return new Blob(this.#queue).size
  }

  /**
   * Queues a message; after `close` it is dropped.
   * @param {string | ArrayBuffer | ArrayBufferView<ArrayBuffer> | Blob} data
   * @throws {DOMException} InvalidStateError before `open`
   */
  send(data) {
    if (this.readyState === CONNECTING) throw new DOMException('not open yet', 'InvalidStateError')
    if (this.readyState !== OPEN) return
    // A Blob is a copy: the caller may reuse its buffer.
    this.#queue.push(typeof data === 'string' ? data : new Blob([data]))
    this.#send()
  }

  /**
   * Closes the connection. Queued messages are still delivered.
   * @param {number} [code] 1000 or 3000 to 4999
   * @param {string} [reason] for the `close` event; not sent to the server
   * @throws {DOMException} InvalidAccessError for another code
   */
  close(code, reason) {
    if (code !== undefined && code !== 1000 && !(code >= 3000 && code < 5000)) {
      throw new DOMException('code must be 1000 or 3000 to 4999', 'InvalidAccessError')
    }
    if (this.readyState >= CLOSING) return
    const opened = this.readyState === OPEN
    this.readyState = CLOSING
    this.#polling?.abort()
    if (opened) this.#send()
    setTimeout(() => (opened ? this.#end(code ?? 1005, reason) : this.#fail()))
  }

  async #run() {
    /** @type {HeadersInit} */
    const headers = this.#binary ? { 'Content-Type': BINARY } : {}
    let answer = await this.#request('', undefined, 0, headers)
    const name = answer?.headers.get('Halley-Session')
    if (!name) return this.#fail()
    this.#endpoint += `${this.#endpoint.includes('?') ? '&' : '?'}session=${name}`
    if (this.readyState !== CONNECTING) {
      // `close` was called meanwhile: close the new session.
      this.#ended = false
      return this.#sendClose()
    }
    this.readyState = OPEN
    this.dispatchEvent(new Event('open'))
    for (let seq = '0'; this.readyState === OPEN; ) {
      answer = await this.#request(`&ack=${seq}&timeout=${POLL_SECONDS}`, undefined, POLL_SECONDS * 1000)
      if (this.readyState !== OPEN) return
      if (answer?.status !== 200) return this.#fail()
      seq = /** @type {string} */ (answer.headers.get('Halley-Seq'))
      const close = answer.headers.get('Halley-Close')
      // `<code> <reason>`. Set before messages are dispatched: a listener may call `close`.
      if (close) this.#ended = true
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
    // The server ends each message with a line feed; the last one is dropped.
    else data = data.slice(0, -1)
    this.dispatchEvent(new MessageEvent('message', { data }))
  }

  async #send() {
    if (this.#sending) return
    this.#sending = true
    // Messages of the same turn share a POST.
    await null
    const queue = this.#queue
    while (queue.length > 0 && !this.#ended) {
      const length = (/** @type {any} */ message) => message.size ?? message.length
      let count = 1
      for (let size = length(queue[0]); count < queue.length; count++) {
        if ((size += length(queue[count])) > this.#batchLength) break
      }
      const parts = queue.slice(0, count)
      const separator = this.#binary ? '' : '\n'
      const body = parts.every(part => typeof part === 'string')
        ? parts.join(separator)
        : new Blob(parts.flatMap(part => [separator, part]).slice(1))
      const answer = await this.#request(`&send=${this.#confirmed + 1}`, body, 0)
      if (this.#ended) break
      if (answer?.status === 413 && count > 1) {
        // The server's limit is below BATCH_LENGTH: send one message per POST.
        this.#batchLength = 0
      } else if (answer?.status === 204) {
        this.#confirmed++
        queue.splice(0, count)
      } else if (answer?.status === 413) {
        this.#end(1009, 'message size limit')
        queue.length = 0
      } else if (answer?.status === 404) {
        // The session is closed. The pending poll receives the close code.
        queue.length = 0
      } else {
        this.#fail()
      }
    }
    this.#sending = false
    if (this.readyState >= CLOSING) this.#sendClose()
  }

  /**
   * Retries a request until it has a response, for at most RETRY_TIMEOUT.
   * @param {string} params appended to the URL @param {BodyInit | undefined} body undefined: a poll
   * @param {number} serverWait maximum response delay of the server, ms
   * @param {HeadersInit} [openingHeaders] only for the opening request, which is not retried
   * @returns {Promise<{status: number, headers: Headers, data: any} | undefined>}
   */
  async #request(params, body, serverWait, openingHeaders) {
    const poll = body === undefined
    let failedAt = 0
    for (let delay = FIRST_DELAY; poll ? this.readyState < CLOSING : !this.#ended; ) {
      const abort = new AbortController()
      if (poll) this.#polling = abort
      const timer = setTimeout(() => abort.abort(), serverWait + REQUEST_TIMEOUT)
      try {
        const response = await fetch(this.#endpoint + params, {
          method: 'POST',
          body,
          headers: openingHeaders,
          signal: abort.signal,
        })
        const data = await (this.#binary ? response.arrayBuffer() : response.text())
        const { status } = response
        // The response may be from a proxy.
        const fromServer = poll ? response.headers.has('Halley-Seq') : status === 204
        if (fromServer || (status >= 400 && status < 500 && status !== 408 && status !== 429)) {
          return { status, headers: response.headers, data }
        }
      } catch {
        // No connection, or timeout: retried below.
      } finally {
        clearTimeout(timer)
      }
      const now = Date.now()
      const limit = openingHeaders !== undefined || this.readyState === CLOSED ? 0 : RETRY_TIMEOUT
      if (now - (failedAt ||= now) >= limit) return
      await new Promise(resolve => setTimeout(resolve, delay * (0.5 + Math.random() / 2)))
      delay = Math.min(delay * 2, MAX_DELAY)
    }
  }

  #sendClose() {
    if (this.#ended || this.readyState === CONNECTING) return
    this.#ended = true
    fetch(`${this.#endpoint}&close=1`, { method: 'POST', keepalive: true }).catch(() => {})
  }

  /** The connection is lost: `error`, then `close` with 1006. */
  #fail() {
    this.#ended = true
    if (this.readyState === CLOSED) return
    this.dispatchEvent(new Event('error'))
    this.#end(1006)
  }

  /** Dispatches `close`, once. @param {number} code @param {string} [reason] */
  #end(code, reason = '') {
    if (this.readyState === CLOSED) return
    this.readyState = CLOSED
    this.#polling?.abort()
    globalThis.removeEventListener?.('pagehide', this.#onPageHide)
    // Not every platform has a CloseEvent.
    this.dispatchEvent(Object.assign(new Event('close'), { code, reason, wasClean: code !== 1006 }))
  }
}

Object.assign(LongPollSocket, STATES)
Object.assign(LongPollSocket.prototype, STATES)
