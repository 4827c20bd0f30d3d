// A real backend of event proxies: an HTTP server that records requests and responds as the test requires.

import { once } from 'node:events'
import { createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { until } from '../../kit/wait.js'

/** @typedef {{method: string, path: string, headers: Record<string, any>, rawHeaders: string[], body: string,
 *   event: string, json: any, aborted: Promise<void>}} Request `event`: last segment of the path */
/** @typedef {{status?: number, headers?: Record<string, string>, body?: string | Buffer}} Reply */
/** @typedef {(request: Request, response: import('node:http').ServerResponse) => Reply | null | Promise<Reply | null>}
 *   Answer null: the function has answered itself, or never does */

export const json = value => ({ body: JSON.stringify(value) })

export const result = result => json({ result })

export class Backend {
  /** @type {Request[]} */
  requests = []
  /** @type {Answer} */
  answer = () => ({ body: '{}' })
  /** Sockets opened so far. */
  connections = 0
  url = ''
  #server

  constructor(tls) {
    const listener = (request, response) => this.#receive(request, response)
    this.#server = tls ? createTlsServer(tls, listener) : createServer(listener)
    this.#server.on(tls ? 'secureConnection' : 'connection', () => this.connections++)
    // Requests of clients that disconnect.
    this.#server.on('clientError', (_error, socket) => socket.destroy())
  }

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

  async #receive(message, response) {
    const aborted = once(response, 'close').then(() => {})
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
    const reply = await this.answer(request, response)
    if (reply === null) return
    const { status = 200, headers = {}, body: answered = '' } = reply
    response.writeHead(status, headers).end(answered)
  }

  /** @param {(request: Request) => boolean} matches @returns {Promise<Request>} the first match, past or future */
  request(matches) {
    return until(() => this.requests.find(matches))
  }
}
