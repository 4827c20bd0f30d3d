// What the consumer and the republisher of Kafka share of its client library, an optional package.

import { tlsOptions } from '../../../config/pem.js'

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

/** @param {any} error of the library, which wraps others @returns {any} the innermost */
export function causeOf(error) {
  let found = error
  while (found.errors?.length > 0 || found.cause instanceof Error) found = found.errors?.[0] ?? found.cause
  return found
}

/** @param {Record<string, any>} options of the type @returns {any} options of the library for its connections */
export const clientOptions = ({ brokers, dial_timeout, tls, sasl_mechanism, sasl_user, sasl_password }) => ({
  clientId: 'halley',
  bootstrapBrokers: brokers,
  connectTimeout: dial_timeout,
  // Every failure is ours to try again, with our back-off and all messages in their order.
  retries: 0,
  ...(tls.enabled && { tls: tlsOptions(tls), tlsServerName: tls.server_name || true }),
  ...(sasl_mechanism !== '' && {
    sasl: { mechanism: sasl_mechanism.toUpperCase(), username: sasl_user, password: sasl_password },
  }),
})
