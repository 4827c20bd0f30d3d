// A two-way long-poll client that sends raw HTTP, for protocol details.

import { once } from 'node:events'
import http from 'node:http'
import { ProtocolClient } from './protocol-client.js'
import { post } from './stream-client.js'
import { within } from './wait.js'

const JSON_TYPE = { 'Content-Type': 'text/plain' }

/** One session. Each POST uses a new connection, so any worker may receive it. */
export class PollClient extends ProtocolClient {
  session = ''
  /** Number of the last message received. */
  seq = 0
  /** POSTs of commands. */
  sent = 0
  /** @type {string | null} close notice of the server */
  close = null

  /** @param {string} url of the endpoint */
  constructor(url) {
    super()
    this.url = url
  }

  /** @param {{url: string}} gateway */
  static async open(gateway) {
    const client = new PollClient(`${gateway.url}/connection/poll`)
    client.#take(await post(client.url, '', JSON_TYPE))
    return client
  }

  /** @param {{url: string}} gateway @param {object} [request] of the connect command */
  static async connected(gateway, request = {}) {
    const client = await PollClient.open(gateway)
    await client.login(request)
    return client
  }

  /** @param {string} params */
  at(params) {
    return `${this.url}?session=${this.session}&${params}`
  }

  /** @param {string} params */
  post(params, body = '') {
    return post(this.at(params), body, JSON_TYPE)
  }

  /** @param {{status: number, headers: any, text: string}} answer */
  #take({ status, headers, text }) {
    if (status !== 200) throw new Error(`HTTP ${status} ${text}`)
    this.session = headers['halley-session'] ?? this.session
    this.seq = Number(headers['halley-seq'])
    this.close = headers['halley-close'] ?? null
    const lines = text === '' ? [] : text.trimEnd().split('\n')
    const messages = lines.map(line => JSON.parse(line))
    this.messages.push(...messages)
    return messages
  }

  /** @param {number} [timeout] s @returns {Promise<any[]>} new messages; also in `messages` */
  async poll(timeout = 5) {
    return this.#take(await this.post(`ack=${this.seq}&timeout=${timeout}`))
  }

  /** @override @param {...object} commands */
  async send(...commands) {
    const body = commands.map(command => JSON.stringify(command)).join('\n')
    const { status, text } = await this.post(`send=${++this.sent}`, body)
    if (status !== 204) throw new Error(`HTTP ${status} ${text}`)
  }

  /** @override Polls. @param {(message: any) => boolean} [matches] */
  next(matches = () => true) {
    const find = async () => {
      while (!this.messages.some(matches)) {
        if (this.close) throw new Error(`closed with ${this.close}`)
        await this.poll()
      }
      return this.messages.splice(this.messages.findIndex(matches), 1)[0]
    }
    return within(find(), () => `a message; unread messages: ${JSON.stringify(this.messages)}`)
  }

  /**
   * A poll with a lost response: cuts the connection when the server has written it, or before.
   * @param {{answered: boolean, timeout?: number}} options
   */
  async lose({ answered, timeout = 5 }) {
    const request = http.request(this.at(`ack=${this.seq}&timeout=${timeout}`), {
      method: 'POST',
      agent: false,
    })
    request.on('error', () => {})
    request.end()
    const [socket] = await once(request, 'socket')
    // Leave the response unread.
    if (answered) await once(socket, 'readable')
    else await once(request, 'finish')
    const closed = once(socket, 'close')
    socket.destroy()
    await closed
  }
}
