import { connect } from 'node:tls'
import { Line } from './line.js'
import { HANDSHAKE, keyOf, meaningOf } from './psk.js'

/**
 * @param {object} options
 * @param {string} options.host
 * @param {number} options.port
 * @param {string} options.secret of the run
 * @param {string} options.identity `run/id` of this side
 * @param {number} [options.timeout] ms
 * @returns {Promise<Line>} both sides have proven that they know the secret
 * @throws {Error} with one line
 */
export function dialLink({ host, port, secret, identity, timeout = HANDSHAKE }) {
  return new Promise((resolve, reject) => {
    const psk = keyOf(secret)
    let fault = 'closed during the handshake'
    const socket = connect({
      host,
      port,
      minVersion: 'TLSv1.3',
      pskCallback: () => ({ psk, identity }),
      // The key stands for who the other side is: one with a certificate, whoever has signed it, has not proven anything.
      checkServerIdentity: (_, { subject }) =>
        subject ? new Error('a certificate is no secret') : undefined,
      ca: [],
    })
    const timer = setTimeout(() => socket.destroy(new Error(`no answer within ${timeout / 1000} s`)), timeout)
    socket.on('error', error => {
      fault = meaningOf(error)
    })
    socket.on('close', () => {
      clearTimeout(timer)
      reject(new Error(`${host}:${port}: ${fault}`))
    })
    socket.on('secureConnect', () => {
      clearTimeout(timer)
      resolve(new Line(socket, identity))
    })
  })
}
