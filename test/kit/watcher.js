// A client of the stats socket.

import { connect } from 'node:net'
import { createInterface } from 'node:readline'

export class Watcher {
  messages = []
  /** @type {Set<{matches: (message: any) => boolean, resolve: (message: any) => void}>} */
  #waiting = new Set()
  #socket

  constructor(path) {
    this.#socket = connect(path)
    const lines = createInterface({ input: this.#socket })
    // readline re-emits the errors of its input.
    for (const emitter of [this.#socket, lines]) emitter.on('error', () => {})
    this.closed = new Promise(resolve => this.#socket.once('close', () => resolve(false)))
    lines.on('line', line => {
      const message = JSON.parse(line)
      this.messages.push(message)
      for (const waiting of this.#waiting) {
        if (!waiting.matches(message)) continue
        this.#waiting.delete(waiting)
        waiting.resolve(message)
      }
    })
  }

  /** @param {any} t ends with this test @param {string} path @returns {Promise<Watcher>} after `hello` */
  static async at(t, path) {
    const watcher = new Watcher(path)
    t.teardown(() => watcher.#socket.destroy())
    const greeted = watcher.next(({ type }) => type === 'hello').then(() => true)
    if (!(await Promise.race([greeted, watcher.closed]))) throw new Error(`no gateway greets at ${path}`)
    return watcher
  }

  /** @param {(message: any) => boolean} matches @returns {Promise<any>} the next such message */
  next(matches) {
    return new Promise(resolve => this.#waiting.add({ matches, resolve }))
  }

  /**
   * @param {(snapshot: import('../../src/metrics/schema.js').Snapshot) => boolean} matches
   * @returns {Promise<import('../../src/metrics/schema.js').Snapshot>}
   */
  async snapshot(matches) {
    const found = await this.next(({ type, snapshot }) => type === 'snapshot' && matches(snapshot))
    return found.snapshot
  }

  /** @param {string} kind @returns {Promise<import('../../src/metrics/schema.js').GatewayEvent>} the next one */
  async event(kind) {
    const of = ({ events }) => events.find(event => event.kind === kind)
    return of(await this.snapshot(snapshot => Boolean(of(snapshot))))
  }

  /** @param {object} command @returns {Promise<string | null>} error */
  async command(command) {
    const done = this.next(({ type }) => type === 'done')
    this.#socket.write(`${JSON.stringify(command)}\n`)
    return (await done).error
  }
}
