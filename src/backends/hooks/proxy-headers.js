// The headers (of gRPC: metadata) that a backend gets: fixed ones, emulated ones of the client, real ones of its
// request.

import { isNeverForwarded } from '../../config/proxies.js'

/** @import { HookEvent } from '../../clients/hooks/events.js' */

/** RFC 9110, section 5.5: no control characters but tabs. Others cannot be sent in one header line. */
const VALUE = /^[\t -~\x80-\xff]*$/

/** @param {string} text @returns {string} a character for each byte of its UTF-8, as in the headers of requests */
const inBytes = text => Buffer.from(text).toString('latin1')

/** @param {readonly string[]} names @returns {Set<string>} in lower case, without those that a proxy never sends */
const allowed = names =>
  new Set(names.map(name => name.toLowerCase()).filter(name => !isNeverForwarded(name)))

/** The lists of one proxy. */
export class HeaderLists {
  #emulated
  #real
  /** Name in lower case -> values. @type {ReadonlyMap<string, readonly string[]>} */
  #fixed

  /**
   * @param {Readonly<Record<string, string>>} fixed @param {readonly string[]} emulated names
   * @param {readonly string[]} real names
   */
  constructor(fixed, emulated, real) {
    this.#emulated = allowed(emulated)
    this.#real = allowed(real)
    const entries = Object.entries(fixed).map(([name, value]) => [name.toLowerCase(), [value]])
    this.#fixed = new Map(
      /** @type {[string, string[]][]} */ (entries.filter(([name]) => !isNeverForwarded(String(name)))),
    )
  }

  /** Names of the request headers of clients. */
  get real() {
    return [...this.#real]
  }

  /** Names of the emulated headers of clients. */
  get emulated() {
    return [...this.#emulated]
  }

  /** @param {HookEvent} event @returns {ReadonlyMap<string, readonly string[]>} name in lower case -> values */
  of(event) {
    if (this.#emulated.size === 0 && this.#real.size === 0) return this.#fixed
    const headers = new Map(this.#fixed)
    if (this.#emulated.size > 0) {
      const given = event.emulatedHeaders
      for (const name of Object.keys(given)) {
        const lower = name.toLowerCase()
        if (!this.#emulated.has(lower) || typeof given[name] !== 'string') continue
        const value = inBytes(given[name])
        if (VALUE.test(value)) headers.set(lower, [value])
      }
    }
    if (this.#real.size > 0) {
      /** @type {Map<string, string[]>} */
      const real = new Map()
      const lines = event.headerLines
      for (let at = 0; at < lines.length; at += 2) {
        const name = lines[at].toLowerCase()
        if (!this.#real.has(name) || !VALUE.test(lines[at + 1])) continue
        const values = real.get(name)
        if (values === undefined) real.set(name, [lines[at + 1]])
        else values.push(lines[at + 1])
      }
      for (const [name, values] of real) headers.set(name, values)
    }
    return headers
  }
}
