// One-way polls, each on a connection of its own, so that any worker may get it.

import http from 'node:http'
import { until } from './wait.js'

/**
 * @typedef {object} PollAnswer
 * @property {number} status
 * @property {http.IncomingHttpHeaders} headers
 * @property {string} text
 * @property {any} body parsed
 * @property {any[]} data of the publications
 * @property {string} cursor
 */

/**
 * @param {string} url
 * @param {{method?: string, headers?: Record<string, string>, body?: string | Buffer, signal?: AbortSignal}} [options]
 * @returns {Promise<PollAnswer>} rejects when the connection ends without a whole answer
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
        const body = text.startsWith('{') ? JSON.parse(text) : null
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

/**
 * @param {{url: string}} gateway
 * @param {Record<string, string | string[] | number | undefined>} params `channel` may be a list
 * @param {Parameters<typeof request>[1]} [options]
 */
export function poll(gateway, params, options) {
  return request(`${gateway.url}/connection/uni_poll?${query(params)}`, options)
}

/** @param {Record<string, string | string[] | number | undefined>} params */
export function query(params) {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(params))
    for (const one of [value].flat()) if (one !== undefined) query.append(name, String(one))
  return query
}

/**
 * @param {import('./gateway.js').TestGateway} gateway
 * @param {string} channel
 * @param {number} count
 * @returns {Promise<void>} when so many clients are there
 */
export async function clients(gateway, channel, count) {
  await until(async () => {
    const { channels } = (await gateway.api('channels', { pattern: channel })).result
    return (channels[channel]?.num_clients ?? 0) === count
  }, `${count} clients of ${channel}`)
}
