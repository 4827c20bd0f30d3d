import { createServer } from 'node:tls'
import { Line } from './line.js'
import { HANDSHAKE, keyOf, meaningOf } from './psk.js'

/** Connections that have not proven yet that they know the secret, at most. */
const MAX_STRANGERS = 256

/**
 * @param {object} options
 * @param {string} options.host
 * @param {number} options.port 0: a free one
 * @param {string} options.secret of the run
 * @param {string} [options.run] identities of other ones are refused
 * @param {number} [options.handshakeTimeout] ms
 * @param {(line: Line, remote: string) => void} options.onLine `line.identity` says who it is
 * @param {(text: string) => void} options.onFault somebody was refused; one line
 * @returns {Promise<{port: number, close: () => Promise<void>}>} `close` closes its lines too
 * @throws {Error} with a code, as EADDRINUSE
 */
export function listenLinks({ host, port, secret, run, handshakeTimeout = HANDSHAKE, onLine, onFault }) {
  const key = keyOf(secret)
  /** @type {WeakMap<object, string>} */
  const names = new WeakMap()
  /** @type {Set<Line>} */
  const lines = new Set()
  /** @type {Set<import('node:net').Socket>} those of the lines too */
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
  const remoteOf = ({ remoteAddress, remotePort }) => `${remoteAddress ?? 'somebody'}:${remotePort ?? ''}`

  server.on('connection', socket => {
    if (sockets.size - lines.size >= MAX_STRANGERS) return socket.destroy()
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
    const line = new Line(socket, identity)
    lines.add(line)
    socket.on('close', () => lines.delete(line))
    onLine(line, remoteOf(socket))
  })

  return new Promise((resolve, reject) => {
    server.on('error', error => {
      // Too many open files, for one, while it listens: then it listens on.
      onFault(error.message)
      reject(error)
    })
    server.listen({ host, port }, () =>
      resolve({
        port: /** @type {import('node:net').AddressInfo} */ (server.address()).port,
        close: async () => {
          const closed = new Promise(done => server.close(done))
          await Promise.all([...lines].map(line => line.close()))
          for (const socket of sockets) socket.destroy()
          await closed
        },
      }),
    )
  })
}
