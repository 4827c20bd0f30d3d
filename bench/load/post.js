import { request } from 'node:http'

/**
 * Calls the server API.
 * @param {import('./load.js').Api} api
 * @param {string} method
 * @param {string} body JSON
 * @returns {Promise<boolean>} whether it was done; rejects when there is nobody to answer
 */
export function post({ host, port, key }, method, body) {
  return new Promise((resolve, reject) => {
    const sent = request(
      { host, port, path: `/api/${method}`, method: 'POST', headers: { 'X-API-Key': key } },
      response => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', chunk => {
          text += chunk
        })
        response.on('end', () => resolve(response.statusCode === 200 && !text.startsWith('{"error"')))
      },
    )
    sent.on('error', reject)
    sent.end(body)
  })
}
