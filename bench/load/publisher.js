import { connect } from 'node:net'

/** @typedef {import('./publishers.js').Publishers} Publishers */

/** One keep-alive connection to the HTTP API, with one request under way at a time, so that its channels keep their order. */
export class Publisher {
  /** @type {number} when the request under way was sent, microseconds; 0: none is */
  #sentAt = 0
  #channel = 0
  #answer = ''
  #group
  #api
  #head
  /** @type {import('node:net').Socket} */
  #socket

  /**
   * @param {Publishers} group
   * @param {import('./load.js').Api} api
   * @param {() => void} done when it is connected
   */
  constructor(group, api, done) {
    this.#group = group
    this.#api = api
    this.#head =
      `POST /api/publish HTTP/1.1\r\nHost: ${api.host}:${api.port}\r\nContent-Type: application/json\r\n` +
      `X-API-Key: ${api.key}\r\nContent-Length: `
    this.#socket = this.#open(done)
  }

  /** @param {() => void} [done] */
  #open(done) {
    const socket = connect({
      host: this.#api.host,
      port: this.#api.port,
      noDelay: true,
      onread: { buffer: this.#group.buffer, callback: length => this.#read(length) },
    })
    if (done) socket.once('connect', done)
    socket.on('error', () => {})
    socket.on('close', () => this.#closed())
    return socket
  }

  /**
   * @param {number} channel
   * @param {string} body
   * @param {number} now microseconds
   */
  send(channel, body, now) {
    this.#channel = channel
    this.#sentAt = now
    this.#socket.write(`${this.#head}${body.length}\r\n\r\n${body}`, 'latin1')
  }

  /**
   * @param {number} length
   * @returns {boolean}
   */
  #read(length) {
    this.#answer += this.#group.buffer.toString('latin1', 0, length)
    const head = this.#answer.indexOf('\r\n\r\n')
    if (head < 0) return true
    const size = /content-length: *(\d+)/i.exec(this.#answer)
    if (size === null || this.#answer.length < head + 4 + Number(size[1])) return true
    const ok = this.#answer.startsWith('HTTP/1.1 2') && !this.#answer.includes('"error"', head)
    this.#done(ok, this.#answer)
    return true
  }

  /**
   * @param {boolean} ok
   * @param {string} answer
   */
  #done(ok, answer) {
    const sentAt = this.#sentAt
    this.#sentAt = 0
    this.#answer = ''
    this.#group.answered(this, this.#channel, ok, sentAt, answer)
  }

  #closed() {
    if (this.#group.ended) return
    this.#socket = this.#open()
    if (this.#sentAt > 0) this.#done(false, 'the connection was closed')
  }
}
