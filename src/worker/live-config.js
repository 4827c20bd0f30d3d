import { createAuth } from '../auth/index.js'

/** @import { Auth } from '../auth/index.js' */
/** @import { Jwks } from '../auth/jwks.js' */

/** @typedef {Auth & {config: any, cursorKey: string}} Current `config` is frozen */

/**
 * The configuration of a worker, and the parts that it builds from it. A reload has two steps, so that all workers
 * switch at the same moment, or none: `prepare` makes the next one, `commit` uses it.
 */
export class LiveConfig {
  /** @type {Current} */
  current
  /** @type {Current | null} */
  #next = null
  #jwks
  /** Called after a switch. */
  onCommit = () => {}

  /** @param {any} config @param {string} cursorKey base64 @param {Jwks} jwks @throws {Error} names a wrong option */
  constructor(config, cursorKey, jwks) {
    this.#jwks = jwks
    this.current = this.#make(config, cursorKey)
  }

  /** @param {any} config @param {string} cursorKey @returns {Current} @throws {Error} */
  #make(config, cursorKey) {
    return { config, cursorKey, ...createAuth(config, this.#jwks) }
  }

  /** @param {any} config @param {string} cursorKey @throws {Error} naming the invalid option; nothing has changed */
  prepare(config, cursorKey) {
    this.#next = null
    this.#next = this.#make(config, cursorKey)
  }

  commit() {
    if (this.#next === null) return
    this.current = this.#next
    this.#next = null
    this.onCommit()
  }
}
