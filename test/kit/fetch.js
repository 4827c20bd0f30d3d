// A small `fetch` over node:http: the first call of Node.js's fetch takes 0.15 s of CPU per process.

import http from 'node:http'

/** Closes idle connections before a server does. */
const agent = new http.Agent({ keepAlive: true, timeout: 3000 })

/**
 * @typedef {object} Answer
 * @property {number} status
 * @property {{get: (name: string) => string | null}} headers
 * @property {() => Promise<string>} text
 * @property {() => Promise<any>} json
 */

/** @typedef {{method?: string, headers?: Record<string, string>, body?: string | Buffer, signal?: AbortSignal}} Init */

/**
 * Keeps connections for later requests, and follows no redirects.
 * @param {string} url of http @param {Init} [init] `signal`: until the headers are received
 * @returns {Promise<Answer>} when the headers are received
 */
export function fetch(url, { method = 'GET', headers = {}, body, signal } = {}) {
  // An agent keeps the connection if the response lacks `close`.
  const kept = headers.Connection !== 'close' && agent
  return new Promise((resolve, reject) => {
    const request = http.request(url, { method, headers, agent: kept, signal }, response => {
      const text = new Promise((resolve, reject) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', part => (text += part))
        response.once('end', () => resolve(text))
        response.on('error', reject)
      })
      // It may stay unread.
      text.catch(() => {})
      resolve({
        status: /** @type {number} */ (response.statusCode),
        headers: { get: name => /** @type {string} */ (response.headers[name.toLowerCase()]) ?? null },
        text: () => text,
        json: () => text.then(JSON.parse),
      })
    })
    request.on('error', error => {
      // The server closed the idle connection at the same time: Node.js does not retry.
      const missed = request.reusedSocket && /^(?:ECONNRESET|EPIPE)$/.test(/** @type {any} */ (error).code)
      if (missed && !signal?.aborted) resolve(fetch(url, { method, headers, body, signal }))
      else reject(error)
    })
    request.end(body)
  })
}
