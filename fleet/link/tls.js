// Opens links over TLS 1.3 with the run's secret as pre-shared key and without certificates: without the secret the
// handshake fails, on either side.

import { connect, createServer } from 'node:tls'
import { Link } from './link.js'

/** Handshake timeout, ms. */
const HANDSHAKE = 10_000
const MAX_HANDSHAKES = 256

/** @param {string} secret 64 hex digits */
const keyOf = secret => Buffer.from(secret, 'hex')

/** @param {NodeJS.ErrnoException} error of a TLS socket @returns {string} its meaning for a link */
function meaningOf({ code = '', message }) {
  if (/ALERT|BINDER|SIGNATURE|CERT/.test(code)) return 'the peer does not have the secret of this run'
  return /^ERR_SSL/.test(code) ? 'the peer does not use TLS' : code || message
}

/**
 * Resolves after mutual authentication by the secret.
 * @param {object} options @param {string} options.host @param {number} options.port
 * @param {string} options.secret of the run @param {string} options.identity `run/id` of this side
 * @param {number} [options.timeout] ms
 * @returns {Promise<Link>} @throws {Error} one line
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
      // Only the key proves the peer's identity; any certificate is refused.
      checkServerIdentity: (_, { subject }) => (subject ? new Error('unexpected certificate') : undefined),
      ca: [],
    })
    const timer = setTimeout(
      () => socket.destroy(new Error(`no response within ${timeout / 1000} s`)),
      timeout,
    )
    socket.on('error', error => {
      fault = meaningOf(error)
    })
    socket.on('close', () => {
      clearTimeout(timer)
      reject(new Error(`${host}:${port}: ${fault}`))
    })
    socket.on('secureConnect', () => {
      clearTimeout(timer)
      resolve(new Link(socket, identity))
    })
  })
}

/**
 * @param {object} options @param {string} options.host @param {number} options.port 0: a free one
 * @param {string} options.secret of the run @param {string} [options.run] identities of other runs are refused
 * @param {number} [options.handshakeTimeout] ms
 * @param {(link: Link, remote: string) => void} options.onLink `link.identity` names the peer
 * @param {(text: string) => void} options.onFault a peer was refused; one line
 * @returns {Promise<{port: number, close: () => Promise<void>}>} `close` closes its links too
 */
export function listenLinks({ host, port, secret, run, handshakeTimeout = HANDSHAKE, onLink, onFault }) {
  const key = keyOf(secret)
  /** @type {WeakMap<object, string>} */
  const names = new WeakMap()
  /** @type {Set<Link>} */
  const links = new Set()
  /** @type {Set<import('node:net').Socket>} including those of links */
  const sockets = new Set()

  const server = createServer({
    minVersion: 'TLSv1.3',
    handshakeTimeout,
    pskCallback: (socket, identity) => {
      names.set(socket, identity)
      return run === undefined || identity.startsWith(`${run}/`) ? key : null
    },
  })
  /** @param {import('node:net').Socket} socket */
  const remoteOf = ({ remoteAddress, remotePort }) =>
    // A closed socket has no address.
    remoteAddress === undefined ? 'a connection' : `${remoteAddress}:${remotePort}`

  server.on('connection', socket => {
    if (sockets.size - links.size >= MAX_HANDSHAKES) return socket.destroy()
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  server.on('tlsClientError', (error, socket) => {
    onFault(`${remoteOf(socket)} was refused: ${meaningOf(error)}`)
    socket.destroy()
  })
  server.on('secureConnection', socket => {
    const identity = names.get(socket)
    if (!identity) return socket.destroy()
    const link = new Link(socket, identity)
    links.add(link)
    socket.on('close', () => links.delete(link))
    onLink(link, remoteOf(socket))
  })

  return new Promise((resolve, reject) => {
    server.on('error', error => {
      // After `listen`, e.g. too many open files for one connection: the server continues.
      onFault(error.message)
      reject(error)
    })
    server.listen({ host, port }, () =>
      resolve({
        port: /** @type {import('node:net').AddressInfo} */ (server.address()).port,
        close: async () => {
          const closed = new Promise(done => server.close(done))
          await Promise.all([...links].map(link => link.close()))
          for (const socket of sockets) socket.destroy()
          await closed
        },
      }),
    )
  })
}
