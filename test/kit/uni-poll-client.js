// One-way polls, each on a new connection, so that any worker may receive it.

import http from 'node:http'
import { until } from './wait.js'

/**
 * @param {string} url
 * @param {{method?: string, headers?: Record<string, string>, body?: string | Buffer, signal?: AbortSignal}} [options]
 * @returns {Promise<{status: number, headers: http.IncomingHttpHeaders, text: string, body: any, data: any[], cursor:
 *   string}>} `body`: parsed; `data` of its publications; rejects if the response is cut
 */
export function request(url, { method = 'GET', headers = {}, body = '', signal } = {}) {
  return new Promise((resolve, reject) => {
    const sent = http.request(url, { method, headers, agent: false, signal }, response => {
      /** @type {Buffer[]} */
      const chunks = []
      response.on('data', chunk => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        // Excludes a two-way poll's JSON lines.
        const body = /^{.*\n?$/.test(text) ? JSON.parse(text) : null
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text,
          body,
          data: body?.publications?.map((/** @type {any} */ { data }) => data) ?? [],
          cursor: body?.cursor ?? '',
        })
      })
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

/** @typedef {Record<string, string | string[] | number | undefined>} Params `channel` may be a list */

/** @param {{url: string}} gateway @param {Params} params @param {Parameters<typeof request>[1]} [options] */
export function poll(gateway, params, options) {
  return request(`${gateway.url}/connection/uni_poll?${query(params)}`, options)
}

/** @param {Params} params */
export function query(params) {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(params))
    for (const one of [value].flat()) if (one !== undefined) query.append(name, String(one))
  return query
}

/**
 * Waits for `count` clients.
 * @param {import('./gateway.js').TestGateway} gateway @param {string} channel @param {number} count
 */
export async function clients(gateway, channel, count) {
  await until(async () => {
    const { channels } = (await gateway.api('channels', { pattern: channel })).result
    return (channels[channel]?.num_clients ?? 0) === count
  }, `${count} clients of ${channel}`)
}
