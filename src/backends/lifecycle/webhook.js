import { createHmac } from 'node:crypto'
import * as http from 'node:http'
import * as https from 'node:https'

/** @import { Destination } from './sink.js' */

/** Bytes of an answer that are read; its text is not used. */
const MAX_ANSWER = 64 * 1024
const TOO_LARGE = 413

/** @param {string} secret @returns {Buffer} key of the signature */
export function keyOf(secret) {
  return secret.startsWith('whsec_')
    ? Buffer.from(secret.slice('whsec_'.length), 'base64')
    : Buffer.from(secret)
}

/**
 * Posts batches of records. Signed as the specification "Standard Webhooks" has it
 * (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md): HMAC-SHA256 of id, time
 * and body. A batch keeps its id when it is posted again. `node:http`: one connection to one server needs no client.
 * @implements {Destination}
 */
export class WebhookDestination {
  name = 'webhook'
  #url
  #key
  #timeout
  #node
  #clock
  #client
  #agent
  #number = 0
  /** The batch that has an id. */
  #batch = ''

  /**
   * @param {{url: string, secret: string, batch_size: number, timeout: number}} options `lifecycle.webhook`
   * @param {string} node id of this node @param {() => number} clock unix ms
   */
  constructor({ url, secret, batch_size, timeout }, node, clock) {
    this.batchSize = batch_size
    this.#url = new URL(url)
    this.#key = keyOf(secret)
    this.#timeout = timeout
    this.#node = node
    this.#clock = clock
    this.#client = this.#url.protocol === 'https:' ? https : http
    this.#agent = new this.#client.Agent({ keepAlive: true, maxSockets: 1 })
  }

  /** @type {Destination['write']} */
  async write(records) {
    const body = Buffer.from(`{"events":[${records.join(',')}]}`)
    const batch = `${records.length} ${records[0]}`
    if (batch !== this.#batch) {
      this.#batch = batch
      this.#number++
    }
    const id = `msg_${this.#node}_${this.#number}`
    const time = String(Math.floor(this.#clock() / 1000))
    const signature = createHmac('sha256', this.#key).update(`${id}.${time}.`).update(body).digest('base64')
    const status = await this.#post(body, {
      'Content-Type': 'application/json',
      'Content-Length': body.length,
      'User-Agent': 'halley',
      'webhook-id': id,
      'webhook-timestamp': time,
      'webhook-signature': `v1,${signature}`,
    })
    if (status >= 200 && status < 300) {
      this.#batch = ''
      return
    }
    throw Object.assign(new Error(`HTTP status ${status}`), { tooLarge: status === TOO_LARGE })
  }

  /** @param {Buffer} body @param {Record<string, string | number>} headers @returns {Promise<number>} status */
  #post(body, headers) {
    return new Promise((resolve, reject) => {
      const request = this.#client.request(this.#url, { method: 'POST', headers, agent: this.#agent })
      const late = setTimeout(
        () => request.destroy(new Error(`no answer within ${this.#timeout} ms`)),
        this.#timeout,
      )
      request.on('error', error => {
        clearTimeout(late)
        reject(error)
      })
      // Nobody has asked for another protocol.
      request.on('upgrade', ({ statusCode }, socket) => {
        clearTimeout(late)
        socket.destroy()
        resolve(/** @type {number} */ (statusCode))
      })
      request.on('response', response => {
        let bytes = 0
        response.on('data', chunk => {
          bytes += chunk.length
          if (bytes > MAX_ANSWER) request.destroy()
        })
        response.on('error', () => {})
        response.on('close', () => {
          clearTimeout(late)
          resolve(/** @type {number} */ (response.statusCode))
        })
      })
      request.end(body)
    })
  }

  async close() {
    this.#agent.destroy()
  }
}
