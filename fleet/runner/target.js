// The server that is loaded, when it is not one that the run has started.

import { connect } from 'node:net'
import { RunError } from './run-error.js'

const PATIENCE = 5000

/**
 * @param {string} url
 * @returns {{host: string, port: number}}
 */
function hostOf(url) {
  const { hostname, port, protocol } = new URL(url)
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) || (protocol === 'https:' ? 443 : 80) }
}

/** @param {string} url @returns {boolean} whether it is on this machine, whatever the network */
export const isLoopback = url => /^(?:127\.|localhost$|::1$)/.test(hostOf(url).host)

/**
 * @param {string[]} urls
 * @returns {string[]} `host:port`, as drones are allowed to connect to
 */
export const allowedOf = urls =>
  urls.map(hostOf).map(({ host, port }) => (host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`))

/** @type {Record<string, string>} */
const REASONS = {
  ECONNREFUSED: 'nobody listens there',
  ENOTFOUND: 'there is no such host',
  EAI_AGAIN: 'the name cannot be looked up',
  EHOSTUNREACH: 'there is no way to that host',
  ENETUNREACH: 'there is no way to that network',
  ETIMEDOUT: 'no answer',
}

/**
 * @param {string} url
 * @returns {Promise<void>}
 * @throws {RunError} nobody is there
 */
export function reach(url) {
  return new Promise((resolve, reject) => {
    const socket = connect(hostOf(url))
    const fail = (/** @type {string} */ code) => {
      socket.destroy()
      const reason = REASONS[code]
      reject(new RunError(`${url} cannot be reached: ${code}${reason ? ` (${reason})` : ''}`))
    }
    socket.setTimeout(PATIENCE, () => fail('ETIMEDOUT'))
    // With several addresses there are several errors in one.
    socket.once('error', (/** @type {any} */ error) =>
      fail(error.code ?? error.errors?.[0]?.code ?? error.message),
    )
    socket.once('connect', () => {
      socket.destroy()
      resolve()
    })
  })
}
