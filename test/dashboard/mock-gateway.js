// A gateway's stats socket without a gateway: what it shows is made up, and comes as fast as it is asked to.
//   node test/dashboard/mock-gateway.js SOCKET [WORKERS] [CONNECTIONS] runs one for a look at the dashboard.

import { rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { SCHEMA_VERSION } from '../../src/metrics/schema.js'
import { within } from '../kit/wait.js'
import { mockSnapshots } from '../metrics/mock.js'

/** @typedef {import('../../src/metrics/schema.js').Snapshot} Snapshot */

/**
 * @param {Parameters<typeof mockSnapshots>[0]} options
 * @returns {Snapshot[]} of which the last one is of this second
 */
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
  /** @type {import('../../src/metrics/schema.js').Hello | null} */
  #hello
  /** @type {NodeJS.Timeout | undefined} */
  #beat

  /**
   * @param {string} path
   * @param {Snapshot[]} history the past; the newest ones are sent by `send`
   * @param {Partial<import('../../src/metrics/schema.js').Hello> | null} [hello] over what it says first; null: it says
   *   nothing
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
    // They pass on what happens to the socket.
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

  /**
   * @param {(gateway: MockGateway) => any} condition looked at when a connection comes or goes, and after each command
   */
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

  /**
   * Sends the last snapshot again every second, as one of that second.
   */
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

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , path, workers = '2', connections = '10000'] = process.argv
  const options = {
    workers: Number(workers),
    connections: Number(connections),
    csv: true,
    down: 1,
    silent: 0,
  }
  const snapshots = recentSnapshots({ seconds: 400, ...options })
  let at = 240
  const shift = (snapshots.length - 1 - at) * 1000
  const now = (/** @type {Snapshot} */ snapshot) => ({
    ...snapshot,
    time: snapshot.time + shift,
    events: snapshot.events.map(event => ({ ...event, time: event.time + shift })),
  })
  const gateway = await new MockGateway(path, snapshots.slice(0, at).map(now)).listen()
  setInterval(() => {
    gateway.send(now(snapshots[at]))
    at = at + 1 < snapshots.length ? at + 1 : at
  }, 1000)
}
