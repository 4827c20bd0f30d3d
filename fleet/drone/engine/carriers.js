import { Agent as HttpAgent, request as httpRequest } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'

/** @typedef {import('./lane.js').Fault} Fault */
/** @typedef {import('../transport/dialer.js').Connection} Connection */

/** ms until a batch has failed. */
const TIMEOUT = 10_000

/** Publishes over the server API: one keep-alive connection, to the next target after each failure. */
export class ApiCarrier {
  #targets
  #turn
  #headers
  #agents = [
    new HttpAgent({ keepAlive: true, maxSockets: 1 }),
    new HttpsAgent({ keepAlive: true, maxSockets: 1 }),
  ]

  /**
   * @param {string[]} targets base URLs
   * @param {number} turn which one is the first
   * @param {string} key
   */
  constructor(targets, turn, key) {
    this.#targets = targets
    this.#turn = turn
    this.#headers = { 'X-API-Key': key, 'Content-Type': 'application/json' }
  }

  /**
   * @param {string[]} publications JSON of publish requests
   * @returns {Promise<Fault[]>}
   */
  send(publications) {
    const url = `${this.#targets[this.#turn % this.#targets.length]}/api/batch`
    const body = `{"commands":[${publications.map(text => `{"publish":${text}}`).join()}]}`
    return this.#post(url, body).then(replies => {
      if (replies?.length !== publications.length) throw new Error('no reply for each command')
      return replies.map((/** @type {any} */ reply) => reply.error)
    })
  }

  /**
   * @param {string} url
   * @param {string} body
   * @returns {Promise<any[] | undefined>} replies
   */
  #post(url, body) {
    const secure = url.startsWith('https')
    return new Promise((resolve, reject) => {
      const fail = (/** @type {any} */ error) => {
        this.#turn++
        reject(error.code ? new Error(error.code) : error)
      }
      const headers = { ...this.#headers, 'Content-Length': Buffer.byteLength(body) }
      const options = { method: 'POST', headers, agent: this.#agents[secure ? 1 : 0], timeout: TIMEOUT }
      const sent = (secure ? httpsRequest : httpRequest)(url, options, response => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', part => {
          text += part
        })
        response.on('error', fail)
        response.on('end', () => {
          if (response.statusCode !== 200) return fail(new Error(`HTTP ${response.statusCode}`))
          try {
            resolve(JSON.parse(text).replies)
          } catch {
            fail(new Error('the answer is no JSON'))
          }
        })
      })
      sent.on('timeout', () => sent.destroy(new Error('timeout')))
      sent.on('error', fail)
      sent.end(body)
    })
  }

  close() {
    for (const agent of this.#agents) agent.destroy()
  }
}

/** Publishes with the commands of a client. It gets what its connection receives, and that it was closed. */
export class ClientCarrier {
  #dial
  /** @type {Connection | null} */
  #connection = null
  #ready = false
  #pong = false
  #text = ''
  /** @type {Fault[]} */
  #faults = []
  #left = 0
  /** @type {{resolve: (faults: Fault[]) => void, reject: (error: Error) => void} | null} */
  #waiting = null
  /** @type {NodeJS.Timeout | undefined} */
  #timer

  /** @param {() => Connection} dial */
  constructor(dial) {
    this.#dial = dial
  }

  /**
   * @param {string[]} publications
   * @returns {Promise<Fault[]>}
   */
  send(publications) {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
      this.#faults = publications.map(() => undefined)
      this.#left = publications.length
      this.#text = publications.map((text, n) => `{"id":${n + 2},"publish":${text}}`).join('\n')
      this.#timer = setTimeout(() => this.#fail('timeout'), TIMEOUT)
      if (this.#ready) this.#connection?.send(this.#text)
      else this.#connection ??= this.#dial()
    })
  }

  /** @param {any} reply */
  message(reply) {
    if (reply.id === 1) {
      if (reply.error) return this.#fail(`connect ${reply.error.code} ${reply.error.message}`)
      this.#ready = true
      this.#pong = reply.connect?.pong === true
      if (this.#waiting) this.#connection?.send(this.#text)
    } else if (reply.id > 1) {
      this.#faults[reply.id - 2] = reply.error
      if (--this.#left === 0) this.#settle()?.resolve(this.#faults)
    } else if (!reply.push && this.#pong) this.#connection?.send('{}')
  }

  #settle() {
    const waiting = this.#waiting
    this.#waiting = null
    clearTimeout(this.#timer)
    return waiting
  }

  /** @param {string} reason */
  #fail(reason) {
    this.close()
    this.#settle()?.reject(new Error(reason))
  }

  /** @param {Connection} connection @param {string} reason */
  closed(connection, reason) {
    if (connection === this.#connection) this.#fail(reason)
  }

  close() {
    clearTimeout(this.#timer)
    this.#connection?.close()
    this.#connection = null
    this.#ready = false
  }
}
