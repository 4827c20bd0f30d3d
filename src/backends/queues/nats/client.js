// NATS connection options: servers, TLS and credentials.

import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { checkServerIdentity } from 'node:tls'
import { credsAuthenticator } from '@nats-io/transport-node'
import { tlsOptions } from '../../../config/pem.js'

/** @import { ConsumerOptions, RepublishOptions } from '../../../config/options.js' */

/** @typedef {ConsumerOptions['nats_jetstream'] | RepublishOptions['nats_jetstream']} NatsOptions */

/** @param {NatsOptions} options of the type @returns {Promise<object>} credentials */
async function credentials(options) {
  if (options.credentials_file !== '')
    return { authenticator: credsAuthenticator(await readFile(options.credentials_file)) }
  if (options.username !== '') return { user: options.username, pass: options.password }
  return options.token === '' ? {} : { token: options.token }
}

/** @param {string} url with or without a scheme @returns {string} host, IPv6 without brackets */
const hostOf = url => new URL(url.includes('://') ? url : `nats://${url}`).hostname.replace(/^\[|\]$/g, '')

/** @param {NatsOptions} options of the type @returns {object} */
function secure({ tls, url }) {
  const options = tlsOptions(tls)
  const host = hostOf(url)
  if (tls.server_name !== '' || isIP(host) === 0) return options
  // The library sends no server name for IP addresses: Node.js would check the certificate for `localhost`.
  return {
    ...options,
    checkServerIdentity: (/** @type {string} */ _name, /** @type {any} */ certificate) =>
      checkServerIdentity(host, certificate),
  }
}

/** @param {NatsOptions} options @returns {Promise<object>} connection options of the library */
export const connectionOptions = async options => ({
  servers: options.url,
  name: 'halley',
  ...(options.tls.enabled && { tls: secure(options) }),
  ...(await credentials(options)),
})
