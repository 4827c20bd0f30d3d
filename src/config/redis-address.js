// Addresses of Redis in the form of Centrifugo v6. No message here shows an address: it may hold a password.

import { parseDuration, show } from './values.js'

/** @typedef {{host: string, port: number}} HostPort */

/**
 * @typedef {object} RedisAddress a parsed address
 * @property {'single' | 'sentinel' | 'cluster'} kind
 * @property {HostPort[]} hosts the server, the sentinels, or some nodes of the cluster; empty with `path`
 * @property {string} path of a Unix socket, else ''
 * @property {Record<string, any>} own options in the address, by names of the common ones; durations in ms
 * @property {string[]} unsupported options of Centrifugo that Halley does not support yet
 */

const DEFAULT_PORT = 6379
const SENTINEL_PORT = 26379

const FORM =
  'is not an address like host:port or redis://user:password@host:port/db (in a password, write special characters as %XX)'

/** Meaning of the schemes. @type {Readonly<Record<string, {kind: RedisAddress['kind'], tls?: boolean}>>} */
const SCHEMES = Object.freeze({
  redis: { kind: 'single' },
  tcp: { kind: 'single' },
  rediss: { kind: 'single', tls: true },
  'redis+sentinel': { kind: 'sentinel' },
  'rediss+sentinel': { kind: 'sentinel', tls: true },
  'redis+cluster': { kind: 'cluster' },
  'rediss+cluster': { kind: 'cluster', tls: true },
})

const URL_FORM =
  /^([a-z+]+):\/\/(?:([^/?#]*)@)?(\[[^\]/?#@]+\]|[^[\]:/?#@\s,]+)(?::(\d+))?(?:\/([^?#]*))?(?:\?([^#]*))?$/i
const UNIX_FORM = /^unix:\/\/(?:([^/?#]*)@)?(\/[^?#]+)(?:\?([^#]*))?$/i
const HOST_PORT_FORM = /^(\[[^\]/?#@]+\]|[^[\]:/?#@\s,]+)(?::(\d+))?$/

/** @param {string} host @param {string | undefined} port @param {number} otherwise @returns {HostPort} */
function hostPort(host, port, otherwise) {
  const number = port === undefined ? otherwise : Number(port)
  if (number < 1 || number > 65535) throw new Error('has a port that is not between 1 and 65535')
  return { host: host.replace(/^\[(.*)\]$/, '$1'), port: number }
}

/**
 * @param {string} text `host:port`, `[::1]:port` or `host` @param {number} otherwise default port
 * @returns {HostPort | null}
 */
function parseHostPort(text, otherwise) {
  const [found, host, port] = HOST_PORT_FORM.exec(text) ?? []
  return found === undefined ? null : hostPort(host, port, otherwise)
}

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new Error('has a % in user or password without two hex digits after it; write % as %25')
  }
}

/** @param {string | undefined} auth `user:password` @param {Record<string, any>} own is changed */
function readAuth(auth, own) {
  if (auth === undefined) return
  const colon = auth.indexOf(':')
  const user = colon === -1 ? auth : auth.slice(0, colon)
  if (user !== '') own.user = decode(user)
  if (colon !== -1) own.password = decode(auth.slice(colon + 1))
}

/** @param {string} name @param {string} value */
function readSwitch(name, value) {
  if (['true', 't', '1'].includes(value.toLowerCase())) return true
  if (['false', 'f', '0'].includes(value.toLowerCase())) return false
  throw new Error(`option ${name}: ${show(value)} is not true or false`)
}

/** @param {string} name @param {string} value */
function readTimeout(name, value) {
  let ms = 0
  try {
    ms = parseDuration(value)
  } catch (error) {
    throw new Error(`option ${name}: ${error.message}`)
  }
  if (ms < 1) throw new Error(`option ${name}: ${show(value)} is too short`)
  return ms
}

/** @param {string} name @param {string} value */
function readText(name, value) {
  if (value === '') throw new Error(`option ${name} is empty`)
  return value
}

/**
 * Options after `?`: name of the common key, and reader of the value.
 * @type {Readonly<Record<string, [string, (name: string, value: string) => any]>>}
 */
const OPTIONS = Object.freeze({
  connect_timeout: ['connect_timeout', readTimeout],
  io_timeout: ['io_timeout', readTimeout],
  tls_enabled: ['tls', readSwitch],
  sentinel_tls_enabled: ['sentinel_tls', readSwitch],
  sentinel_master_name: ['sentinel_master_name', readText],
  sentinel_user: ['sentinel_user', readText],
  sentinel_password: ['sentinel_password', readText],
})
const UNSUPPORTED = ['force_resp2', 'replica_client_enabled']

/** @param {string | undefined} query @param {RedisAddress} address is changed @returns {string[]} values of `addr` */
function readQuery(query, address) {
  const more = []
  for (const [name, value] of new URLSearchParams(query)) {
    if (name === 'addr') more.push(value)
    else if (UNSUPPORTED.includes(name)) address.unsupported.push(name)
    else if (Object.hasOwn(OPTIONS, name)) {
      const [key, read] = OPTIONS[name]
      address.own[key] = read(name, value)
    } else {
      // After a ? that should have been %3F, the name may be half of a password.
      const shown = query?.includes('@') ? '' : ` ${show(name)}`
      throw new Error(
        `has an unknown option${shown}; known ones are addr, ${Object.keys(OPTIONS).join(', ')}`,
      )
    }
  }
  return more
}

/** @param {RegExpExecArray} match of UNIX_FORM @returns {RedisAddress} */
function parseUnix([, auth, path, query]) {
  /** @type {RedisAddress} */
  const address = { kind: 'single', hosts: [], path: decode(path), own: {}, unsupported: [] }
  readAuth(auth, address.own)
  const more = readQuery(query, address)
  if (more.length > 0) throw new Error('names a Unix socket, which cannot have addr')
  if (address.own.tls) throw new Error('names a Unix socket, which cannot use TLS')
  address.own.tls = false
  return address
}

/**
 * @param {string} text @returns {RedisAddress}
 * @throws {Error} whose message follows the key and shows no password
 */
export function parseRedisAddress(text) {
  if (!text.includes('://')) {
    const only = parseHostPort(text, DEFAULT_PORT)
    if (only === null) {
      if (/^[^@[]*,/.test(text)) throw new Error('holds several addresses; write them as a list')
      if (/^[\da-f:]*:[\da-f:]*:[\da-f:.]*$/i.test(text))
        throw new Error('is an IPv6 address without brackets; write [::1]:6379')
      throw new Error(FORM)
    }
    return { kind: 'single', hosts: [only], path: '', own: {}, unsupported: [] }
  }
  const unix = UNIX_FORM.exec(text)
  if (unix !== null) return parseUnix(unix)
  const scheme = text.slice(0, text.indexOf('://')).toLowerCase()
  if (!Object.hasOwn(SCHEMES, scheme) && scheme !== 'unix' && /^[a-z+]+$/.test(scheme)) {
    throw new Error(
      `has the unknown scheme ${scheme}://; known ones are ${Object.keys(SCHEMES).join('://, ')}:// and unix://`,
    )
  }
  const match = URL_FORM.exec(text)
  if (match === null || scheme === 'unix')
    throw new Error(scheme === 'unix' ? 'is not like unix:///path' : FORM)
  return readUrl(match, SCHEMES[scheme])
}

/**
 * @param {RegExpExecArray} match of URL_FORM @param {{kind: RedisAddress['kind'], tls?: boolean}} scheme
 * @returns {RedisAddress}
 */
function readUrl([, , auth, host, port, db, query], { kind, tls }) {
  /** @type {RedisAddress} */
  const address = { kind, hosts: [], path: '', own: {}, unsupported: [] }
  const { own } = address
  if (tls) own.tls = own.sentinel_tls = true
  readAuth(auth, own)
  if (db !== undefined && db !== '') {
    if (!/^\d{1,9}$/.test(db)) throw new Error('has a path after host and port that is not a database number')
    own.db = Number(db)
  }
  const more = readQuery(query, address)
  // Centrifugo detects the kind of server; with plain schemes these options decide it here.
  if (kind === 'single' && own.sentinel_master_name !== undefined) address.kind = 'sentinel'
  else if (kind === 'single' && more.length > 0) address.kind = 'cluster'
  const otherwise = address.kind === 'sentinel' ? SENTINEL_PORT : DEFAULT_PORT
  address.hosts = [hostPort(host, port, otherwise), ...more.map(text => extraHost(text, otherwise))]
  return address
}

/** @param {string} text of an `addr` @param {number} otherwise default port */
function extraHost(text, otherwise) {
  const found = parseHostPort(text, otherwise)
  if (found === null) throw new Error('has an addr that is not host:port')
  return found
}

/**
 * An entry of `cluster_address` or `sentinel_address`.
 * @param {string} text `host:port,host:port` @param {'sentinel' | 'cluster'} kind
 * @returns {RedisAddress}
 * @throws {Error}
 */
export function parseRedisHosts(text, kind) {
  const otherwise = kind === 'sentinel' ? SENTINEL_PORT : DEFAULT_PORT
  const hosts = text.split(',').map(entry => {
    const found = parseHostPort(entry.trim(), otherwise)
    if (found === null) throw new Error('is not like host:port,host:port')
    return found
  })
  return { kind, hosts, path: '', own: {}, unsupported: [] }
}

/** @param {HostPort} server */
export const formatHostPort = ({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`
