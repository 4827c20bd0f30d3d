// What the tests of primary and workers share.

import http from 'node:http'
import { connect } from 'node:net'
import { RawClient } from './raw-client.js'
import { until } from './wait.js'

export const open = { allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true }
export const kept = { history_size: 100, history_ttl: '10m', force_recovery: true }
export const config = {
  client: { allow_anonymous_connect_without_token: true },
  channel: { without_namespace: { ...open, ...kept } },
}

/** Clients enough that each of two workers has some. */
export async function crowd(gateway, count = 24) {
  return Promise.all(Array.from({ length: count }, () => RawClient.connected(gateway.ws)))
}

/** Health, as the first worker says that takes the connection; 0 when none did. */
export function health(gateway) {
  return new Promise(resolve => {
    const request = http.get(`${gateway.url}/health`, { agent: false }, answer => {
      answer.resume()
      resolve(answer.statusCode)
    })
    request.on('error', () => resolve(0))
  })
}

/** Resolves when the gateway is healthy: workers learn a moment late that all listen; samples may be late. */
export const healthy = gateway => until(async () => (await health(gateway)) === 200)

/** Resolves when nobody listens on the port any more. */
export const silence = port =>
  until(
    () =>
      new Promise(resolve => {
        const socket = connect(port, '127.0.0.1', () => {
          socket.destroy()
          resolve(false)
        })
        socket.on('error', (/** @type {NodeJS.ErrnoException} */ { code }) =>
          resolve(code === 'ECONNREFUSED'),
        )
      }),
  )

/** One connection to the API, on the worker that took it. */
export class ApiLine {
  #url
  #agent = new http.Agent({ keepAlive: true, maxSockets: 1 })

  constructor(url) {
    this.#url = url
  }

  call(method, params) {
    return new Promise((resolve, reject) => {
      const request = http.request(
        `${this.#url}/api/${method}`,
        { method: 'POST', agent: this.#agent, headers: { 'X-API-Key': 'key' } },
        async answer => {
          let text = ''
          for await (const chunk of answer) text += chunk
          resolve(JSON.parse(text))
        },
      )
      request.on('error', reject)
      request.end(JSON.stringify(params))
    })
  }

  close() {
    this.#agent.destroy()
  }
}
