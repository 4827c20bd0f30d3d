/** @typedef {(exchange: import('./contract.js').Exchange) => void} Handler */

/** Precedence as in `SocketServer.route`. */
export class Routes {
  /** Path without its `*` -> method -> handler. @type {Map<string, Map<string, Handler>>} */
  #exact = new Map()
  /** @type {Map<string, Map<string, Handler>>} */
  #prefixes = new Map()

  /** @param {string} method upper case, or '*' @param {string} path @param {Handler} handler */
  add(method, path, handler) {
    const prefix = path.endsWith('/*')
    const table = prefix ? this.#prefixes : this.#exact
    const key = prefix ? path.slice(0, -1) : path
    let methods = table.get(key)
    if (methods === undefined) table.set(key, (methods = new Map()))
    methods.set(method, handler)
  }

  /** For methods without a handler. @param {string} path @param {Handler} handler */
  fallback(path, handler) {
    const methods = path.endsWith('/*') ? this.#prefixes.get(path.slice(0, -1)) : this.#exact.get(path)
    if (methods?.has('*') !== true) this.add('*', path, handler)
  }

  /** @param {string} method @param {string} path @returns {Handler | undefined} */
  find(method, path) {
    const methods = this.#exact.get(path)
    const handler = methods?.get(method) ?? methods?.get('*')
    if (handler !== undefined || this.#prefixes.size === 0) return handler
    // Longest prefix first: '/a/b/', '/a/', '/'.
    for (let end = path.lastIndexOf('/'); end >= 0; end = end === 0 ? -1 : path.lastIndexOf('/', end - 1)) {
      const methods = this.#prefixes.get(path.slice(0, end + 1))
      const handler = methods?.get(method) ?? methods?.get('*')
      if (handler !== undefined) return handler
    }
    return undefined
  }

  /** @returns {Iterable<[string, Map<string, Handler>]>} */
  *entries() {
    yield* this.#exact
    for (const [path, methods] of this.#prefixes) yield [`${path}*`, methods]
  }
}
