// Kafka client library, an optional package, for the consumer and the republisher.

import { tlsOptions } from '../../../config/pem.js'

function withResolvers() {
  /** @type {any} */
  const parts = {}
  parts.promise = new Promise((resolve, reject) => Object.assign(parts, { resolve, reject }))
  return parts
}

/** Adds `Promise.withResolvers`, which Node.js 20 lacks. @throws {Error} ERR_MODULE_NOT_FOUND without the package */
export function loadKafka() {
  /** @type {any} */
  const builtIn = Promise
  builtIn.withResolvers ??= withResolvers
  return import('@platformatic/kafka')
}

/** @param {any} error of the library, may wrap others @returns {any} the innermost */
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
  // Callers retry, with their own backoff and all messages in order.
  retries: 0,
  ...(tls.enabled && { tls: tlsOptions(tls), tlsServerName: tls.server_name || true }),
  ...(sasl_mechanism !== '' && {
    sasl: { mechanism: sasl_mechanism.toUpperCase(), username: sasl_user, password: sasl_password },
  }),
})
