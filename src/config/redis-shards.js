// Redis addresses as in Centrifugo v6, and shards: addresses override the common options. Messages omit addresses and
// their passwords.

import { parseDuration, show } from './values.js'

/** @import { RedisOptions } from './options.js' */

/** @typedef {{host: string, port: number}} HostPort */
/** @typedef {Omit<RedisOptions, 'prefix' | 'presence_ttl' | 'sharded_pub_sub_partitions' | 'channel_state'>} RedisConnection */

/**
 * @typedef {object} Place
 * @property {'single' | 'sentinel' | 'cluster'} kind
 * @property {HostPort[]} hosts the server, the sentinels, or some nodes of the cluster; [] with `path`
 * @property {string} path of a Unix socket, or ''
 * @property {string[]} unsupported options of Centrifugo
 *
 * @typedef {object} Common
 * @property {string} user
 * @property {string} password
 * @property {number} db
 * @property {string} client_name
 * @property {number} connect_timeout ms
 * @property {number} io_timeout ms
 * @property {string} sentinel_master_name
 * @property {string} sentinel_user
 * @property {string} sentinel_password
 * @property {boolean} tls
 * @property {boolean} sentinel_tls
 *
 * @typedef {Place & {own: Partial<Common>}} RedisAddress
 * @typedef {Place & Common & {key: string, name: string}} RedisShard `key`: `engine.redis.address`, with an index if
 *   there are several; `name`: without a password
 */

const DEFAULT_PORT = 6379
const SENTINEL_PORT = 26379

const FORM =
  'is not an address like host:port or redis://user:password@host:port/db (in a password, write special characters as %XX)'

/** @type {Readonly<Record<string, {kind: Place['kind'], tls?: boolean}>>} */
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

/** @param {string} host @param {string | undefined} port @param {number} usual @returns {HostPort} */
function hostPort(host, port, usual) {
  const number = Number(port ?? usual)
  if (number < 1 || number > 65535) throw new Error('has a port that is not between 1 and 65535')
  return { host: host.replace(/^\[(.*)\]$/, '$1'), port: number }
}

/** @param {string} text `host:port`, `[::1]:port` or `host` @param {number} usual port @param {string} fault */
function parseHostPort(text, usual, fault) {
  const [, host, port] = HOST_PORT_FORM.exec(text) ?? []
  if (host === undefined) throw new Error(fault)
  return hostPort(host, port, usual)
}

/** @param {HostPort} server */
export const formatHostPort = ({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new Error('has a % in user or password without two hex digits after it; write % as %25')
  }
}

/** @param {string} auth `user:password` */
function readAuth(auth) {
  const [user, ...password] = auth.split(':')
  return {
    ...(user !== '' && { user: decode(user) }),
    ...(password.length > 0 && { password: decode(password.join(':')) }),
  }
}

/** @param {string} value */
function readSwitch(value) {
  if (/^(?:true|t|1)$/i.test(value)) return true
  if (/^(?:false|f|0)$/i.test(value)) return false
  throw new Error(`${show(value)} is not true or false`)
}

/** @param {string} value */
function readTimeout(value) {
  const ms = parseDuration(value)
  if (ms < 1) throw new Error(`${show(value)} is too short`)
  return ms
}

/** @param {string} value */
const readText = value => value

/** Common key and reader. @type {Readonly<Record<string, [keyof Common, (value: string) => unknown]>>} */
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

/** @param {string} name @param {string} value @param {boolean} secret the name may be part of a password */
function readOption(name, value, secret) {
  if (!Object.hasOwn(OPTIONS, name)) {
    const known = ['addr', ...Object.keys(OPTIONS)].join(', ')
    throw new Error(`has an unknown option${secret ? '' : ` ${show(name)}`}; known options: ${known}`)
  }
  const [key, read] = OPTIONS[name]
  if (read === readText && value === '') throw new Error(`option ${name} is empty`)
  try {
    return { [key]: read(value) }
  } catch (error) {
    throw new Error(`option ${name}: ${error.message}`)
  }
}

/**
 * @param {string} [query]
 * @returns {{more: string[], own: Partial<Common>, unsupported: string[]}} `more`: of `addr`
 */
function readQuery(query = '') {
  const entries = [...new URLSearchParams(query)]
  const isOther = (/** @type {string} */ name) => name !== 'addr' && !UNSUPPORTED.includes(name)
  // The rest of a password may follow an unencoded `?`.
  const own = entries
    .filter(([name]) => isOther(name))
    .map(([name, value]) => readOption(name, value, query.includes('@')))
  return {
    more: entries.filter(([name]) => name === 'addr').map(([, value]) => value),
    own: Object.assign({}, ...own),
    unsupported: entries.map(([name]) => name).filter(name => UNSUPPORTED.includes(name)),
  }
}

/** Errors follow the key and omit passwords. @param {string} text @returns {RedisAddress} @throws {Error} */
function parseRedisAddress(text) {
  if (!text.includes('://')) {
    const fault = /^[^@[]*,/.test(text)
      ? 'contains several addresses; use a list'
      : /^[\da-f:]*:[\da-f:]*:[\da-f:.]*$/i.test(text)
        ? 'is an IPv6 address without brackets; use [::1]:6379'
        : FORM
    const hosts = [parseHostPort(text, DEFAULT_PORT, fault)]
    return { kind: 'single', hosts, path: '', own: {}, unsupported: [] }
  }
  const [unix, unixAuth = '', path, unixQuery] = UNIX_FORM.exec(text) ?? []
  if (unix !== undefined) {
    const { more, own, unsupported } = readQuery(unixQuery)
    if (more.length > 0) throw new Error('is a Unix socket, which cannot have addr')
    if (own.tls) throw new Error('is a Unix socket, which cannot use TLS')
    const all = { ...readAuth(unixAuth), ...own, tls: false }
    return { kind: 'single', hosts: [], path: decode(path), own: all, unsupported }
  }
  const scheme = text.slice(0, text.indexOf('://')).toLowerCase()
  if (scheme === 'unix') throw new Error('must have the form unix:///path')
  if (!Object.hasOwn(SCHEMES, scheme) && /^[a-z+]+$/.test(scheme)) {
    const known = `${Object.keys(SCHEMES).join('://, ')}:// and unix://`
    throw new Error(`has the unknown scheme ${scheme}://; known schemes: ${known}`)
  }
  const match = URL_FORM.exec(text)
  if (match === null) throw new Error(FORM)
  return readUrl(match, SCHEMES[scheme])
}

/** @param {RegExpExecArray} match @param {{kind: Place['kind'], tls?: boolean}} scheme @returns {RedisAddress} */
function readUrl([, , auth = '', host, port, db = '', query], { kind, tls }) {
  if (!/^\d{0,9}$/.test(db)) throw new Error('has a path that is not a database number')
  const { more, own: options, unsupported } = readQuery(query)
  const own = {
    ...(tls && { tls, sentinel_tls: tls }),
    ...readAuth(auth),
    ...(db !== '' && { db: Number(db) }),
    ...options,
  }
  // Centrifugo detects the kind of server; Halley uses these options.
  if (kind === 'single' && own.sentinel_master_name !== undefined) kind = 'sentinel'
  else if (kind === 'single' && more.length > 0) kind = 'cluster'
  const usual = kind === 'sentinel' ? SENTINEL_PORT : DEFAULT_PORT
  const others = more.map(text => parseHostPort(text, usual, 'has an addr that is not host:port'))
  return { kind, hosts: [hostPort(host, port, usual), ...others], path: '', own, unsupported }
}

/** @param {'sentinel' | 'cluster'} kind @returns {(text: string) => RedisAddress} */
const hostsReader = kind => text => {
  const usual = kind === 'sentinel' ? SENTINEL_PORT : DEFAULT_PORT
  const fault = 'must have the form host:port,host:port'
  const hosts = text.split(',').map(entry => parseHostPort(entry.trim(), usual, fault))
  return { kind, hosts, path: '', own: {}, unsupported: [] }
}

/** The first non-empty list is used. */
const LISTS = /** @type {const} */ ([
  ['cluster_address', hostsReader('cluster')],
  ['sentinel_address', hostsReader('sentinel')],
  ['address', parseRedisAddress],
])

/**
 * @param {RedisConnection} redis @param {string} key @param {RedisAddress} address
 * @returns {RedisShard}
 * @throws {Error}
 */
function shardOf(redis, key, { own, ...place }) {
  const { user, password, db, client_name, connect_timeout, io_timeout } = redis
  const { sentinel_master_name, sentinel_user, sentinel_password } = redis
  const shard = {
    key,
    name: '',
    ...place,
    user,
    password,
    db,
    client_name,
    connect_timeout,
    io_timeout,
    sentinel_master_name,
    sentinel_user,
    sentinel_password,
    tls: redis.tls.enabled,
    sentinel_tls: redis.sentinel_tls.enabled,
    ...own,
  }
  const { kind, hosts, path, sentinel_master_name: master } = shard
  if (kind === 'sentinel' && master === '')
    throw new Error('has sentinels but no master; add ?sentinel_master_name=NAME')
  if (kind === 'cluster' && shard.db !== 0)
    throw new Error(`has database ${shard.db}; a Redis Cluster has only database 0`)
  shard.name = path || `${kind === 'sentinel' ? `${master}@` : ''}${hosts.map(formatHostPort).join(',')}`
  return shard
}

/**
 * @param {RedisConnection} redis
 * @param {(key: string, text: string) => void} fault of an unusable, omitted address
 * @param {string} [block] path of `redis`
 */
export function redisShards(redis, fault, block = 'engine.redis') {
  const [option, parse] = LISTS.find(([name]) => redis[name].length > 0) ?? LISTS[2]
  const list = redis[option]
  /** @type {RedisShard[]} */
  const shards = []
  /** @type {Map<string, string>} */
  const taken = new Map()
  for (const [i, text] of list.entries()) {
    const key = list.length === 1 ? `${block}.${option}` : `${block}.${option}[${i}]`
    try {
      const shard = shardOf(redis, key, parse(text))
      for (const host of shard.path === '' ? shard.hosts.map(formatHostPort) : [shard.path]) {
        // The same sentinels may monitor several masters.
        const id = shard.kind === 'sentinel' ? `${shard.sentinel_master_name}@${host}` : host
        if (taken.has(id)) throw new Error(`contains ${host}, which is also in ${taken.get(id)}`)
        taken.set(id, key)
      }
      shards.push(shard)
    } catch (error) {
      fault(key, error.message)
    }
  }
  return shards
}
