// The development profile, and the settings that a public gateway needs: long random secrets.

import { randomBytes } from 'node:crypto'
import { COMMAND } from '../base/version.js'
import { ConfigError, loadConfig } from './load.js'

/** @import { Sources } from './load.js' */
/** @import { Config } from './options.js' */
/** @import { Values } from './values.js' */
/** @typedef {'development' | 'configured'} Profile */

const SUBSCRIBE = Object.freeze({ allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true })
const PUBLISH = Object.freeze({ allow_publish_for_subscriber: true, allow_publish_for_anonymous: true })
/** All permissions, for the development profile. */
const OPEN = Object.freeze({
  presence: true,
  join_leave: true,
  history_size: 50,
  history_ttl: '10m',
  force_recovery: true,
  ...SUBSCRIBE,
  ...PUBLISH,
  allow_presence_for_subscriber: true,
  allow_presence_for_anonymous: true,
  allow_history_for_subscriber: true,
  allow_history_for_anonymous: true,
  allowed_delta_types: ['fossil'],
  delta_publish: true,
})

/** RFC 7518, section 3.2: an HS256 key has at least the 32 bytes of the hash. Also for API and admin keys. */
export const MIN_BYTES = 32

/** From the docs, as lower-case letters and digits. */
const PLACEHOLDER = /^change(me|this)|random(text|key|string|bytes)$/

/** Common words, likewise: `secret`, `API_KEY`, `<your-password>`. */
const WORD = /^(the|my|your|some|super|top|test)?(api|admin|hmac|token|jwt)?(secret|password|key)+\d{0,4}$/

/** Ignored with a JWKS. */
const TOKEN_KEYS = /** @type {const} */ (['hmac_secret_key', 'hmac_previous_secret_key'])

/**
 * Live secrets that clients, backends or admins can guess.
 * @param {Config} config
 * @returns {[key: string, secret: string][]}
 */
function secretsOf(config) {
  const { client, channel, http_api: api, admin, uni_poll, lifecycle, shared_poll: poll } = config
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
  const channels = [channel.without_namespace, ...channel.namespaces]
  if (channels.some(options => options.subscription_type === 'shared_poll'))
    for (const name of TOKEN_KEYS) secrets.push([`shared_poll.${name}`, poll[name]])
  return secrets.filter(([, secret]) => secret !== '')
}

/**
 * Common and short secrets.
 * @param {Config} config @param {boolean} exposed beyond this machine: also refuses words
 */
function checkSecrets(config, exposed) {
  const made = `(${COMMAND} config init generates them)`
  const faults = []
  const warnings = []
  for (const [key, secret] of secretsOf(config)) {
    const letters = secret.toLowerCase().replace(/[^a-z\d]/g, '')
    const bytes = Buffer.byteLength(secret)
    if (PLACEHOLDER.test(letters) || (exposed && WORD.test(letters)))
      faults.push(`${key}: is a well-known value; replace it with a random one ${made}`)
    if (bytes < MIN_BYTES) {
      const size = bytes === 1 ? '1 byte' : `${bytes} bytes`
      warnings.push(`${key}: is only ${size} long; use ${MIN_BYTES} random bytes ${made}`)
    }
  }
  return { faults, warnings }
}

/** @param {string} address '': all interfaces */
export function isLoopback(address) {
  const host = address.toLowerCase().replace(/^\[(.*)\]$/, '$1')
  return host === 'localhost' || host === '::1' || /^(::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host)
}

/**
 * Defaults for local trials.
 * @param {string} key of the server API and of the admin page
 * @returns {Values} a tree like that of a file
 */
export function developmentProfile(key) {
  const on = { enabled: true }
  const ofClients = { client_key: 'client_id', remove_client_on_unsubscribe: true }
  const pointers = { mode: 'ephemeral', key_ttl: '10m', ...ofClients, ...PUBLISH }
  return {
    http_server: { address: '127.0.0.1' },
    client: { allow_anonymous_connect_without_token: true, allowed_origins: ['loopback'] },
    channel: {
      without_namespace: { ...OPEN },
      namespaces: [
        { name: 'demo', ...OPEN, force_push_join_leave: true },
        // Pointers of the demo page.
        { name: 'pointers', subscription_type: 'map', ...SUBSCRIBE, map: pointers },
      ],
    },
    http_stream: on,
    sse: on,
    poll: on,
    uni_websocket: on,
    uni_sse: on,
    uni_http_stream: on,
    uni_poll: on,
    http_api: { key },
    // Both are printed on the same terminal.
    admin: { password: key },
    prometheus: on,
    health: on,
    demo: on,
  }
}

/** The option that exposes the server API and the admin page beyond this machine, or ''. @param {Config} config */
function exposedBy({ http_server: { address, internal_address, internal_port } }) {
  if (!isLoopback(address)) return 'address'
  const internal = internal_port !== 0 && internal_address !== '' && !isLoopback(internal_address)
  return internal ? 'internal_address' : ''
}

/** Missing settings of a public gateway, a line each. @param {Config} config */
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
  if (toClients && !keyed && !open)
    faults.push(
      `client.token.hmac_secret_key: no token secret is set ${where}; set it or another key of client.token ` +
        '(or enable client.proxy.connect, client.allow_anonymous_connect_without_token or client.insecure)',
    )
  if (!api.disabled && api.key === '' && !api.insecure)
    faults.push(
      `http_api.key: no API key is set ${where}; set it (or enable http_api.disabled or http_api.insecure)`,
    )
  if (toClients && client.allowed_origins.length === 0)
    faults.push(
      `client.allowed_origins: no origins are set ${where}; list those of your pages (or allow all with "*")`,
    )
  return faults
}

/**
 * Warns about each short secret.
 * @param {Config} config @param {readonly string[]} [warnings]
 * @param {string} [ended] reason for the end of the profile
 * @throws {ConfigError} exposure faults, common secrets
 */
export function checkExposure(config, warnings = [], ended = '') {
  const exposed = exposureFaults(config)
  const secrets = checkSecrets(config, exposedBy(config) !== '')
  const faults = [...exposed, ...secrets.faults]
  const all = [...warnings, ...secrets.warnings]
  if (exposed.length > 0 && ended !== '')
    faults.push(`the development profile is off because of ${ended}; --dev applies it below your settings`)
  if (faults.length > 0) throw new ConfigError(faults, all)
  return all
}

/** Variables that end the development profile. */
const ENDING = /^HALLEY_(CLIENT|CHANNEL|HTTP_API|PROXIES|RPC)_/

/** What ended the development profile, or ''. @param {Sources} sources @param {string} address */
function endedBy({ file, env = {} }, address) {
  if (file !== undefined) return `the file ${file}`
  const variables = Object.keys(env).filter(name => ENDING.test(name) && env[name])
  if (variables.length > 0) return variables.join(', ')
  return address === '' || isLoopback(address) ? '' : `the address ${address}`
}

/** 32 hex digits. */
export const generateKey = () => randomBytes(16).toString('hex')

/**
 * @typedef {object} Served
 * @property {Config} config
 * @property {string[]} warnings
 * @property {Profile} profile
 * @property {string} generatedKey of the server API, or ''
 * @property {string} ended by variables, on loopback; or ''
 */

/**
 * Without `dev`, the development profile applies if nothing is configured: no file, no HALLEY_ variable about clients,
 * channels, proxies or the API, and no address beyond loopback. With `dev`, the sources override it.
 * @param {Sources} sources
 * @param {object} [options]
 * @param {string} [options.key] API key of the development profile; a reload keeps it
 * @param {boolean} [options.dev] `--dev`
 * @returns {Served}
 * @throws {ConfigError}
 */
export function configureServer(sources, { key = generateKey(), dev = false } = {}) {
  if (!dev) {
    const { config, warnings } = loadConfig(sources)
    const { address } = config.http_server
    const by = endedBy(sources, address)
    if (by !== '') {
      const all = checkExposure(config, warnings, by)
      const ended = sources.file === undefined && isLoopback(address) ? by : ''
      return { config, warnings: all, profile: 'configured', generatedKey: '', ended }
    }
  }
  const { config, warnings } = loadAboveProfile(sources, key)
  const all = checkExposure(config, warnings)
  const by = exposedBy(config)
  if (by !== '') {
    const address = JSON.stringify(config.http_server[by])
    all.push(`http_server.${by}: ${address} exposes the development profile to other machines`)
  }
  const generatedKey = config.http_api.key === key ? key : ''
  return { config, warnings: all, profile: 'development', generatedKey, ended: '' }
}

/** @param {Sources} sources @param {string} key */
function loadAboveProfile(sources, key) {
  let base = developmentProfile(key)
  let { config, warnings } = loadConfig({ ...sources, base })
  const { http_api: api, admin } = config
  if (api.key !== key && admin.password === key) {
    // One key for both, even from the sources.
    base = { ...base, admin: { password: api.key } }
    ;({ config, warnings } = loadConfig({ ...sources, base }))
  }
  // Keep the profile's namespaces missing in the sources.
  const { namespaces } = config.channel
  const names = new Set(namespaces.map(({ name }) => name))
  const missing = loadConfig({ base }).config.channel.namespaces.filter(({ name }) => !names.has(name))
  const channel = Object.freeze({ ...config.channel, namespaces: Object.freeze([...namespaces, ...missing]) })
  return { config: Object.freeze({ ...config, channel }), warnings }
}
