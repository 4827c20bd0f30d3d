// Rules of event proxies, without the table of options: workers load this file.

import { createRequire } from 'node:module'
import { checkTls } from './pem.js'
import { show } from './values.js'

/** @import { Report } from './error.js' */
/** @import { ChannelOptions, Config, ProxyOptions } from './options.js' */

/** Set by the proxy, or hop-by-hop (RFC 9110, section 7.6.1). */
const NEVER_FORWARDED = new Set([
  ...['host', 'connection', 'upgrade', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'expect'],
  ...['content-length', 'content-type', 'accept-encoding'],
])

/** @param {string} name in lower case */
export const isNeverForwarded = name => NEVER_FORWARDED.has(name) || name.startsWith('proxy-')

/** False: gRPC. @param {string} endpoint */
export const isHttpEndpoint = endpoint => /^https?:\/\//i.test(endpoint)

/** Events with `enabled` in their block. */
const CLIENT_EVENTS = /** @type {const} */ (['connect', 'refresh', 'disconnected', 'unsubscribed'])
/** Events with channel options `<event>_proxy_enabled` and `<event>_proxy_name`. */
const CHANNEL_EVENTS = /** @type {const} */ (['subscribe', 'publish', 'sub_refresh', 'cache_empty', 'state'])
/** Events of a map, with the same options in its block `map`. */
const MAP_EVENTS = /** @type {const} */ (['publish', 'remove'])
/** Blocks without retries. */
const EFFECTIVE = /** @type {const} */ (['publish', 'map_publish', 'map_remove'])
const DEFAULT = 'default'

/** RFC 9110, sections 5.6.2 and 5.5 (in ASCII). */
const HEADERS = { name: /^[!#$%&'*+.^_`|~0-9a-z-]+$/i, value: /^[\t -~]*$/, noun: 'the name of a header' }
/** gRPC over HTTP/2, "Requests"; `grpc-` is reserved. */
const METADATA = { name: /^(?!grpc-)[0-9a-z_.-]+$/i, value: /^[ -~]*$/, noun: 'a name of metadata' }
const GRPC_TARGET = /^(grpc:\/\/)?([\w.-]+|\[[\da-f:.]+\]):\d{1,5}$/i
const GRPC_NAME = /^(dns|ipv4|ipv6|unix):\S+$/
/** An optional peer dependency. */
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

/** @param {string} endpoint not empty @returns the fault, or '' */
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

/** @param {string} text */
const textFault = text => (/^[ -~]{0,123}$/.test(text) ? '' : 'is longer than 123 bytes or not ASCII')

/** @param {ProxyOptions['http']['status_to_code_transforms'][number]} transform @returns the fault, or '' */
function transformFault({ to_error: error, to_disconnect: disconnect }) {
  if (error.code > 0 === disconnect.code > 0)
    return 'needs either to_error.code or to_disconnect.code above 0'
  if (disconnect.code > 0 && disconnect.code < 3000) return 'has a to_disconnect.code outside 3000 to 4999'
  const fault = textFault(error.message)
  if (fault !== '') return `has a to_error.message that ${fault}`
  const reason = textFault(disconnect.reason)
  return reason === '' ? '' : `has a to_disconnect.reason that ${reason}`
}

/**
 * @param {string} key
 * @param {[name: string, value: string][]} entries
 * @param {typeof HEADERS} kind @param {Report} report @param {string} [verb]
 */
function checkEntries(key, entries, kind, report, verb = 'sent') {
  for (const [name, value] of entries) {
    if (!kind.name.test(name)) report.refuse([key], `${show(name)} is not ${kind.noun}`)
    else if (!kind.value.test(value)) report.refuse([key], `the value of ${show(name)} is not plain ASCII`)
    else if (isNeverForwarded(name.toLowerCase())) report.warn(key, `${show(name)} is never ${verb}`)
  }
}

/**
 * @param {string} path @param {ProxyOptions} proxy
 * @param {boolean} used needs an endpoint
 * @param {string[]} needs keys that use it
 * @param {Report} report
 */
function checkProxy(path, proxy, used, needs, report) {
  const { refuse } = report
  const { endpoint, http, grpc } = proxy
  const key = `${path}.endpoint`
  const isHttp = isHttpEndpoint(endpoint)
  if (endpoint !== '') {
    const fault = endpointFault(endpoint)
    if (fault !== '') refuse([key], fault)
    else if (used && !isHttp && !hasGrpcPackage())
      refuse([key], `is a gRPC target, which needs a package: npm install ${GRPC_PACKAGE}`)
  } else if (used)
    refuse([key, ...needs], needs.length > 0 ? `is empty, but ${needs[0]} needs it` : 'is empty')
  for (const list of /** @type {const} */ (['http_headers', 'emulated_headers'])) {
    const entries = proxy[list].map(name => /** @type {[string, string]} */ ([name, '']))
    checkEntries(`${path}.${list}`, entries, HEADERS, report, 'forwarded')
  }
  checkEntries(`${path}.http.static_headers`, Object.entries(http.static_headers), HEADERS, report)
  checkEntries(`${path}.grpc.static_metadata`, Object.entries(grpc.static_metadata), METADATA, report)
  const { credentials_key: name, credentials_value: value } = grpc
  if (name !== '') checkEntries(`${path}.grpc.credentials_key`, [[name, value]], METADATA, report)
  for (const [i, transform] of http.status_to_code_transforms.entries()) {
    const fault = transformFault(transform)
    if (fault !== '') refuse([`${path}.http.status_to_code_transforms`], `[${i}] ${fault}`)
  }
  const { tls } = isHttp ? http : grpc
  if (used && tls.enabled) checkTls(`${path}.${isHttp ? 'http' : 'grpc'}.tls`, tls, report)
}

/** @param {Config} config @param {Report} report */
export function checkProxies({ client, channel, hooks, rpc, proxies }, report) {
  const names = proxies.map(({ name }) => name)
  /** Blocks -> keys that use them. @type {Map<string, string[]>} */
  const users = new Map()
  const use = (/** @type {string} */ block, /** @type {string} */ key) =>
    void users.set(block, [...(users.get(block) ?? []), key])
  /** `by`: key that needs the proxy. @type {(block: string, name: string, on: boolean, keys: string, by?: string) => void} */
  const named = (block, name, on, keys, by = `${keys}proxy_enabled`) => {
    if (name !== '' && name !== DEFAULT) {
      if (!names.includes(name))
        report.refuse([`${keys}proxy_name`, 'proxies'], `unknown proxy ${show(name)}`)
    } else if (on) use(block, by)
  }
  const check = (/** @type {string} */ block, /** @type {ProxyOptions} */ proxy) => {
    const keys = users.get(block) ?? []
    checkProxy(block, proxy, keys.length > 0, keys, report)
  }

  const ofChannels = [
    /** @type {const} */ (['channel.without_namespace', channel.without_namespace]),
    ...channel.namespaces.map((options, i) => /** @type {const} */ ([`channel.namespaces[${i}]`, options])),
  ]
  for (const [path, options] of ofChannels) {
    for (const event of CHANNEL_EVENTS) {
      const name = options[/** @type {const} */ (`${event}_proxy_name`)]
      const on = options[/** @type {const} */ (`${event}_proxy_enabled`)]
      named(`channel.proxy.${event}`, name, on, `${path}.${event}_`)
    }
    for (const event of MAP_EVENTS) {
      const name = options.map[/** @type {const} */ (`${event}_proxy_name`)]
      const on = options.map[/** @type {const} */ (`${event}_proxy_enabled`)]
      named(`channel.proxy.map_${event}`, name, on, `${path}.map.${event}_`)
    }
    // A hook may answer in its place.
    const polls = options.subscription_type === 'shared_poll' && hooks.module === ''
    const { proxy_name: name } = options.shared_poll
    named(
      'channel.proxy.shared_poll_refresh',
      name,
      polls,
      `${path}.shared_poll.`,
      `${path}.subscription_type`,
    )
  }
  const { without_namespace: other } = rpc
  named('rpc.proxy', other.proxy_name, other.proxy_enabled, 'rpc.without_namespace.')
  for (const [i, { proxy_name, proxy_enabled }] of rpc.namespaces.entries())
    named('rpc.proxy', proxy_name, proxy_enabled, `rpc.namespaces[${i}].`)

  for (const event of CLIENT_EVENTS) {
    const block = `client.proxy.${event}`
    if (client.proxy[event].enabled) use(block, `${block}.enabled`)
    check(block, client.proxy[event])
  }
  for (const [event, proxy] of Object.entries(channel.proxy)) check(`channel.proxy.${event}`, proxy)
  check('rpc.proxy', rpc.proxy)
  for (const [i, proxy] of proxies.entries()) {
    const path = `proxies[${i}]`
    if (proxy.name === DEFAULT) report.refuse([`${path}.name`], '"default" is a reserved name')
    checkProxy(path, proxy, true, [], report)
  }
  const text = 'must be 0: a repeated call could take effect twice'
  for (const event of EFFECTIVE)
    if (channel.proxy[event].retries > 0) report.refuse([`channel.proxy.${event}.retries`], text)
  if (rpc.proxy.retries > 0) report.refuse(['rpc.proxy.retries'], text)
}
