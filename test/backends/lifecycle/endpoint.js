// A backend that takes the batches of the webhook.

import { createHmac } from 'node:crypto'
import { createServer } from 'node:http'
import { until } from '../../kit/wait.js'

/**
 * @typedef {{id: string, time: string, signature: string, body: string, events: any[]}} Batch
 * @typedef {(batch: Batch) => number | null} Answer status; null: no answer
 */

/** Takes batches, and answers them as it is told. */
export class Endpoint {
  /** @type {Batch[]} all that came, in order */
  batches = []
  /** @type {Answer} */
  answer = () => 204
  /** @param {import('node:http').Server} server */
  constructor(server) {
    this.server = server
    this.url = `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}/hook`
  }

  /** @param {any} t ends with this test */
  static async start(t) {
    const server = createServer((request, response) => {
      /** @type {Buffer[]} */
      const chunks = []
      request.on('data', chunk => chunks.push(chunk))
      request.on('error', () => {})
      request.on('end', () => endpoint.#received(request.headers, Buffer.concat(chunks).toString(), response))
    })
    await new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(undefined)))
    const endpoint = new Endpoint(server)
    t.teardown(() => {
      server.close()
      server.closeAllConnections()
    })
    return endpoint
  }

  /**
   * @param {import('node:http').IncomingHttpHeaders} headers
   * @param {string} body
   * @param {import('node:http').ServerResponse} response
   */
  #received(headers, body, response) {
    const batch = {
      id: String(headers['webhook-id']),
      time: String(headers['webhook-timestamp']),
      signature: String(headers['webhook-signature']),
      body,
      events: JSON.parse(body).events,
    }
    const status = this.answer(batch)
    if (status !== null) response.writeHead(status).end()
    this.batches.push(batch)
  }

  /** @param {() => boolean} condition @returns {Promise<void>} when it holds; it may hold after each batch */
  async until(condition) {
    await until(condition)
  }
}

/** @param {Batch} batch @param {Buffer | string} key @returns {string} what its signature should be */
export const signatureOf = ({ id, time, body }, key) =>
  `v1,${createHmac('sha256', key).update(`${id}.${time}.${body}`).digest('base64')}`
