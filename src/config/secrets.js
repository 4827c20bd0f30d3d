// What a secret of the configuration must not be: a text of the documentation, a word that everybody tries, short.

import { COMMAND } from '../base/version.js'

/** @import { Config } from './load.js' */

/** RFC 7518, section 3.2: an HS256 key has at least the 32 bytes of the hash. API and admin keys get the same bound. */
export const MIN_BYTES = 32

/** Of the documentation, as small letters and digits: `change me: a long random text`. */
const PLACEHOLDER = /^change(me|this)|random(text|key|string|bytes)$/

/** Words in the place of a secret, as small letters and digits: `secret`, `API_KEY`, `<your-password>`. */
const WORD = /^(the|my|your|some|super|top|test)?(api|admin|hmac|token|jwt)?(secret|password|key)+\d{0,4}$/

/** Token keys that Halley itself uses; with a JWKS these are ignored. */
const TOKEN_KEYS = ['hmac_secret_key', 'hmac_previous_secret_key']

/**
 * @param {Config} config
 * @returns {[key: string, secret: string][]} the secrets in use that clients, backends or admins can try
 */
function secretsOf({ client, http_api: api, admin, uni_poll, lifecycle }) {
  /** @type {[string, string][]} */
  const secrets = []
  for (const block of ['token', 'subscription_token']) {
    const token = client[block]
    if (token.jwks_public_endpoint !== '' || token.enabled === false) continue
    for (const name of TOKEN_KEYS) secrets.push([`client.${block}.${name}`, token[name]])
  }
  if (!api.disabled && !api.insecure) {
    secrets.push(['http_api.key', api.key], ['http_api.previous_key', api.previous_key])
  }
  if (admin.enabled && admin.password !== '') {
    secrets.push(['admin.password', admin.password], ['admin.secret', admin.secret])
  }
  if (uni_poll.enabled) secrets.push(['uni_poll.cursor_secret_key', uni_poll.cursor_secret_key])
  if (lifecycle.webhook.url !== '') secrets.push(['lifecycle.webhook.secret', lifecycle.webhook.secret])
  return secrets.filter(([, secret]) => secret !== '')
}

/**
 * @param {Config} config
 * @param {boolean} exposed whether others than this machine can connect: then words are refused, too
 * @returns {string[]} a line for each secret that must be replaced, starting with its key
 */
export function secretFaults(config, exposed) {
  return secretsOf(config)
    .filter(([, secret]) => {
      const letters = secret.toLowerCase().replace(/[^a-z\d]/g, '')
      return PLACEHOLDER.test(letters) || (exposed && WORD.test(letters))
    })
    .map(
      ([key]) =>
        `${key}: everybody knows this text; replace it by a random one (${COMMAND} config init makes them)`,
    )
}

/** @param {Config} config @returns {string[]} a line for each secret that is short, starting with its key */
export function secretWarnings(config) {
  return secretsOf(config)
    .filter(([, secret]) => Buffer.byteLength(secret) < MIN_BYTES)
    .map(([key, secret]) => {
      const bytes = Buffer.byteLength(secret)
      const size = bytes === 1 ? '1 byte' : `${bytes} bytes`
      return `${key}: is only ${size} long; use ${MIN_BYTES} random bytes (${COMMAND} config init makes them)`
    })
}
