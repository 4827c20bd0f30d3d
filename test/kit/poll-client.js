// A client of two-way long-poll that speaks raw HTTP: what the tests of the protocol's details need.

import { once } from 'node:events'
import http from 'node:http'
import { post } from './stream-client.js'
import { within } from './wait.js'

const JSON_TYPE = { 'Content-Type': 'text/plain' }

/**
 * One session. Each POST goes out on a connection of its own, so that any worker may get it.
 */
export class PollClient {
  session = ''
  /** Number of the last message that it has. */
  seq = 0
  /** POSTs of commands. */
  sent = 0
  /** @type {any[]} parsed messages not taken yet */
  messages = []
  /** @type {string | null} how the server has ended the session */
  close = null
  /** @type {any} the connect result */
  connect = null
  #lastId = 0

  /** @param {string} url of the endpoint */
  constructor(url) {
    this.url = url
  }

  /** @param {{url: string}} gateway */
  static async open(gateway) {
    const client = new PollClient(`${gateway.url}/connection/poll`)
    client.#take(await post(client.url, '', JSON_TYPE))
    return client
  }

  /**
   * @param {{url: string}} gateway
   * @param {object} [request] of the connect command
   */
  static async connected(gateway, request = {}) {
    const client = await PollClient.open(gateway)
    const reply = await client.call('connect', request)
    if (reply.error) throw new Error(`connect: ${reply.error.code}`)
    client.connect = reply.connect
    return client
  }

  /** @param {string} params */
  at(params) {
    return `${this.url}?session=${this.session}&${params}`
  }

  /**
   * @param {string} params
   * @param {string} [body]
   */
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

  /**
   * @param {number} [timeout] s
   * @returns {Promise<any[]>} what came; also in `messages`
   */
  async poll(timeout = 5) {
    return this.#take(await this.post(`ack=${this.seq}&timeout=${timeout}`))
  }

  /** @param {object[]} commands */
  async send(...commands) {
    const body = commands.map(command => JSON.stringify(command)).join('\n')
    const { status, text } = await this.post(`send=${++this.sent}`, body)
    if (status !== 204) throw new Error(`HTTP ${status} ${text}`)
  }

  /**
   * @param {(message: any) => boolean} matches messages that do not match stay
   * @returns {Promise<any>} rejects when the session has ended first
   */
  next(matches) {
    return within(this.#next(matches), () => `a message; not taken yet: ${JSON.stringify(this.messages)}`)
  }

  /** @param {(message: any) => boolean} matches */
  async #next(matches) {
    for (;;) {
      const index = this.messages.findIndex(matches)
      if (index >= 0) return this.messages.splice(index, 1)[0]
      if (this.close) throw new Error(`closed with ${this.close}`)
      await this.poll()
    }
  }

  /**
   * @param {string} method
   * @param {object} [request]
   */
  async call(method, request = {}) {
    const id = ++this.#lastId
    await this.send({ id, [method]: request })
    return this.next(message => message.id === id)
  }

  /** @param {string} [type] of the push */
  async push(type) {
    return (await this.next(message => message.push && (!type || type in message.push))).push
  }

  /**
   * A poll whose answer never arrives: the connection is cut as soon as the server has written it, or at once.
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
    // Nothing of the answer is read.
    if (answered) await once(socket, 'readable')
    else await once(request, 'finish')
    const closed = once(socket, 'close')
    socket.destroy()
    await closed
  }
}
