// The controller's Unix socket: takes commands of this user.

import { chmod, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { COMMANDS } from './commands.js'
import { ControlLine } from './control-line.js'

/** @typedef {import('./host.js').Host} Host */

export class ControlServer {
  #host
  #log
  #server
  /** @type {Set<ControlLine>} */
  #lines = new Set()
  /** When the last command has ended. */
  quietSince = Date.now()
  /** The last command was in vain: the next one may come with another environment (credentials). */
  vain = false

  /**
   * @param {Host} host
   * @param {(text: string) => void} log
   */
  constructor(host, log) {
    this.#host = host
    this.#log = log
    this.#server = createServer(socket => this.#take(new ControlLine(socket)))
  }

  /** Nobody talks to it. */
  get idle() {
    return this.#lines.size === 0
  }

  /**
   * @param {string} path where nobody else listens: what is there is of a controller that is no more
   * @throws {Error} one line
   */
  async listen(path) {
    await rm(path, { force: true })
    await new Promise((resolve, reject) => {
      this.#server.once('error', error =>
        reject(new Error(`${path} cannot be listened on: ${error.message}`)),
      )
      this.#server.listen(path, () => resolve(undefined))
    })
    await chmod(path, 0o600)
    this.#server.on('error', error => this.#log(error.message))
  }

  /** @param {ControlLine} line */
  #take(line) {
    this.#lines.add(line)
    const abort = new AbortController()
    /** @type {((go: boolean) => void) | null} */
    let decide = null
    let begun = false
    line.onClose = () => {
      this.#lines.delete(line)
      this.quietSince = Date.now()
      abort.abort()
      decide?.(false)
    }
    line.onMessage = message => {
      if (message.cancel) {
        abort.abort()
        decide?.(false)
      } else if (message.go !== undefined) decide?.(message.go === true)
      else if (!begun) {
        begun = true
        void this.#run(line, message, {
          params: message.params ?? {},
          progress: text => line.send({ progress: text }),
          confirm: plan => {
            line.send({ plan })
            return new Promise(resolve => {
              decide = resolve
            })
          },
          show: snapshot => {
            if (!line.busy) line.send({ snapshot })
          },
          signal: abort.signal,
        })
      }
    }
  }

  /**
   * @param {ControlLine} line
   * @param {any} message
   * @param {import('./commands.js').Call} call
   */
  async #run(line, { command }, call) {
    this.vain = false
    try {
      if (!Object.hasOwn(COMMANDS, command))
        throw new Error(`this controller knows no command "${command}": is it of another version?`)
      line.send({ result: (await COMMANDS[command](this.#host, call)) ?? {} })
    } catch (error) {
      this.vain = command === 'start'
      // What is thrown on purpose needs no stack; a mistake of ours does.
      if (error instanceof TypeError || error instanceof ReferenceError)
        this.#log(error.stack ?? error.message)
      line.send({ error: error.message })
    }
    line.end()
  }

  async close() {
    this.#server.close()
    for (const line of this.#lines) line.end()
    const timer = setTimeout(() => {
      for (const line of this.#lines) line.destroy()
    }, 1000)
    while (this.#lines.size > 0) await new Promise(resolve => setTimeout(resolve, 10))
    clearTimeout(timer)
  }
}
