import { createConnection } from 'node:net'
import { Link } from './link.js'

/** @import { Source, SourceEvent } from './link.js' */

/** A gateway of this machine, over its Unix socket. @implements {Source} */
export class SocketSource {
  /** @type {import('node:net').Socket | null} */
  #socket = null
  #link = new Link(() => this.#connect())
  #path

  /** @param {string} path of the socket */
  constructor(path) {
    this.#path = path
    this.name = path
  }

  /** @param {(event: SourceEvent) => void} listener */
  start(listener) {
    this.#link.start(listener)
  }

  close() {
    this.#link.close()
    this.#socket?.destroy()
  }

  /** @param {import('../../src/metrics/schema.js').StatsCommand} command */
  send(command) {
    if (this.#socket?.writable) this.#socket.write(`${JSON.stringify(command)}\n`)
    else this.#link.answer(command.type, 'not connected to a gateway')
  }

  #connect() {
    const socket = createConnection(this.#path)
    this.#socket = socket
    let reason = 'the gateway has closed the connection'
    socket.on('data', chunk => {
      try {
        this.#link.data(chunk)
      } catch (error) {
        socket.destroy()
        this.#link.ended(error)
      }
    })
    socket.on('error', error => {
      reason = reasonOf(/** @type {NodeJS.ErrnoException} */ (error))
    })
    socket.on('close', () => this.#link.ended(reason))
  }
}

/** @param {NodeJS.ErrnoException} error */
function reasonOf(error) {
  if (error.code === 'ENOENT' || error.code === 'ECONNREFUSED') return 'there is no gateway'
  if (error.code === 'EACCES') return 'no permission: the socket belongs to another user'
  return error.message
}
