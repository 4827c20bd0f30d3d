// Checks all Redis servers before workers start: faults are reported once, not by retries of each worker.

import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { formatHostPort } from '../../../config/redis-shards.js'
import { formatDuration } from '../../../config/values.js'
import { askView, ONCE, observed, parseTargets, ServerConnector, sendWith } from './address.js'
import { SCRIPTS } from './scripts.js'

/** @import { Socket } from 'node:net' */
/** @import { ConnectionOptions } from 'node:tls' */
/** @import { Logger } from 'pino' */
/** @import { RedisOptions } from '../../../config/options.js' */
/** @import { HostPort } from '../../../config/redis-shards.js' */
/** @import { ClusterView, Target } from './address.js' */

/**
 * A server and its credentials. `label`: `redis at 127.0.0.1:6379`; `keys`: prefix of the keys for user and password.
 * @typedef {{label: string, user: string, password: string, keys: string, connectTimeout: number, ioTimeout: number,
 *   where: {host?: string, port?: number, path?: string, tls?: ConnectionOptions}}} Login timeouts in ms
 * @typedef {Record<string, string>} Info fields of INFO
 * @typedef {{name: string, cluster: boolean, sharded: boolean}} Use `name`: a key and topic like the engine's
 */

const LOADING_POLL = 500
const LOADING_LOG = 10_000
const OLDEST = [6, 2]
const TOO_OLD = `${OLDEST.join('.')} or newer is required`

/** A one-line message, without passwords. */
class Fault extends Error {}

/** Redis is loading its data; the message is the label of the server. */
class Loading extends Error {}

/** No reply; the message completes `cannot reach redis at ...: `. */
class Unreachable extends Error {}

/** @param {Error} error @returns {boolean} whether it is an error reply of Redis */
const isRefusal = error => error.name === 'ReplyError'

const UNTRUSTED = 'its certificate is not signed by a trusted authority (server_ca_pem)'
const WANTS_CERTIFICATE = 'it requires a client certificate (cert_pem, key_pem)'
const NO_TRUST = 'it does not trust cert_pem'
const NO_TLS = 'it does not use TLS'

/** Reasons by error code. @type {Readonly<Record<string, string>>} */
const REASONS = Object.freeze({
  ECONNREFUSED: 'connection refused',
  ENOTFOUND: 'host not found',
  EAI_AGAIN: 'host name cannot be resolved',
  ETIMEDOUT: 'no response',
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'no route to the host',
  ENOENT: 'no such socket',
  EACCES: 'permission denied',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet',
  DEPTH_ZERO_SELF_SIGNED_CERT: UNTRUSTED,
  SELF_SIGNED_CERT_IN_CHAIN: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
  CERT_SIGNATURE_FAILURE: UNTRUSTED,
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another host (server_name)',
  ERR_SSL_WRONG_VERSION_NUMBER: NO_TLS,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: NO_TLS,
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: WANTS_CERTIFICATE,
  ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE: WANTS_CERTIFICATE,
  // As of OpenSSL 3.5.
  'ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE': WANTS_CERTIFICATE,
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA: NO_TRUST,
  ERR_SSL_TLSV13_ALERT_UNKNOWN_CA: NO_TRUST,
})

class ProbeClient {
  #login
  #redis
  /** @type {Socket | null} */
  #socket = null
  /** Whether the server accepted the connection; TLS follows. */
  #accepted = false
  /** @type {any} first error of the connection */
  #fault = null

  /** @param {Login} login */
  constructor(login) {
    this.#login = login
    this.#redis = new Redis({
      ...login.where,
      Connector: observed(ServerConnector, socket => {
        this.#socket = socket
        socket.once('connect', () => {
          this.#accepted = true
        })
      }),
      // The check sends HELLO itself.
      protocol: 2,
      connectTimeout: login.connectTimeout,
      commandTimeout: login.ioTimeout,
      ...ONCE,
    })
    this.#redis.on('error', error => {
      this.#fault ??= error
    })
  }

  /** @param {Promise<any>} answer @returns {Promise<any>} @throws {Error} ReplyError, or Unreachable */
  async #wait(answer) {
    try {
      return await answer
    } catch (error) {
      throw isRefusal(error) ? error : new Unreachable(this.#reasonOf(error))
    }
  }

  open() {
    return this.#wait(this.#redis.connect())
  }

  /** @param {string} name @param {...(string | number)} args @returns {Promise<any>} the reply */
  call(name, ...args) {
    return this.#wait(this.#redis.call(name, ...args))
  }

  close() {
    this.#redis.disconnect()
    this.#socket?.destroy()
  }

  /** @param {Error} error of ioredis */
  #reasonOf({ message }) {
    const { where, connectTimeout, ioTimeout } = this.#login
    if (message === 'Command timed out')
      return `it accepts connections but did not respond within ${formatDuration(ioTimeout)} (io_timeout)`
    if (message.startsWith('Unknown RESP type')) return 'it is not a Redis server'
    const { code = 'ECONNRESET', message: text } = this.#fault ?? {}
    if (text === 'connect ETIMEDOUT') {
      const unanswered = `no response within ${formatDuration(connectTimeout)} (connect_timeout)`
      return this.#accepted ? `${NO_TLS}: ${unanswered}` : unanswered
    }
    // OpenSSL write errors contain the alert only as text.
    if (code === 'EPROTO' && /certificate required|handshake failure/.test(text)) return WANTS_CERTIFICATE
    if (code === 'EPROTO') return /unknown ca/.test(text) ? NO_TRUST : NO_TLS
    if (code !== 'ECONNRESET' && code !== 'EPIPE') return REASONS[code] ?? text
    const question = where.tls
      ? 'does it use TLS and require a certificate?'
      : 'does it require TLS: rediss://?'
    return `it closed the connection without a response (${question})`
  }
}

/** @param {string} user */
const showUser = user => (user === '' ? 'the default user' : `user ${JSON.stringify(user)}`)

/** @param {Login} login @param {string} message of the refused HELLO */
function helloFault({ label, user, password, keys }, message) {
  if (/unknown command/i.test(message)) return `${label} is too old: Redis ${TOO_OLD}`
  if (message.startsWith('NOPROTO')) return `${label} does not support RESP3: Redis ${TOO_OLD}`
  if (message.startsWith('NOAUTH')) return `${label} requires a password: set ${keys}password`
  if (message.startsWith('WRONGPASS') && user === '') return `${label} rejects the password (${keys}password)`
  if (message.startsWith('WRONGPASS'))
    return `${label} rejects ${showUser(user)} or the password (${keys}user, ${keys}password)`
  // Some servers repeat the arguments.
  return `${label} rejects the connection: ${password === '' ? message : message.replaceAll(password, '***')}`
}

/** @param {Login} login @param {Error} error @returns {Error} to report */
function explain({ label, user }, error) {
  const { message } = error
  if (error instanceof Unreachable) return new Fault(`cannot reach ${label}: ${message}`)
  if (!isRefusal(error)) return error
  if (message.startsWith('LOADING')) return new Loading(label)
  if (!message.startsWith('NOPERM')) return new Fault(`${label} rejects a command: ${message}`)
  const command = /'([^']+)' command/.exec(message)?.[1]
  return new Fault(`${showUser(user)} of ${label} lacks permissions: ${command ?? message}`)
}

/**
 * @template T
 * @param {Login} login @param {(client: ProbeClient) => Promise<T>} use @returns {Promise<T>}
 * @throws {Fault | Loading}
 */
async function withClient(login, use) {
  const { user, password } = login
  const client = new ProbeClient(login)
  try {
    await client.open()
    const auth = user === '' && password === '' ? [] : ['AUTH', user || 'default', password]
    await client.call('HELLO', 3, ...auth).catch(error => {
      throw isRefusal(error) ? new Fault(helloFault(login, error.message)) : error
    })
    return await use(client)
  } catch (error) {
    throw explain(login, error)
  } finally {
    client.close()
  }
}

/** @param {Info} info @param {boolean} cluster expected kind @returns {string} fault, '' if none */
function serverFault(info, cluster) {
  const { redis_version: version = '', redis_mode: mode, cluster_enabled: enabled, role } = info
  const [major, minor = 0] = version.split('.').map(Number)
  if (version !== '' && (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])))
    return `is version ${version}: ${TOO_OLD}`
  if (mode === 'sentinel') return 'is a sentinel: use the address redis+sentinel://'
  const clustered = mode === 'cluster' || enabled === '1'
  // Some Redis-like servers omit this.
  if (cluster && !clustered && (mode ?? enabled) !== undefined)
    return 'is not a Redis Cluster: use the address redis://'
  if (!cluster && clustered) return 'is a node of a Redis Cluster: use the address redis+cluster://'
  if (cluster || role !== 'slave') return ''
  return `is a read-only replica${info.master_host ? ` of ${info.master_host}:${info.master_port}` : ''}`
}

/**
 * @param {ProbeClient} client @param {Login} login @param {boolean} cluster @param {number} db
 * @throws {Error} Fault, Loading, or one of the client
 */
async function checkKind(client, { label }, cluster, db) {
  const fields = String(await client.call('INFO')).matchAll(/^([^:\r\n]*):(.*)\r?$/gm)
  const info = Object.fromEntries(Array.from(fields, ([, name, value]) => [name, value]))
  const fault = serverFault(info, cluster)
  if (fault !== '') throw new Fault(`${label} ${fault}`)
  if (info.loading === '1') throw new Loading(label)
  if (db === 0) return
  await client.call('SELECT', db).catch(error => {
    if (!/out of range/.test(error.message)) throw error
    throw new Fault(`${label} has no database ${db} (engine.redis.db)`)
  })
}

/** Commands sent outside scripts, with a key or topic as argument. A test compares this list with the sources. */
const KEYED = ['append', 'del', 'getrange', 'set', 'xdel']
const PLAIN = ['ping', 'script|load']
const TOPICS = ['publish', 'subscribe', 'unsubscribe']
const CLUSTER = ['cluster|info', 'cluster|slots', 'command|info']
const SHARDED_TOPICS = ['spublish', 'ssubscribe', 'sunsubscribe']

/**
 * Returns the commands in ARGV that the user may not run, if the server can check this (since 7.0). Repeats ARGV[1], a
 * key and topic: Redis 7.0 may crash on commands with too few arguments. Redis 8 refuses too many arguments.
 */
const QUESTION = `
local refused = {}
local key = ARGV[1]
for i = 2, #ARGV do
  local name, sub = string.match(ARGV[i], '^([^|]+)|?(.*)$')
  local args = {name, key, key, key, key, key, key, key}
  if sub ~= '' then args[2] = sub end
  local known, may
  for count = #args, 1, -1 do
    known, may = pcall(redis.acl_check_cmd or tostring, unpack(args, 1, count))
    if known then break end
  end
  if known and not may then refused[#refused + 1] = ARGV[i] end
end
return refused
`

/**
 * @param {boolean} cluster @param {boolean} sharded pub/sub
 * @returns {string[]} all required commands except EVALSHA, used by the check itself
 */
export function neededCommands(cluster, sharded) {
  const calls = SCRIPTS.flatMap(({ text }) => [...text.matchAll(/redis\.p?call\(\s*['"](\w+)['"]/g)])
  const scripted = calls.map(([, name]) => name.toLowerCase())
  const names = [...KEYED, ...PLAIN, ...scripted, ...(sharded ? SHARDED_TOPICS : TOPICS)]
  if (cluster) names.push(...CLUSTER, sharded ? 'pubsub|shardchannels' : 'pubsub|channels')
  return [...new Set(names)].sort()
}

/** @param {Target} target @param {Login['where']} where @param {string} label @returns {Login} */
const login = ({ options }, { host, port, path }, label) => ({
  label,
  where: { ...(path ? { path } : { host, port }), tls: options.tls },
  user: options.username ?? '',
  password: options.password ?? '',
  keys: 'engine.redis.',
  connectTimeout: Number(options.connectTimeout),
  ioTimeout: Number(options.socketTimeout),
})

/** Checks a server of channels. @param {Login} to @param {number} db @param {Use} use @returns {Promise<void>} */
function checkServer(to, db, { name, cluster, sharded }) {
  return withClient(to, async client => {
    await checkKind(client, to, cluster, db)
    const hash = await client.call('SCRIPT', 'LOAD', QUESTION)
    const refused = await client.call('EVALSHA', hash, 0, name, ...neededCommands(cluster, sharded))
    if (refused.length === 0) return
    const begin = name.slice(0, name.lastIndexOf('.') + 1)
    const names = `keys ~${begin}*, topics &${begin}*`
    throw new Fault(`${showUser(to.user)} of ${to.label} lacks permissions: ${refused.join(', ')} (${names})`)
  })
}

/**
 * @template T
 * @param {readonly Promise<T>[]} checks @returns {Promise<T>} first success in list order
 * @throws {Fault | Loading} with all reasons
 */
async function firstOf(checks) {
  const results = await Promise.allSettled(checks)
  const found = results.find(({ status }) => status === 'fulfilled')
  if (found?.status === 'fulfilled') return found.value
  const reasons = results.map(result => /** @type {PromiseRejectedResult} */ (result).reason)
  const loading = reasons.findLast(reason => reason instanceof Loading)
  throw loading ?? new Fault([...new Set(reasons.map(({ message }) => message))].join('; '))
}

/** @param {Target} target @param {HostPort} host @returns {Promise<HostPort>} of the master */
function askSentinel(target, host) {
  const { options } = target
  const name = String(options.name)
  /** @type {Login} */
  const to = {
    ...login(target, host, `sentinel at ${formatHostPort(host)}`),
    where: { ...host, tls: options.sentinelTLS },
    user: options.sentinelUsername ?? '',
    password: options.sentinelPassword ?? '',
    keys: 'engine.redis.sentinel_',
  }
  return withClient(to, async client => {
    const reply = await client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name).catch(error => {
      if (!isRefusal(error) || !/unknown command/i.test(error.message)) throw error
      throw new Fault(`redis at ${formatHostPort(host)} is not a sentinel: use the address redis://`)
    })
    if (reply === null) throw new Fault(`${to.label} does not monitor master ${JSON.stringify(name)}`)
    return { host: reply[0], port: Number(reply[1]) }
  })
}

/** @param {Target} target @param {HostPort} host @returns {Promise<ClusterView>} */
function askNode(target, host) {
  const to = login(target, host, `redis at ${formatHostPort(host)}`)
  return withClient(to, async client => {
    await checkKind(client, to, true, 0)
    return new Promise((resolve, reject) =>
      askView(sendWith(client), host.host, (error, view) => (error ? reject(error) : resolve(view))),
    )
  })
}

/** @param {Target} target @param {string} prefix */
async function checkCluster(target, prefix) {
  const seeds = /** @type {HostPort[]} */ (target.nodes)
  const view = await firstOf(seeds.map(host => askNode(target, host)))
  const served = view.ranges.filter(({ master }) => master.port > 0)
  const masters = new Map(served.map(({ master }) => [formatHostPort(master), master]))
  if (!view.ok || masters.size === 0)
    throw new Fault(`the Redis Cluster at ${target.name} is down: not all of its slots are served`)
  const use = { name: `${prefix}.{0}.probe`, cluster: true, sharded: view.sharded }
  const checks = [...masters].map(([name, master]) =>
    checkServer(login(target, master, `redis at ${name} (cluster at ${target.name})`), 0, use),
  )
  for (const result of await Promise.allSettled(checks)) if (result.status === 'rejected') throw result.reason
}

/** @param {Target} target @param {string} prefix @returns {Promise<void>} */
async function checkTarget(target, prefix) {
  const { kind, options, name } = target
  if (kind === 'cluster') return checkCluster(target, prefix)
  const use = { name: `${prefix}.probe`, cluster: false, sharded: false }
  if (kind === 'single') return checkServer(login(target, options, `redis at ${name}`), options.db ?? 0, use)
  const hosts = /** @type {HostPort[]} */ (options.sentinels)
  const master = await firstOf(hosts.map(host => askSentinel(target, host)))
  const to = login(target, master, `redis at ${formatHostPort(master)} (master of ${name})`)
  await checkServer(to, options.db ?? 0, use)
}

/**
 * @param {RedisOptions} redis `engine.redis` @param {Logger} log
 * @param {AbortSignal} [signal] aborts the wait for servers loading their data
 * @throws {Error} one-line message without passwords
 */
export async function probeRedis(redis, log, signal) {
  let targets = parseTargets(redis)
  let loggedAt = 0
  for (;;) {
    const results = await Promise.allSettled(targets.map(target => checkTarget(target, redis.prefix)))
    const reasons = results.flatMap(result => (result.status === 'rejected' ? [result.reason] : []))
    const mistake = reasons.find(reason => !(reason instanceof Loading || reason instanceof Fault))
    if (mistake) throw mistake
    const faults = reasons.filter(reason => reason instanceof Fault).map(({ message }) => message)
    if (faults.length > 0) throw new Error([...new Set(faults)].join('; '))
    if (reasons.length === 0) return
    if (Date.now() - loggedAt >= LOADING_LOG) {
      loggedAt = Date.now()
      log.info({ waiting_for: reasons.map(({ message }) => message) }, 'redis is loading its dataset')
    }
    targets = targets.filter((_, i) => results[i].status === 'rejected')
    await sleep(LOADING_POLL)
    signal?.throwIfAborted()
  }
}
