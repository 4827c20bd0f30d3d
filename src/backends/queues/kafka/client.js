// The client library of Kafka, an optional package, on each version of Node.js.

/** What `Promise.withResolvers` of Node.js 22 returns. */
function withResolvers() {
  /** @type {any} */
  const parts = {}
  parts.promise = new Promise((resolve, reject) => Object.assign(parts, { resolve, reject }))
  return parts
}

/**
 * The library makes its promises with `Promise.withResolvers`, which Node.js 20 does not have: it is added there.
 * @returns {Promise<typeof import('@platformatic/kafka')>}
 * @throws {Error} with the code ERR_MODULE_NOT_FOUND if the package is not installed
 */
export function loadKafka() {
  /** @type {any} */
  const builtIn = Promise
  builtIn.withResolvers ??= withResolvers
  return import('@platformatic/kafka')
}
