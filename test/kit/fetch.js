// What tests need of `fetch`, made of node:http: the first call of Node.js's own takes 0.15 s of CPU in each process.

import http from 'node:http'

/** Idle connections close before the servers would close them, as those of `fetch` do: no request meets that moment. */
const agent = new http.Agent({ keepAlive: true, timeout: 3000 })

/**
 * @typedef {object} Answer
 * @property {number} status
 * @property {{get: (name: string) => string | null}} headers
 * @property {() => Promise<string>} text
 * @property {() => Promise<any>} json
 */

/**
 * @typedef {object} Init
 * @property {string} [method]
 * @property {Record<string, string>} [headers]
 * @property {string | Buffer} [body]
 * @property {AbortSignal} [signal] until the headers have come
 */

/**
 * Connections are kept for later requests, as those of `fetch` are. Redirects are not followed.
 * @param {string} url of http @param {Init} [init]
 * @returns {Promise<Answer>} when its headers have come; rejects with the error of the connection
 */
export function fetch(url, { method = 'GET', headers = {}, body, signal } = {}) {
  // An agent would keep the connection if the answer does not repeat `close`.
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
      // Not everybody reads it.
      text.catch(() => {})
      resolve({
        status: /** @type {number} */ (response.statusCode),
        headers: { get: name => /** @type {string} */ (response.headers[name.toLowerCase()]) ?? null },
        text: () => text,
        json: () => text.then(JSON.parse),
      })
    })
    request.on('error', error => {
      // The server has closed an idle connection at the moment of its use: Node.js leaves the repetition to its user.
      const missed = request.reusedSocket && /^(?:ECONNRESET|EPIPE)$/.test(/** @type {any} */ (error).code)
      if (missed && !signal?.aborted) resolve(fetch(url, { method, headers, body, signal }))
      else reject(error)
    })
    request.end(body)
  })
}
