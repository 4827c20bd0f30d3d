// What a gateway serves with: the development profile, and what a gateway that others can reach must have: secrets that
// are no text of the documentation, no word that everybody tries, and long.

import { randomBytes } from 'node:crypto'
import { COMMAND } from '../base/version.js'
import { ConfigError, loadConfig } from './load.js'

/** @import { Config } from './options.js' */
/** @typedef {'development' | 'configured'} Profile */

/** Permissions of all clients in the development profile. */
const OPEN = Object.freeze({
  presence: true,
  join_leave: true,
  history_size: 50,
  history_ttl: '10m',
  force_recovery: true,
  allow_subscribe_for_client: true,
  allow_subscribe_for_anonymous: true,
  allow_publish_for_subscriber: true,
  allow_publish_for_anonymous: true,
  allow_presence_for_subscriber: true,
  allow_presence_for_anonymous: true,
  allow_history_for_subscriber: true,
  allow_history_for_anonymous: true,
  allowed_delta_types: ['fossil'],
  delta_publish: true,
})

/** RFC 7518, section 3.2: an HS256 key has at least the 32 bytes of the hash. API and admin keys get the same bound. */
export const MIN_BYTES = 32

/** Of the documentation, as small letters and digits: `change me: a long random text`. */
const PLACEHOLDER = /^change(me|this)|random(text|key|string|bytes)$/

/** Words in the place of a secret, as small letters and digits: `secret`, `API_KEY`, `<your-password>`. */
const WORD = /^(the|my|your|some|super|top|test)?(api|admin|hmac|token|jwt)?(secret|password|key)+\d{0,4}$/

/** Token keys that Halley itself uses; with a JWKS these are ignored. */
const TOKEN_KEYS = /** @type {const} */ (['hmac_secret_key', 'hmac_previous_secret_key'])

/**
 * @param {Config} config
 * @returns {[key: string, secret: string][]} the secrets in use that clients, backends or admins can try
 */
function secretsOf({ client, http_api: api, admin, uni_poll, lifecycle }) {
  /** @type {[string, string][]} */
  const secrets = []
  for (const block of /** @type {const} */ (['token', 'subscription_token'])) {
    const token = client[block]
    if (token.jwks_public_endpoint !== '' || ('enabled' in token && !token.enabled)) continue
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
function secretFaults(config, exposed) {
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
function secretWarnings(config) {
  return secretsOf(config)
    .filter(([, secret]) => Buffer.byteLength(secret) < MIN_BYTES)
    .map(([key, secret]) => {
      const bytes = Buffer.byteLength(secret)
      const size = bytes === 1 ? '1 byte' : `${bytes} bytes`
      return `${key}: is only ${size} long; use ${MIN_BYTES} random bytes (${COMMAND} config init makes them)`
    })
}

/** @param {string} address `http_server.address`; '' is all interfaces */
export function isLoopback(address) {
  const host = address.toLowerCase().replace(/^\[(.*)\]$/, '$1')
  return host === 'localhost' || host === '::1' || /^(::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host)
}

/**
 * Settings for a first try on the local machine: loopback, anonymous clients, pages of this machine, a demo page.
 * @param {string} key of the server API and of the admin page
 * @returns {Record<string, unknown>} a tree like that of a file
 */
export function developmentProfile(key) {
  return {
    http_server: { address: '127.0.0.1' },
    client: { allow_anonymous_connect_without_token: true, allowed_origins: ['loopback'] },
    channel: {
      without_namespace: { ...OPEN },
      namespaces: [
        { name: 'demo', ...OPEN, force_push_join_leave: true },
        // The demo page's pointers: only the newest counts, so none is kept.
        {
          name: 'pointers',
          ...OPEN,
          join_leave: false,
          history_size: 0,
          history_ttl: '0s',
          force_recovery: false,
        },
      ],
    },
    http_stream: { enabled: true },
    sse: { enabled: true },
    poll: { enabled: true },
    uni_websocket: { enabled: true },
    uni_sse: { enabled: true },
    uni_http_stream: { enabled: true },
    uni_poll: { enabled: true },
    http_api: { key },
    // The same key: both are printed on the same terminal.
    admin: { password: key },
    prometheus: { enabled: true },
    health: { enabled: true },
    demo: { enabled: true },
  }
}

/**
 * The option that lets others than this machine reach the server API and the admin page, '' if none does.
 * @param {Config} config
 */
function exposedBy({ http_server: { address, internal_address, internal_port } }) {
  if (!isLoopback(address)) return 'address'
  return internal_port === 0 || internal_address === '' || isLoopback(internal_address)
    ? ''
    : 'internal_address'
}

/**
 * Settings without which a gateway that others can reach must not start.
 * @param {Config} config @returns {string[]} a line for each missing one, starting with its key
 */
export function exposureFaults(config) {
  const { client, http_api: api, http_server: server } = config
  const by = exposedBy(config)
  if (by === '') return []
  const where = `while http_server.${by} is ${JSON.stringify(server[by])}${server[by] === '' ? ', all interfaces' : ''}`
  const faults = []
  // The internal port serves no clients.
  const toClients = by === 'address'
  const { token } = client
  const keyed =
    token.hmac_secret_key || token.rsa_public_key || token.ecdsa_public_key || token.jwks_public_endpoint
  const open =
    client.insecure ||
    client.proxy.connect.enabled ||
    client.allow_anonymous_connect_without_token ||
    client.insecure_skip_token_signature_verify
  if (toClients && !keyed && !open) {
    faults.push(
      `client.token.hmac_secret_key: no token secret is set ${where}; set it or another key of client.token ` +
        '(or enable client.proxy.connect, client.allow_anonymous_connect_without_token or client.insecure)',
    )
  }
  if (!api.disabled && api.key === '' && !api.insecure) {
    faults.push(
      `http_api.key: no API key is set ${where}; set it (or enable http_api.disabled or http_api.insecure)`,
    )
  }
  if (toClients && client.allowed_origins.length === 0) {
    faults.push(
      `client.allowed_origins: no origins are set ${where}; list those of your pages (or allow all with "*")`,
    )
  }
  return faults
}

/**
 * @param {Config} config
 * @param {readonly string[]} [warnings] of it
 * @param {string} [ended] what ended the development profile; a user who expects it learns of `--dev`
 * @returns {string[]} these, and one for each short secret
 * @throws {ConfigError} with the exposure faults and the secrets that everybody knows
 */
export function checkExposure(config, warnings = [], ended = '') {
  const all = [...warnings, ...secretWarnings(config)]
  const exposed = exposureFaults(config)
  const faults = [...exposed, ...secretFaults(config, exposedBy(config) !== '')]
  if (exposed.length > 0 && ended !== '')
    faults.push(`the development profile is off because of ${ended}; --dev keeps it below what is set`)
  if (faults.length > 0) throw new ConfigError(faults, all)
  return all
}

/** Variables that end the development profile. */
const ENDING = /^HALLEY_(CLIENT|CHANNEL|HTTP_API|PROXIES|RPC)_/

/**
 * Why there is no development profile.
 * @param {string | undefined} file @param {Readonly<Record<string, string | undefined>>} env @param {string} address
 * @returns {string} '' if there is one
 */
function endedBy(file, env, address) {
  if (file !== undefined) return `the file ${file}`
  const variables = Object.keys(env).filter(name => ENDING.test(name) && env[name])
  if (variables.length > 0) return variables.join(', ')
  return address === '' || isLoopback(address) ? '' : `the address ${address}`
}

/**
 * The namespaces of the sources, and those of the development profile that they do not name.
 * @param {Config} config of the sources above the profile @param {Record<string, unknown>} base the profile
 * @returns {Config}
 */
function withNamespaces(config, base) {
  const { namespaces } = config.channel
  const names = new Set(namespaces.map(({ name }) => name))
  const missing = loadConfig({ base }).config.channel.namespaces.filter(({ name }) => !names.has(name))
  if (missing.length === 0) return config
  const all = Object.freeze([...namespaces, ...missing])
  return Object.freeze({ ...config, channel: Object.freeze({ ...config.channel, namespaces: all }) })
}

/** @returns {string} a key for the development profile: 32 hex digits */
export const generateKey = () => randomBytes(16).toString('hex')

/**
 * @typedef {object} Served the configuration to serve with
 * @property {Config} config
 * @property {string[]} warnings
 * @property {Profile} profile
 * @property {string} generatedKey the key of the server API, if it is the generated one; else ''
 * @property {string} ended the variables that ended the profile, if a gateway on loopback would have it without them;
 *   else ''
 */

/**
 * The configuration to serve with: that of the sources, or the development profile. Without `dev` there is a profile if
 * nothing is configured: no file, no HALLEY_ variable about clients, channels, proxies or the API, and no address
 * beyond loopback. With `dev` it stays below the sources: what they set wins.
 * @param {object} sources as for loadConfig
 * @param {string} [sources.file]
 * @param {Readonly<Record<string, string | undefined>>} [sources.env]
 * @param {Readonly<Record<string, any>>} [sources.flags]
 * @param {string} [sources.cwd]
 * @param {object} [options]
 * @param {string} [options.key] API key of the development profile, for a reload the same as before; default: a new one
 * @param {boolean} [options.dev] `--dev`
 * @returns {Served}
 * @throws {ConfigError} also as checkExposure
 */
export function configureServer(sources, { key = generateKey(), dev = false } = {}) {
  const { file, env = {} } = sources
  if (!dev) {
    const { config, warnings } = loadConfig(sources)
    const { address } = config.http_server
    const ended = endedBy(file, env, address)
    if (ended !== '') {
      const all = checkExposure(config, warnings, ended)
      const silently = file === undefined && isLoopback(address)
      return {
        config,
        warnings: all,
        profile: 'configured',
        generatedKey: '',
        ended: silently ? ended : '',
      }
    }
  }
  const { config, warnings } = loadBelow(sources, key)
  const all = checkExposure(config, warnings)
  const by = exposedBy(config)
  if (by !== '') {
    const what = `others can reach the development profile while it is ${JSON.stringify(config.http_server[by])}`
    all.push(`http_server.${by}: ${what}`)
  }
  const generatedKey = config.http_api.key === key ? key : ''
  return { config, warnings: all, profile: 'development', generatedKey, ended: '' }
}

/**
 * The development profile below the sources.
 * @param {{file?: string, env?: Readonly<Record<string, string | undefined>>, flags?: Readonly<Record<string, any>>,
 *   cwd?: string}} sources
 * @param {string} key
 */
function loadBelow(sources, key) {
  let base = developmentProfile(key)
  let loaded = loadConfig({ ...sources, base })
  const { http_api: api, admin } = loaded.config
  if (api.key !== key && admin.password === key) {
    // One key for both, also if the sources set it.
    base = { ...base, admin: { password: api.key } }
    loaded = loadConfig({ ...sources, base })
  }
  return { config: withNamespaces(loaded.config, base), warnings: loaded.warnings }
}
