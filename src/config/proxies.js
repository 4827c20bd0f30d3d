// Rules of event proxies: where each of them goes, and which blocks and names exist. Workers load this file, too, so it
// does not import the table of options.

import { createRequire } from 'node:module'
import { checkTls } from './pem.js'
import { get, show } from './values.js'

/** @import { Report } from './error.js' */
/** @import { ChannelOptions, Config, ProxyOptions } from './options.js' */

/** Headers that a proxy sets itself, or that belong to one connection only (RFC 9110, section 7.6.1). */
const NEVER_FORWARDED = new Set([
  ...['host', 'connection', 'upgrade', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'expect'],
  ...['content-length', 'content-type', 'accept-encoding'],
])

/** @param {string} name of a client's header, in lower case @returns {boolean} */
export const isNeverForwarded = name => NEVER_FORWARDED.has(name) || name.startsWith('proxy-')

/** @param {string} endpoint of a proxy @returns {boolean} false: gRPC */
export const isHttpEndpoint = endpoint => /^https?:\/\//i.test(endpoint)

/** Blocks with a key `enabled`. */
const CLIENT_PROXIES = Object.freeze(
  ['connect', 'refresh', 'disconnected', 'unsubscribed'].map(event => `client.proxy.${event}`),
)
/** Events with channel options `<event>_proxy_enabled` and `<event>_proxy_name`. */
const CHANNEL_EVENTS = /** @type {const} */ (['subscribe', 'publish', 'sub_refresh'])
/** Name of the blocks among the proxies. */
const DEFAULT = 'default'

/** RFC 9110, section 5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9a-z-]+$/i
/** RFC 9110, section 5.5, in ASCII. */
const FIELD_VALUE = /^[\t -~]*$/
/** `host:port` of gRPC, with its own scheme or without. */
const GRPC_TARGET = /^(grpc:\/\/)?([\w.-]+|\[[\da-f:.]+\]):\d{1,5}$/i
/** Other names of gRPC. */
const GRPC_NAME = /^(dns|ipv4|ipv6|unix):\S+$/
/** Names of metadata (gRPC over HTTP/2, "Requests"); `grpc-` is reserved. */
const METADATA_NAME = /^(?!grpc-)[0-9a-z_.-]+$/i
const METADATA_VALUE = /^[ -~]*$/
/** The package of gRPC proxies, an optional peer dependency. */
const GRPC_PACKAGE = '@grpc/grpc-js'

const require = createRequire(import.meta.url)

function hasGrpcPackage() {
  try {
    require.resolve(GRPC_PACKAGE)
    return true
  } catch {
    return false
  }
}

/** @param {string} endpoint not empty @returns {string} the fault, '' if there is none */
function endpointFault(endpoint) {
  if (isHttpEndpoint(endpoint)) {
    if (!URL.canParse(endpoint)) return 'is not a URL'
    const { username, password } = new URL(endpoint)
    if (username === '' && password === '') return ''
    return 'has a user or password; send them with http.static_headers (Authorization)'
  }
  if (GRPC_TARGET.test(endpoint) || GRPC_NAME.test(endpoint)) return ''
  return `${show(endpoint)} is neither an http:// or https:// URL nor a gRPC target like host:port`
}

/** @param {string} text of an error or a disconnect */
const textFault = text => (/^[ -~]{0,123}$/.test(text) ? '' : 'is longer than 123 bytes or not ASCII')

/** @param {ProxyOptions['http']['status_to_code_transforms'][number]} transform @returns {string} the fault, '' if there is none */
function transformFault({ to_error: error, to_disconnect: disconnect }) {
  if (error.code > 0 === disconnect.code > 0)
    return 'needs either to_error.code or to_disconnect.code above 0'
  if (disconnect.code > 0 && disconnect.code < 3000) return 'has a to_disconnect.code outside of 3000 to 4999'
  const fault = textFault(error.message)
  if (fault !== '') return `has a to_error.message that ${fault}`
  const reason = textFault(disconnect.reason)
  return reason === '' ? '' : `has a to_disconnect.reason that ${reason}`
}

/** @param {string} key @param {[string, string][]} entries @param {Report} report */
function checkMetadata(key, entries, report) {
  const { refuse } = report
  for (const [name, value] of entries) {
    if (!METADATA_NAME.test(name)) refuse([key], `${show(name)} is not a name of metadata`)
    else if (!METADATA_VALUE.test(value)) refuse([key], `the value of ${show(name)} is not plain ASCII`)
    else if (isNeverForwarded(name.toLowerCase())) report.warn(key, `${show(name)} is never sent`)
  }
}

/**
 * @param {string} path of the block
 * @param {ProxyOptions} proxy
 * @param {boolean} used whether an endpoint is needed @param {string[]} needs keys that use it @param {Report} report
 */
function checkProxy(path, proxy, used, needs, report) {
  const { refuse } = report
  const endpoint = `${path}.endpoint`
  if (proxy.endpoint !== '') {
    const fault = endpointFault(proxy.endpoint)
    if (fault !== '') refuse([endpoint], fault)
    else if (used && !isHttpEndpoint(proxy.endpoint) && !hasGrpcPackage())
      refuse([endpoint], `is a gRPC target, which needs a package: npm install ${GRPC_PACKAGE}`)
  } else if (used) {
    refuse([endpoint, ...needs], needs.length > 0 ? `is empty, and ${needs[0]} is true` : 'is empty')
  }
  for (const key of /** @type {const} */ (['http_headers', 'emulated_headers'])) {
    for (const name of proxy[key]) {
      if (!TOKEN.test(name)) refuse([`${path}.${key}`], `${show(name)} is not the name of a header`)
      else if (isNeverForwarded(name.toLowerCase()))
        report.warn(`${path}.${key}`, `${show(name)} is never forwarded`)
    }
  }
  for (const [name, value] of Object.entries(proxy.http.static_headers)) {
    const key = `${path}.http.static_headers`
    if (!TOKEN.test(name)) refuse([key], `${show(name)} is not the name of a header`)
    else if (!FIELD_VALUE.test(value)) refuse([key], `the value of ${show(name)} is not plain ASCII`)
    else if (isNeverForwarded(name.toLowerCase())) report.warn(key, `${show(name)} is never sent`)
  }
  const { static_metadata: metadata, credentials_key: name, credentials_value: value } = proxy.grpc
  checkMetadata(`${path}.grpc.static_metadata`, Object.entries(metadata), report)
  if (name !== '') checkMetadata(`${path}.grpc.credentials_key`, [[name, value]], report)
  for (const [i, transform] of proxy.http.status_to_code_transforms.entries()) {
    const fault = transformFault(transform)
    if (fault !== '') refuse([`${path}.http.status_to_code_transforms`], `[${i}] ${fault}`)
  }
  const { tls } = isHttpEndpoint(proxy.endpoint) ? proxy.http : proxy.grpc
  const block = `${path}.${isHttpEndpoint(proxy.endpoint) ? 'http' : 'grpc'}.tls`
  if (used && tls.enabled) checkTls(block, tls, report)
}

/**
 * @param {Config} config
 * @param {Report} report
 */
export function checkProxies(config, report) {
  const names = new Set(config.proxies.map(({ name }) => name))
  /** Blocks -> keys that use them. @type {Map<string, string[]>} */
  const users = new Map()
  /** @type {(block: string, key: string) => void} */
  const use = (block, key) => void users.set(block, [...(users.get(block) ?? []), key])

  for (const block of CLIENT_PROXIES) if (get(config, block).enabled) use(block, `${block}.enabled`)
  /** @type {(block: string, name: string, on: boolean, path: string, event: string) => void} */
  const named = (block, name, on, path, event) => {
    if (name !== '' && name !== DEFAULT) {
      if (!names.has(name))
        report.refuse([`${path}.${event}proxy_name`, 'proxies'], `there is no proxy ${show(name)}`)
    } else if (on) use(block, `${path}.${event}proxy_enabled`)
  }
  /** @type {(options: ChannelOptions, path: string) => void} */
  const channel = (options, path) => {
    for (const event of CHANNEL_EVENTS) {
      const name = options[/** @type {const} */ (`${event}_proxy_name`)]
      const on = options[/** @type {const} */ (`${event}_proxy_enabled`)]
      named(`channel.proxy.${event}`, name, on, path, `${event}_`)
    }
  }
  channel(config.channel.without_namespace, 'channel.without_namespace')
  for (const [i, options] of config.channel.namespaces.entries()) channel(options, `channel.namespaces[${i}]`)
  /** @type {(options: Config['rpc']['without_namespace'], path: string) => void} */
  const rpc = ({ proxy_name: name, proxy_enabled: on }, path) => named('rpc.proxy', name, on, path, '')
  rpc(config.rpc.without_namespace, 'rpc.without_namespace')
  for (const [i, options] of config.rpc.namespaces.entries()) rpc(options, `rpc.namespaces[${i}]`)

  const blocks = [...CLIENT_PROXIES, ...CHANNEL_EVENTS.map(event => `channel.proxy.${event}`), 'rpc.proxy']
  for (const block of blocks) {
    const keys = users.get(block) ?? []
    checkProxy(block, get(config, block), keys.length > 0, keys, report)
  }
  for (const [i, proxy] of config.proxies.entries()) {
    const path = `proxies[${i}]`
    if (proxy.name === DEFAULT) report.refuse([`${path}.name`], '"default" is the name of the blocks')
    checkProxy(path, proxy, true, [], report)
  }
  for (const block of ['channel.proxy.publish', 'rpc.proxy']) {
    if (get(config, block).retries > 0)
      report.refuse([`${block}.retries`], 'must be 0: a repeated call could take effect twice')
  }
}
