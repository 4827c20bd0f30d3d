import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** One process of the load generator, which is asked questions. */
export class Child {
  #process
  #id = 0
  /** @type {Map<number, {resolve: (result: any) => void, reject: (error: Error) => void}>} */
  #asked = new Map()

  /** @param {'clients' | 'publishers'} role */
  constructor(role) {
    this.#process = fork(fileURLToPath(new URL(`${role}.js`, import.meta.url)), {
      serialization: 'advanced',
      execArgv: ['--max-semi-space-size=32'],
    })
    this.#process.on('message', message => {
      const { id, result, error } = /** @type {{id: number, result?: any, error?: string}} */ (message)
      const asked = this.#asked.get(id)
      this.#asked.delete(id)
      if (error === undefined) asked?.resolve(result)
      else asked?.reject(new Error(`${role}: ${error}`))
    })
    this.#process.on('exit', (code, signal) => {
      for (const { reject } of this.#asked.values()) reject(new Error(`${role} ended with ${signal ?? code}`))
      this.#asked.clear()
    })
  }

  /** @returns {number} */
  get pid() {
    return /** @type {number} */ (this.#process.pid)
  }

  /**
   * @param {string} name
   * @param {object} [params]
   * @returns {Promise<any>} rejects when the child cannot answer, or ends
   */
  ask(name, params = {}) {
    const id = ++this.#id
    return new Promise((resolve, reject) => {
      this.#asked.set(id, { resolve, reject })
      this.#process.send({ id, name, params })
    })
  }

  /** Ends the process. */
  stop() {
    this.#process.kill('SIGKILL')
  }
}

/**
 * @param {number} total
 * @param {number} parts
 * @returns {{first: number, count: number}[]} `total` things spread evenly
 */
export function spread(total, parts) {
  return Array.from({ length: parts }, (_, part) => {
    const first = Math.floor((total * part) / parts)
    return { first, count: Math.floor((total * (part + 1)) / parts) - first }
  })
}
