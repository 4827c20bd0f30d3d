// A backend that receives the batches of the webhook.

import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'

/** @typedef {{id: string, time: string, signature: string, body: string, events: any[]}} Batch */

/** Receives batches. `answer` returns the status for a batch; null: no response. */
export class Endpoint {
  /** All that came, in order. @type {Batch[]} */
  batches = []
  /** @type {(batch: Batch) => number | null} */
  answer = () => 204

  /** @param {import('node:http').Server} server */
  constructor(server) {
    this.server = server
    this.url = `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}/hook`
  }

  /** @param {any} t ends with this test */
  static async start(t) {
    const server = createServer(async (request, response) => {
      const body = await text(request).catch(() => null)
      if (body === null) return
      const header = name => String(request.headers[`webhook-${name}`])
      const [id, time, signature] = [header('id'), header('timestamp'), header('signature')]
      const batch = { id, time, signature, body, events: JSON.parse(body).events }
      const status = endpoint.answer(batch)
      if (status !== null) response.writeHead(status).end()
      endpoint.batches.push(batch)
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const endpoint = new Endpoint(server)
    t.teardown(() => {
      server.close()
      server.closeAllConnections()
    })
    return endpoint
  }
}

/** @param {Batch} batch @param {Buffer | string} key @returns {string} its expected signature */
export const signatureOf = ({ id, time, body }, key) =>
  `v1,${createHmac('sha256', key).update(`${id}.${time}.${body}`).digest('base64')}`
