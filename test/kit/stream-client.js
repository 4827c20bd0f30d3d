// Clients of the HTTP transports: a streaming response, and posts to the emulation endpoint.

import http from 'node:http'
import { ProtocolClient } from './protocol-client.js'
import { request } from './uni-poll-client.js'
import { until } from './wait.js'

/**
 * Posts on a new connection, so any worker may receive it.
 * @param {string} url @param {string | Buffer} body @param {Record<string, string>} [headers] @param {string} [method]
 */
export const post = (url, body, headers = { 'Content-Type': 'application/json' }, method = 'POST') =>
  request(url, { method, headers, body })

export class StreamClient extends ProtocolClient {
  /** @type {Buffer[]} */
  chunks = []
  /** @type {string[]} ids of events */
  ids = []
  #rest = ''
  #sse

  /** @param {http.ClientRequest} request @param {http.IncomingMessage} response @param {string} base */
  constructor(request, response, base) {
    super()
    this.request = request
    this.response = response
    this.base = base
    this.#sse = (response.headers['content-type'] ?? '').startsWith('text/event-stream')
    response.on('data', chunk => this.#take(chunk))
    /** @type {Promise<void>} */
    this.closed = new Promise(resolve => {
      const end = () => {
        this.left('the stream has ended')
        resolve()
      }
      response.on('close', end)
      response.on('error', end)
    })
  }

  /**
   * @param {string} base `http://host:port` @param {string} path
   * @param {{method?: string, body?: string | Buffer, headers?: Record<string, string>}} [options]
   * @returns {Promise<StreamClient>} when the headers are received
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
   * @param {string} base @param {'http_stream' | 'sse'} transport
   * @param {object} [connect] request @param {object} [options]
   */
  static async connected(base, transport, connect = {}, options = {}) {
    const command = JSON.stringify({ id: 1, connect })
    const client =
      transport === 'sse'
        ? await StreamClient.open(base, `/connection/sse?cf_connect=${encodeURIComponent(command)}`, options)
        : await StreamClient.open(base, '/connection/http_stream', {
            method: 'POST',
            body: command,
            ...options,
          })
    client.lastId = 1
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
    this.received(parts.flatMap(part => this.#messages(part)))
  }

  /** @param {string} part a line, or an event */
  #messages(part) {
    if (!this.#sse) return [JSON.parse(part)]
    const messages = []
    for (const line of part.split('\n')) {
      if (line.startsWith('id: ')) this.ids.push(line.slice(4))
      if (line.startsWith('data: ')) messages.push(JSON.parse(line.slice(6)))
    }
    return messages
  }

  /** Resolves with the id of the last event. */
  async id() {
    await until(() => this.ids.length > 0)
    return /** @type {string} */ (this.ids.at(-1))
  }

  /** @param {...object} commands in one post */
  async send(...commands) {
    const { status } = await this.sendText(commands.map(command => JSON.stringify(command)).join('\n'))
    if (status !== 204) throw new Error(`HTTP ${status}`)
  }

  /** @param {string} data framed commands */
  sendText(data) {
    const { session, node } = this.connect
    return post(`${this.base}/emulation`, JSON.stringify({ session, node, data }))
  }

  close() {
    this.request.destroy()
    return this.closed
  }
}
