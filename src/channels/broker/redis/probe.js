// Checks every Redis once before any worker starts: faults appear in one line, not as retries of workers.

import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { formatHostPort } from '../../../config/redis-address.js'
import { formatDuration } from '../../../config/values.js'
import { askView, observed, parseTargets, ServerConnector, sendWith } from './address.js'
import { SCRIPTS } from './scripts.js'

/** @import { RedisOptions } from '../../../config/options.js' */

/**
 * @typedef {import('./address.js').Target} Target
 * @typedef {import('../../../config/redis-address.js').HostPort} HostPort
 *
 * @typedef {object} Login a server and its credentials
 * @property {string} label for messages: `redis at 127.0.0.1:6379`
 * @property {{host?: string, port?: number, path?: string, tls?: import('node:tls').ConnectionOptions}} where
 * @property {string} user
 * @property {string} password
 * @property {string} keys prefix of the configuration's keys for user and password
 * @property {number} connectTimeout ms
 * @property {number} ioTimeout ms
 * @typedef {Record<string, string>} Info fields of INFO
 */

const LOADING_POLL = 500
const LOADING_LOG = 10_000
/** The oldest supported version. */
const OLDEST = [6, 2]
const TOO_OLD = `${OLDEST.join('.')} or newer is needed`

/** A fault as a whole line, without passwords. */
class Fault extends Error {}

/** Redis is loading its data; the message is the label of the server. */
class Loading extends Error {}

/** A missing answer; the message completes `cannot reach redis at ...: `. */
class Unreachable extends Error {}

/** @param {Error} error @returns {boolean} whether it is an error reply of Redis */
const isRefusal = error => error.name === 'ReplyError'

const UNTRUSTED = 'its certificate is not signed by a trusted authority (server_ca_pem)'
const WANTS_CERTIFICATE = 'it requires a client certificate (cert_pem, key_pem)'

/** @type {Readonly<Record<string, string>>} */
const REASONS = Object.freeze({
  ECONNREFUSED: 'connection refused',
  ENOTFOUND: 'host not found',
  EAI_AGAIN: 'host name cannot be resolved',
  ETIMEDOUT: 'no answer',
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
  ERR_SSL_WRONG_VERSION_NUMBER: 'it does not speak TLS',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'it does not speak TLS',
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: WANTS_CERTIFICATE,
  ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE: WANTS_CERTIFICATE,
  // As of OpenSSL 3.5.
  'ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE': WANTS_CERTIFICATE,
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA: 'it does not trust cert_pem',
  ERR_SSL_TLSV13_ALERT_UNKNOWN_CA: 'it does not trust cert_pem',
})

/** @param {string} message of an OpenSSL error during a write @returns {string} */
function reasonOfAlert(message) {
  if (/certificate required|handshake failure/.test(message)) return WANTS_CERTIFICATE
  return /unknown ca/.test(message) ? 'it does not trust cert_pem' : 'it does not speak TLS'
}

/** A short-lived client. It never retries, and reports why the connection failed. */
class ProbeClient {
  #login
  #redis
  /** @type {import('node:net').Socket | null} */
  #socket = null
  /** Whether the server has accepted the connection; TLS comes after that. */
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
      lazyConnect: true,
      enableReadyCheck: false,
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      disableClientInfo: true,
      retryStrategy: null,
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

  /** Called first: resolves when commands can be sent. */
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
      return `it accepts connections, but did not answer within ${formatDuration(ioTimeout)} (io_timeout)`
    if (message.startsWith('Unknown RESP type')) return 'it is not a Redis server'
    const { code = 'ECONNRESET', message: text } = this.#fault ?? {}
    if (text === 'connect ETIMEDOUT') {
      const unanswered = `no answer within ${formatDuration(connectTimeout)} (connect_timeout)`
      return this.#accepted ? `it does not speak TLS: ${unanswered}` : unanswered
    }
    if (code === 'EPROTO') return reasonOfAlert(text)
    if (code !== 'ECONNRESET' && code !== 'EPIPE') return REASONS[code] ?? text
    return `it closed the connection without an answer (${
      where.tls ? 'does it speak TLS, does it require a certificate?' : 'does it require TLS: rediss://?'
    })`
  }
}

/** @param {string} user */
const showUser = user => (user === '' ? 'the default user' : `user ${JSON.stringify(user)}`)

/** @param {Login} login @param {string} message of the refused HELLO */
function helloFault({ label, user, password, keys }, message) {
  if (/unknown command/i.test(message)) return `${label} is too old: Redis ${TOO_OLD}`
  if (message.startsWith('NOPROTO')) return `${label} does not speak RESP3: Redis ${TOO_OLD}`
  if (message.startsWith('NOAUTH')) return `${label} requires a password: set ${keys}password`
  if (message.startsWith('WRONGPASS')) {
    return user === ''
      ? `${label} refuses the password (${keys}password)`
      : `${label} refuses ${showUser(user)} or the password (${keys}user, ${keys}password)`
  }
  // Some servers repeat the arguments.
  return `${label} refuses the connection: ${password === '' ? message : message.replaceAll(password, '***')}`
}

/** @param {Login} login @param {Error} error @returns {Error} to report */
function explain({ label, user }, error) {
  const { message } = error
  if (error instanceof Unreachable) return new Fault(`cannot reach ${label}: ${message}`)
  if (!isRefusal(error)) return error
  if (message.startsWith('LOADING')) return new Loading(label)
  if (!message.startsWith('NOPERM')) return new Fault(`${label} refuses a command: ${message}`)
  const command = /'([^']+)' command/.exec(message)?.[1]
  return new Fault(`${showUser(user)} of ${label} lacks permissions: ${command ?? message}`)
}

/**
 * Connects to a server, logs in, and disconnects after `use`.
 * @template T
 * @param {Login} login @param {(client: ProbeClient) => Promise<T>} use @returns {Promise<T>}
 * @throws {Fault}
 * @throws {Loading}
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

/** @param {ProbeClient} client @returns {Promise<Info>} */
async function infoOf(client) {
  const lines = String(await client.call('INFO')).split('\r\n')
  const fields = lines.filter(line => line.includes(':'))
  return Object.fromEntries(
    fields.map(line => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]),
  )
}

/** @param {Info} info @param {boolean} cluster expected kind @returns {string} fault, '' if none */
function serverFault(info, cluster) {
  const { redis_version: version = '', redis_mode: mode, cluster_enabled: enabled, role } = info
  const [major, minor = 0] = version.split('.').map(Number)
  if (version !== '' && (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])))
    return `is version ${version}: ${TOO_OLD}`
  if (mode === 'sentinel') return 'is a sentinel: use the address redis+sentinel://'
  const clustered = mode === 'cluster' || enabled === '1'
  // Not all Redis-like servers report this.
  if (cluster && !clustered && (mode ?? enabled) !== undefined)
    return 'is not a Redis Cluster: use the address redis://'
  if (!cluster && clustered) return 'is a node of a Redis Cluster: use the address redis+cluster://'
  if (cluster || role !== 'slave') return ''
  return `is a replica${info.master_host ? ` of ${info.master_host}:${info.master_port}` : ''}, and takes no writes`
}

/**
 * Checks that a server is of the expected kind, and ready.
 * @param {ProbeClient} client @param {Login} login @param {{cluster: boolean, db: number}} expected
 * @throws {Fault | Loading}
 * @throws {Error} of the client
 */
async function checkKind(client, { label }, { cluster, db }) {
  const info = await infoOf(client)
  const fault = serverFault(info, cluster)
  if (fault !== '') throw new Fault(`${label} ${fault}`)
  if (info.loading === '1') throw new Loading(label)
  if (db === 0) return
  await client.call('SELECT', db).catch(error => {
    if (!/out of range/.test(error.message)) throw error
    throw new Fault(`${label} has no database ${db} (engine.redis.db)`)
  })
}

/** Commands sent outside of scripts, with a key or topic as argument. A test compares this list with the sources. */
const KEYED = ['append', 'del', 'getrange', 'set']
const PLAIN = ['ping', 'script|load']
const TOPICS = ['publish', 'subscribe', 'unsubscribe']
const CLUSTER = ['cluster|info', 'cluster|slots', 'command|info']
const SHARDED_TOPICS = ['spublish', 'ssubscribe', 'sunsubscribe']

/**
 * Returns the commands in ARGV that the user may not run, as far as the server can check (since 7.0). ARGV[1] is a key
 * and topic. It is repeated more often than any command needs: Redis 7.0 looks for keys beyond the end of a command
 * that is too short, and may crash. Redis 8 refuses to check a command with too many arguments: then with fewer.
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

/** @returns {string[]} commands that the scripts call */
function scripted() {
  const calls = SCRIPTS.flatMap(({ text }) => [...text.matchAll(/redis\.p?call\(\s*['"](\w+)['"]/g)])
  return calls.map(([, name]) => name.toLowerCase())
}

/**
 * @param {boolean} cluster @param {boolean} sharded pub/sub
 * @returns {string[]} every needed command but EVALSHA, which the check itself uses
 */
export function neededCommands(cluster, sharded) {
  const names = [...KEYED, ...PLAIN, ...scripted(), ...(sharded ? SHARDED_TOPICS : TOPICS)]
  if (cluster) names.push(...CLUSTER, sharded ? 'pubsub|shardchannels' : 'pubsub|channels')
  return [...new Set(names)].sort()
}

/**
 * @param {ProbeClient} client of a server that accepts commands
 * @param {{name: string, cluster: boolean, sharded: boolean}} partition `name`: a key and topic like the engine's
 * @returns {Promise<string[]>} needed commands that the user may not run, or not with such keys and topics
 * @throws {Error} of the client
 */
async function refusedCommands(client, { name, cluster, sharded }) {
  const hash = await client.call('SCRIPT', 'LOAD', QUESTION)
  return client.call('EVALSHA', hash, 0, name, ...neededCommands(cluster, sharded))
}

/**
 * @param {Target} target @param {{host?: string, port?: number, path?: string}} where @param {string} label
 * @returns {Login}
 */
const login = ({ options }, { host, port, path }, label) => ({
  label,
  where: { ...(path ? { path } : { host, port }), tls: options.tls },
  user: options.username ?? '',
  password: options.password ?? '',
  keys: 'engine.redis.',
  connectTimeout: Number(options.connectTimeout),
  ioTimeout: Number(options.socketTimeout),
})

/** @param {Target} target @param {HostPort} host of a sentinel @returns {Login} */
const sentinelLogin = ({ options, ...target }, host) => ({
  ...login({ ...target, options }, host, `sentinel at ${formatHostPort(host)}`),
  where: { ...host, tls: options.sentinelTLS },
  user: options.sentinelUsername ?? '',
  password: options.sentinelPassword ?? '',
  keys: 'engine.redis.sentinel_',
})

/**
 * Checks a server of channels.
 * @param {Login} to @param {number} db @param {{name: string, cluster: boolean, sharded: boolean}} partition
 * @returns {Promise<void>}
 */
function checkServer(to, db, partition) {
  return withClient(to, async client => {
    await checkKind(client, to, { cluster: partition.cluster, db })
    const refused = await refusedCommands(client, partition)
    if (refused.length === 0) return
    const begin = partition.name.slice(0, partition.name.lastIndexOf('.') + 1)
    const names = `keys ~${begin}*, topics &${begin}*`
    throw new Fault(`${showUser(to.user)} of ${to.label} lacks permissions: ${refused.join(', ')} (${names})`)
  })
}

/**
 * @template T
 * @param {readonly Promise<T>[]} checks @returns {Promise<T>} the first success in the list
 * @throws {Fault} with all reasons
 * @throws {Loading}
 */
async function firstOf(checks) {
  const results = await Promise.allSettled(checks)
  /** @type {Set<string>} */
  const reasons = new Set()
  /** @type {Loading | null} */
  let loading = null
  for (const result of results) {
    if (result.status === 'fulfilled') return result.value
    if (result.reason instanceof Loading) loading = result.reason
    reasons.add(result.reason.message)
  }
  throw loading ?? new Fault([...reasons].join('; '))
}

/** @param {Target} target @param {HostPort} host @returns {Promise<HostPort>} of the master */
function askSentinel(target, host) {
  const to = sentinelLogin(target, host)
  const name = String(target.options.name)
  return withClient(to, async client => {
    const reply = await client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name).catch(error => {
      const strange = isRefusal(error) && /unknown command/i.test(error.message)
      throw strange
        ? new Fault(`redis at ${formatHostPort(host)} is not a sentinel: use the address redis://`)
        : error
    })
    if (reply === null) throw new Fault(`${to.label} knows no master ${JSON.stringify(name)}`)
    return { host: reply[0], port: Number(reply[1]) }
  })
}

/** @param {Target} target @param {string} prefix */
async function checkSentinels(target, prefix) {
  const hosts = /** @type {HostPort[]} */ (target.options.sentinels)
  const master = await firstOf(hosts.map(host => askSentinel(target, host)))
  const to = login(target, master, `redis at ${formatHostPort(master)} (master of ${target.name})`)
  await checkServer(to, target.options.db ?? 0, { name: `${prefix}.probe`, cluster: false, sharded: false })
}

/** @param {Target} target @param {HostPort} host @returns {Promise<import('./address.js').ClusterView>} */
function askNode(target, host) {
  const to = login(target, host, `redis at ${formatHostPort(host)}`)
  return withClient(to, async client => {
    await checkKind(client, to, { cluster: true, db: 0 })
    return new Promise((resolve, reject) =>
      askView(sendWith(client), host.host, (error, view) => (error ? reject(error) : resolve(view))),
    )
  })
}

/** @param {Target} target @param {string} prefix */
async function checkCluster(target, prefix) {
  const seeds = /** @type {HostPort[]} */ (target.nodes)
  const view = await firstOf(seeds.map(host => askNode(target, host)))
  const masters = new Map(
    view.ranges.filter(({ master }) => master.port > 0).map(({ master }) => [formatHostPort(master), master]),
  )
  if (!view.ok || masters.size === 0)
    throw new Fault(`the Redis Cluster at ${target.name} is down: not all of its slots are served`)
  const partition = { name: `${prefix}.{0}.probe`, cluster: true, sharded: view.sharded }
  const checks = [...masters].map(([name, master]) =>
    checkServer(login(target, master, `redis at ${name} (cluster at ${target.name})`), 0, partition),
  )
  for (const result of await Promise.allSettled(checks)) if (result.status === 'rejected') throw result.reason
}

/** @param {Target} target @param {string} prefix @returns {Promise<void>} */
function checkTarget(target, prefix) {
  if (target.kind === 'sentinel') return checkSentinels(target, prefix)
  if (target.kind === 'cluster') return checkCluster(target, prefix)
  const { options, name } = target
  const partition = { name: `${prefix}.probe`, cluster: false, sharded: false }
  return checkServer(login(target, options, `redis at ${name}`), options.db ?? 0, partition)
}

/**
 * Resolves when every configured Redis can be used; waits for servers that are loading their data.
 * @param {RedisOptions} redis `engine.redis` of the configuration
 * @param {import('pino').Logger} log @param {AbortSignal} [signal] ends the wait
 * @returns {Promise<void>}
 * @throws {Error} one line that states the fault, without passwords
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
      log.info({ waiting_for: reasons.map(({ message }) => message) }, 'redis is loading its data')
    }
    targets = targets.filter((_, i) => results[i].status === 'rejected')
    await sleep(LOADING_POLL)
    signal?.throwIfAborted()
  }
}
