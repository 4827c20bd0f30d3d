// Helpers of the overload tests.

import WebSocket from 'ws'

/**
 * @param {string} url @param {{ca?: string}} [options] PEM, for wss
 * @returns {Promise<{status: number, retryAfter: number}>} of a refused upgrade
 */
export function refusedUpgrade(url, options = {}) {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, options)
    socket.on('open', () => reject(new Error('it was accepted')))
    socket.on('error', reject)
    socket.on('unexpected-response', (_request, response) => {
      response.resume()
      resolve({
        status: Number(response.statusCode),
        retryAfter: Number(response.headers['retry-after']),
      })
    })
  })
}

/** Log lines of a worker. */
export const OVERLOADED = 'overloaded: refusing new connections'
export const RECOVERED = 'no longer overloaded: accepting new connections'
