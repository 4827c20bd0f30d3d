// A real backend of event proxies: an HTTP server that records the requests, and answers as a test says.

import { once } from 'node:events'
import { createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'

/** @typedef {{method: string, path: string, headers: Record<string, any>, rawHeaders: string[], body: string,
 *   event: string, json: any, aborted: Promise<void>}} Request `event`: last segment of the path */
/** @typedef {{status?: number, headers?: Record<string, string>, body?: string | Buffer}} Reply */
/** @typedef {(request: Request, response: import('node:http').ServerResponse) => Reply | null | Promise<Reply | null>}
 *   Answer null: the function has answered itself, or never does */

/** @param {any} value @returns {Reply} */
export const json = value => ({ body: JSON.stringify(value) })

/** @param {unknown} result @returns {Reply} */
export const result = result => json({ result })

export class Backend {
  /** @type {Request[]} */
  requests = []
  /** @type {Answer} */
  answer = () => ({ body: '{}' })
  /** Sockets that were opened. */
  connections = 0
  url = ''
  #server
  /** @type {Set<{matches: (request: Request) => boolean, resolve: (request: Request) => void}>} */
  #waiting = new Set()

  /** @param {import('node:https').ServerOptions | null} tls */
  constructor(tls) {
    const listener = (/** @type {any} */ request, /** @type {any} */ response) =>
      this.#receive(request, response)
    this.#server = tls ? createTlsServer(tls, listener) : createServer(listener)
    this.#server.on(tls ? 'secureConnection' : 'connection', () => this.connections++)
    // Requests of clients that leave.
    this.#server.on('clientError', (_error, socket) => socket.destroy())
  }

  /**
   * @param {import('tap').Test} t @param {import('node:https').ServerOptions | null} [tls]
   * @returns {Promise<Backend>}
   */
  static async start(t, tls = null) {
    const backend = new Backend(tls)
    backend.#server.listen(0, '127.0.0.1')
    await once(backend.#server, 'listening')
    t.teardown(() => backend.stop())
    backend.url = `${tls ? 'https://localhost' : 'http://127.0.0.1'}:${backend.port}`
    return backend
  }

  get port() {
    return /** @type {import('node:net').AddressInfo} */ (this.#server.address()).port
  }

  stop() {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  /** @param {import('node:http').IncomingMessage} message @param {import('node:http').ServerResponse} response */
  async #receive(message, response) {
    const aborted = once(response, 'close').then(() => {})
    /** @type {Buffer[]} */
    const chunks = []
    try {
      for await (const chunk of message) chunks.push(chunk)
    } catch {
      return
    }
    const body = Buffer.concat(chunks).toString()
    const path = message.url ?? ''
    /** @type {Request} */
    const request = {
      method: message.method ?? '',
      path,
      headers: message.headers,
      rawHeaders: message.rawHeaders,
      body,
      event: path.replace(/\?.*/, '').replace(/.*\//, ''),
      json: body === '' ? undefined : JSON.parse(body),
      aborted,
    }
    this.requests.push(request)
    for (const waiting of this.#waiting) {
      if (!waiting.matches(request)) continue
      this.#waiting.delete(waiting)
      waiting.resolve(request)
    }
    const reply = await this.answer(request, response)
    if (reply === null) return
    const { status = 200, headers = {}, body: answered = '' } = reply
    response.writeHead(status, headers).end(answered)
  }

  /**
   * @param {(request: Request) => boolean} matches
   * @returns {Promise<Request>} the first one that does, past or future
   */
  request(matches) {
    const found = this.requests.find(matches)
    if (found !== undefined) return Promise.resolve(found)
    return new Promise(resolve => this.#waiting.add({ matches, resolve }))
  }
}
