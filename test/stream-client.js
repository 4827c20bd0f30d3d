// Clients of the HTTP transports: a response that goes on, posts to the emulation endpoint.

import http from 'node:http'

/**
 * Posts on a connection of its own, so that any worker may get it.
 * @param {string} url
 * @param {string | Buffer} body
 * @param {Record<string, string>} [headers]
 * @param {string} [method]
 * @returns {Promise<{status: number, headers: http.IncomingHttpHeaders, text: string}>}
 */
export function post(url, body, headers = { 'Content-Type': 'application/json' }, method = 'POST') {
  return new Promise((resolve, reject) => {
    const request = http.request(url, { method, headers, agent: false }, response => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', chunk => {
        text += chunk
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }))
    })
    request.on('error', reject)
    request.end(body)
  })
}

/**
 * One stream. Every message is kept in order; `next` takes them one by one.
 */
export class StreamClient {
  /** @type {any[]} parsed messages not taken yet; pings are `{}` */
  messages = []
  /** @type {Buffer[]} the chunks as they came */
  chunks = []
  /** @type {string[]} ids of events */
  ids = []
  /** @type {any} the connect result */
  connect = null
  ended = false
  #wake = () => {}
  #lastId = 0
  #rest = ''
  #sse

  /**
   * @param {http.ClientRequest} request
   * @param {http.IncomingMessage} response
   * @param {string} base
   */
  constructor(request, response, base) {
    this.request = request
    this.response = response
    this.base = base
    this.#sse = (response.headers['content-type'] ?? '').startsWith('text/event-stream')
    response.on('data', chunk => this.#take(chunk))
    /** @type {Promise<void>} */
    this.closed = new Promise(resolve => {
      const end = () => {
        this.ended = true
        this.#wake()
        resolve()
      }
      response.on('close', end)
      response.on('error', end)
    })
  }

  /**
   * @param {string} base `http://host:port`
   * @param {string} path
   * @param {{method?: string, body?: string | Buffer, headers?: Record<string, string>}} [options]
   * @returns {Promise<StreamClient>} when the head is there
   */
  static open(base, path, { method = 'GET', body = '', headers = {} } = {}) {
    return new Promise((resolve, reject) => {
      const request = http.request(base + path, { method, headers, agent: false }, response =>
        resolve(new StreamClient(request, response, base)),
      )
      request.on('error', reject)
      request.end(body)
    })
  }

  /**
   * A connected two-way client.
   * @param {string} base
   * @param {'http_stream' | 'sse'} transport
   * @param {object} [request] of the connect command
   * @param {object} [options]
   */
  static async connected(base, transport, request = {}, options = {}) {
    const command = JSON.stringify({ id: 1, connect: request })
    const client =
      transport === 'sse'
        ? await StreamClient.open(base, `/connection/sse?cf_connect=${encodeURIComponent(command)}`, options)
        : await StreamClient.open(base, '/connection/http_stream', {
            method: 'POST',
            body: command,
            ...options,
          })
    client.#lastId = 1
    const reply = await client.next(message => message.id === 1)
    if (reply.error) throw new Error(`connect: ${reply.error.code}`)
    client.connect = reply.connect
    return client
  }

  /** @param {Buffer} chunk */
  #take(chunk) {
    this.chunks.push(chunk)
    const end = this.#sse ? '\n\n' : '\n'
    const parts = (this.#rest + chunk.toString()).replace(/^\r\n/, '').split(end)
    this.#rest = /** @type {string} */ (parts.pop())
    for (const part of parts) this.#message(part)
    this.#wake()
  }

  /** @param {string} part a line, or an event */
  #message(part) {
    if (!this.#sse) {
      this.messages.push(JSON.parse(part))
      return
    }
    for (const line of part.split('\n')) {
      if (line.startsWith('id: ')) this.ids.push(line.slice(4))
      if (line.startsWith('data: ')) this.messages.push(JSON.parse(line.slice(6)))
    }
  }

  /**
   * @param {(message: any) => boolean} [matches] messages that do not match stay
   * @returns {Promise<any>} rejects when the stream ends first
   */
  async next(matches = () => true) {
    for (;;) {
      const index = this.messages.findIndex(matches)
      if (index >= 0) return this.messages.splice(index, 1)[0]
      if (this.ended) throw new Error('the stream has ended')
      await new Promise(resolve => {
        this.#wake = () => resolve(undefined)
      })
    }
  }

  /** Waits until an event with an id has come. @returns {Promise<string>} */
  async id() {
    while (this.ids.length === 0) {
      await new Promise(resolve => {
        this.#wake = () => resolve(undefined)
      })
    }
    return /** @type {string} */ (this.ids.at(-1))
  }

  /** @param {object[]} commands in one post */
  send(...commands) {
    return this.sendText(commands.map(command => JSON.stringify(command)).join('\n'))
  }

  /** @param {string} data framed commands */
  sendText(data) {
    const { session, node } = this.connect
    return post(`${this.base}/emulation`, JSON.stringify({ session, node, data }))
  }

  /**
   * Sends a command and waits for its reply.
   * @param {string} method
   * @param {object} request
   */
  async call(method, request = {}) {
    const id = ++this.#lastId
    const { status } = await this.send({ id, [method]: request })
    if (status !== 204) throw new Error(`HTTP ${status}`)
    return this.next(message => message.id === id)
  }

  /**
   * @param {string} channel
   * @param {object} [request]
   */
  async subscribe(channel, request = {}) {
    return this.call('subscribe', { channel, ...request })
  }

  /** @param {string} [type] of the push */
  async push(type) {
    return (await this.next(message => message.push && (!type || type in message.push))).push
  }

  close() {
    this.request.destroy()
    return this.closed
  }
}
