// A command's connection to the controller over its Unix socket: lines of JSON, one command for each connection.
//
//   command -> {command, params}
//   controller -> {progress: text} ... {plan: {lines, price}} ... {snapshot} ... and at the end {result} or {error}
//   command -> {go: true | false} to a plan; {cancel: true} at any time, like disconnecting

import { createInterface } from 'node:readline'

/** Unread bytes above which snapshots are skipped. */
const MAX_WAITING = 4 << 20

export class ControlConnection {
  #socket
  /** @type {(message: any) => void} */
  onMessage = () => {}
  /** @type {() => void} */
  onClose = () => {}

  /** @param {import('node:net').Socket} socket */
  constructor(socket) {
    this.#socket = socket
    // The close event reports errors too.
    socket.on('error', () => {})
    socket.on('close', () => this.onClose())
    const lines = createInterface({ input: socket, crlfDelay: Number.POSITIVE_INFINITY })
    lines.on('error', () => {})
    lines.on('line', line => {
      let message
      try {
        message = JSON.parse(line)
      } catch {}
      if (message?.constructor === Object) this.onMessage(message)
      else socket.destroy()
    })
  }

  get busy() {
    return this.#socket.writableLength > MAX_WAITING
  }

  /** @param {object} message */
  send(message) {
    if (this.#socket.writable) this.#socket.write(`${JSON.stringify(message)}\n`)
  }

  end() {
    this.#socket.end()
  }

  destroy() {
    this.#socket.destroy()
  }
}
