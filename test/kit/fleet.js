// Helpers for tests of the primary and the workers.

import http from 'node:http'
import { connect } from 'node:net'
import { RawClient } from './raw-client.js'
import { request } from './uni-poll-client.js'
import { until } from './wait.js'

export const open = { allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true }
export const kept = { history_size: 100, history_ttl: '10m', force_recovery: true }
export const config = {
  client: { allow_anonymous_connect_without_token: true },
  channel: { without_namespace: { ...open, ...kept } },
}

/** Connects so many clients that each of two workers usually has some. */
export async function crowd(gateway, count = 24) {
  return Promise.all(Array.from({ length: count }, () => RawClient.connected(gateway.ws)))
}

/** @returns {Promise<number>} status of /health of any worker; 0: no response */
export const health = gateway =>
  request(`${gateway.url}/health`).then(
    ({ status }) => status,
    () => 0,
  )

/** Waits for /health to return 200: workers learn with a delay that all are listening. */
export const healthy = gateway => until(async () => (await health(gateway)) === 200)

/** Resolves when connections to the port are refused. */
export const silence = port =>
  until(
    () =>
      new Promise(resolve => {
        const socket = connect(port, '127.0.0.1', () => {
          socket.destroy()
          resolve(false)
        })
        socket.on('error', (/** @type {any} */ { code }) => resolve(code === 'ECONNREFUSED'))
      }),
  )

/** API calls over one connection, to one worker. */
export class ApiLine {
  #url
  #agent = new http.Agent({ keepAlive: true, maxSockets: 1 })

  constructor(url) {
    this.#url = url
  }

  call(method, params) {
    return new Promise((resolve, reject) => {
      const sent = http.request(
        `${this.#url}/api/${method}`,
        { method: 'POST', agent: this.#agent, headers: { 'X-API-Key': 'key' } },
        async answer => {
          let text = ''
          for await (const chunk of answer) text += chunk
          resolve(JSON.parse(text))
        },
      )
      sent.on('error', reject)
      sent.end(JSON.stringify(params))
    })
  }

  close() {
    this.#agent.destroy()
  }
}
