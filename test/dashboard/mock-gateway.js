// A stats socket with made-up snapshots, sent on request.

import { rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { SCHEMA_VERSION } from '../../src/metrics/schema.js'
import { within } from '../kit/wait.js'
import { mockSnapshots } from '../metrics/mock.js'

/** @import { Hello, Snapshot } from '../../src/metrics/schema.js' */

/** @param {Parameters<typeof mockSnapshots>[0]} options @returns {Snapshot[]} the last one is of this second */
export function recentSnapshots(options) {
  const seconds = options?.seconds ?? 60
  return mockSnapshots({ start: Date.now() - (seconds - 1) * 1000, ...options })
}

export class MockGateway {
  /** @type {any[]} that came */
  commands = []
  /** @type {(() => void)[]} */
  #waiting = []
  /** @type {Set<import('node:net').Socket>} */
  #sockets = new Set()
  #server = createServer(socket => this.#accept(socket))
  /** @type {Hello | null} */
  #hello
  /** @type {NodeJS.Timeout | undefined} */
  #beat

  /**
   * @param {string} path @param {Snapshot[]} history later ones are sent by `send`
   * @param {Partial<Hello> | null} [hello] fields of the hello; null: it sends none
   */
  constructor(path, history, hello = {}) {
    this.path = path
    const events = history.flatMap(({ events }) => events)
    this.#hello = hello && {
      type: 'hello',
      schema: SCHEMA_VERSION,
      node: history[0].node,
      history,
      events,
      ...hello,
    }
  }

  get connections() {
    return this.#sockets.size
  }

  async listen() {
    await rm(this.path, { force: true })
    await new Promise(resolve => this.#server.listen(this.path, () => resolve(undefined)))
    return this
  }

  /** @param {import('node:net').Socket} socket */
  #accept(socket) {
    this.#sockets.add(socket)
    socket.on('close', () => {
      this.#sockets.delete(socket)
      this.#wake()
    })
    socket.on('error', () => {})
    const lines = createInterface({ input: socket })
    // readline re-emits errors of its input.
    lines.on('error', () => {})
    lines.on('line', line => {
      const command = JSON.parse(line)
      this.commands.push(command)
      socket.write(`${JSON.stringify({ type: 'done', command: command.type, error: null })}\n`)
      this.#wake()
    })
    if (this.#hello) socket.write(`${JSON.stringify(this.#hello)}\n`)
    this.#wake()
  }

  #wake() {
    for (const wake of this.#waiting.splice(0)) wake()
  }

  /** @param {(gateway: MockGateway) => any} condition checked when a connection opens or closes, and after commands */
  async until(condition) {
    const changes = async () => {
      while (!condition(this)) await new Promise(resolve => this.#waiting.push(() => resolve(undefined)))
    }
    await within(changes(), () => `${condition}`)
  }

  /** @param {Snapshot} snapshot */
  send(snapshot) {
    this.#hello?.history.push(snapshot)
    this.say(`${JSON.stringify({ type: 'snapshot', snapshot })}\n`)
  }

  /** Sends the last snapshot again every second, with the new time. */
  beat() {
    this.#beat = setInterval(() => {
      const last = this.#hello?.history.at(-1)
      if (last) this.send({ ...last, time: last.time + 1000, seq: last.seq + 1, events: [] })
    }, 1000)
    return this
  }

  /** @param {string} text */
  say(text) {
    for (const socket of this.#sockets) socket.write(text)
  }

  async close() {
    clearInterval(this.#beat)
    for (const socket of this.#sockets) socket.destroy()
    await new Promise(resolve => this.#server.close(resolve))
  }
}
