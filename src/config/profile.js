import { randomBytes } from 'node:crypto'
import { ConfigError, loadConfig } from './load.js'
import { secretFaults, secretWarnings } from './secrets.js'

/** @import { Config } from './load.js' */
/** @typedef {'development' | 'configured'} Profile */

/** Permissions of all clients in the development profile. */
const OPEN = Object.freeze({
  presence: true,
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

/** @param {string} address `http_server.address`; '' is all interfaces */
export function isLoopback(address) {
  const host = address.toLowerCase().replace(/^\[(.*)\]$/, '$1')
  return host === 'localhost' || host === '::1' || /^(::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host)
}

/**
 * Settings for a first try on the local machine: loopback, anonymous clients, a demo page.
 * @param {{address: string, port: number, key: string}} where `address` '' is 127.0.0.1; `port` 0 is any
 * @returns {Record<string, unknown>} a tree like that of a file
 */
export function developmentProfile({ address, port, key }) {
  const listens = address === '' ? '127.0.0.1' : address
  const host = listens.includes(':') && !listens.startsWith('[') ? `[${listens}]` : listens
  const hosts = new Set(['127.0.0.1', 'localhost', host])
  return {
    http_server: { address: listens },
    client: {
      allow_anonymous_connect_without_token: true,
      allowed_origins: [...hosts].map(name => `http://${name}:${port === 0 ? '*' : port}`),
    },
    channel: {
      without_namespace: { ...OPEN },
      namespaces: [
        { name: 'demo', ...OPEN, join_leave: true, force_push_join_leave: true },
        // The demo page's pointers: only the newest counts, so none is kept.
        { name: 'pointers', ...OPEN, history_size: 0, history_ttl: '0s', force_recovery: false },
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
 * @returns {string[]} these, and one for each short secret
 * @throws {ConfigError} with the exposure faults and the secrets that everybody knows
 */
export function checkExposure(config, warnings = []) {
  const all = [...warnings, ...secretWarnings(config)]
  const faults = [...exposureFaults(config), ...secretFaults(config, exposedBy(config) !== '')]
  if (faults.length > 0) throw new ConfigError(faults, all)
  return all
}

/**
 * The configuration to serve with: that of the sources, or the development profile if nothing is configured: no
 * file, no HALLEY_ variable about clients, channels, proxies or the API, and no address beyond loopback.
 * @param {object} sources as for loadConfig
 * @param {string} [sources.file]
 * @param {Readonly<Record<string, string | undefined>>} [sources.env]
 * @param {Readonly<Record<string, any>>} [sources.flags]
 * @param {string} [sources.cwd]
 * @param {string} [key] API key of the development profile; generated if absent
 * @returns {{config: Config, warnings: string[], profile: Profile}}
 * @throws {ConfigError} also as checkExposure
 */
export function configureServer(sources, key) {
  const { file, env = {} } = sources
  const loaded = loadConfig(sources)
  const configured =
    file !== undefined ||
    Object.keys(env).some(name => /^HALLEY_(CLIENT|CHANNEL|HTTP_API|PROXIES|RPC)_/.test(name) && env[name])
  const { address, port } = loaded.config.http_server
  if (configured || (address !== '' && !isLoopback(address))) {
    const warnings = checkExposure(loaded.config, loaded.warnings)
    return { config: loaded.config, warnings, profile: 'configured' }
  }
  const base = developmentProfile({ address, port, key: key ?? randomBytes(16).toString('hex') })
  const { config, warnings } = loadConfig({ ...sources, base })
  return { config, warnings: checkExposure(config, warnings), profile: 'development' }
}
