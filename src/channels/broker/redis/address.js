// From an address to a connection: what the configuration says of each deployment of Redis, how a client of ioredis finds
// its server there, and what the nodes of a cluster say of it. The engine, its check at the start and the consumers of
// streams share it.
//
// `Connector` is a public option of ioredis. It opens the socket, so it also gives access to it: to cork, pause and
// destroy it.

import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectSecurely } from 'node:tls'
import { AbstractConnector, Redis } from 'ioredis'
import { tlsOptions } from '../../../config/pem.js'
import { redisShards } from '../../../config/redis-shards.js'

/** @import { RedisConnection, RedisShard } from '../../../config/redis-shards.js' */

/**
 * @typedef {import('../../../config/redis-address.js').HostPort} HostPort
 * @typedef {import('./connection.js').Done} Done
 * @typedef {import('node:net').Socket} Socket
 * @typedef {(event: string, error: Error) => void} Emit emits on the client
 *
 * @typedef {object} Target one deployment of Redis, and how ioredis connects to it
 * @property {'single' | 'sentinel' | 'cluster'} kind
 * @property {string} key of the configuration
 * @property {string} name for logs, without any password
 * @property {import('ioredis').RedisOptions} options of a connection; those of a cluster name no server
 * @property {HostPort[]} [nodes] seed servers of a cluster
 */

/**
 * @typedef {{id: string, host: string, port: number}} ClusterServer
 * @typedef {{first: number, last: number, master: ClusterServer}} SlotRange slots of one master
 *
 * @typedef {object} ClusterView one server's view of its cluster
 * @property {boolean} ok it accepts commands: it sees most of the masters, and all slots are served
 * @property {boolean} sharded it supports sharded pub/sub
 * @property {SlotRange[]} ranges
 * @property {HostPort[]} servers all known ones, replicas included
 */

const BLOCK = 'engine.redis'
/** Sentinels publish `<master name> <old host> <old port> <new host> <new port>` here, each when it learns of a failover. */
const NEWS = '+switch-master'
const MAX_WATCHED = 10
/** Delay before a lost connection for news is retried, ms. */
const RETRY_MS = 1000
/** A connection for news is idle for months: time until TCP checks that the sentinel is still there, ms. */
const KEEP_ALIVE_MS = 15_000
/** Delays between two rounds of questions, ms. */
const FIRST_ROUND_DELAY = 50
const MAX_ROUND_DELAY = 1000
/** Time limit (ms) of a cluster node that accepts connections. */
const VIEW_TIMEOUT = 2000

const closed = () => new Error('Connection is closed.')

/** Connects to `path`, or to `host` and `port`, of the options. */
export class ServerConnector extends AbstractConnector {
  /** @param {any} options all those of the client */
  constructor(options) {
    super(options.disconnectTimeout)
    this.options = options
  }

  /** @param {Emit} _emit @returns {Promise<{path: string} | HostPort>} */
  async locate(_emit) {
    const { path, host, port } = this.options
    return path ? { path } : { host, port }
  }

  /** @param {Emit} emit */
  async connect(emit) {
    this.connecting = true
    const where = await this.locate(emit)
    if (!this.connecting) throw closed()
    const { tls } = this.options
    const socket = tls ? connectSecurely({ ...where, ...tls }) : connect(where)
    socket.once('error', error => {
      this.firstError = error
    })
    this.stream = socket
    return socket
  }
}

/**
 * @param {typeof ServerConnector} Connector @param {(socket: Socket) => void} opened called with each new socket
 * @returns {typeof ServerConnector}
 */
export const observed = (Connector, opened) =>
  class extends Connector {
    /** @type {ServerConnector['connect']} */
    async connect(emit) {
      const socket = await super.connect(emit)
      opened(socket)
      return socket
    }
  }

/** Asks servers in turn where the master is, until one of them knows. */
class LookupConnector extends ServerConnector {
  /** Asked in this order. @type {HostPort[]} */
  servers = []
  /** Subject of the error message when no server knows. */
  label = ''

  /** @param {HostPort} _server @returns {Promise<HostPort>} @throws {Error} */
  async ask(_server) {
    throw new Error('not implemented')
  }

  /** @param {Emit} emit @override */
  async locate(emit) {
    for (let round = 1; ; round++) {
      let reason = ''
      for (const server of [...this.servers]) {
        try {
          const master = await this.ask(server)
          // The server that has answered is the first one to ask again.
          this.servers = [server, ...this.servers.filter(other => other !== server)]
          return master
        } catch (error) {
          reason = error.message
          emit('sentinelError', new Error(`${server.host}:${server.port}: ${reason}`))
        }
        if (!this.connecting) throw closed()
      }
      emit('error', new Error(`${this.label} are unreachable. Last error: ${reason}`))
      await sleep(Math.min(MAX_ROUND_DELAY, FIRST_ROUND_DELAY * round))
      if (!this.connecting) throw closed()
    }
  }
}

/**
 * The master that sentinels name.
 *
 * A master that is cut off from the sentinels may accept writes that will be lost, so its connection ends when a sentinel
 * announces another master. The detector of ioredis does not look at the names and addresses in this news: it would end
 * healthy connections when another master of these sentinels fails over, and when the last sentinel announces a master
 * that is in use already.
 */
export class SentinelConnector extends LookupConnector {
  label = 'All sentinels'
  /** Host and port of the master, as sentinels write them. */
  #master = ''
  /** Announced failovers of this master. */
  #failovers = 0
  /** @type {Map<string, Redis>} connections for news, by address of the sentinel */
  #watched = new Map()

  /** @param {any} options */
  constructor(options) {
    super(options)
    /** @type {HostPort[]} */
    this.servers = options.sentinels
  }

  /** Refuses a server that is no master any more: another sentinel is asked next. @param {{role?: string}} info */
  check({ role }) {
    if (!role || role === 'master') return true
    this.servers = [...this.servers.slice(1), this.servers[0]]
    return false
  }

  /** @param {Emit} emit */
  async connect(emit) {
    const socket = await super.connect(emit)
    this.#watch()
    return socket
  }

  disconnect() {
    super.disconnect()
    for (const client of this.#watched.values()) client.disconnect()
    this.#watched.clear()
  }

  /** @param {HostPort} server @param {import('ioredis').RedisOptions} more */
  #connectTo({ host, port }, more) {
    const { options } = this
    return new Redis({
      host,
      port,
      username: options.sentinelUsername,
      password: options.sentinelPassword,
      tls: options.sentinelTLS,
      connectTimeout: options.connectTimeout,
      commandTimeout: options.sentinelCommandTimeout,
      enableReadyCheck: false,
      ...more,
    })
  }

  /** @param {HostPort} sentinel @returns {Promise<HostPort>} */
  async ask(sentinel) {
    const client = this.#connectTo(sentinel, { retryStrategy: null })
    /** @type {Error | null} */
    let reason = null
    client.on('error', error => {
      reason = error
    })
    try {
      for (;;) {
        const failovers = this.#failovers
        const reply = await client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', this.options.name)
        await this.#learn(client)
        // Otherwise it may have answered before it knew of a failover.
        if (failovers !== this.#failovers) continue
        if (!Array.isArray(reply)) throw new Error(`it knows no master ${JSON.stringify(this.options.name)}`)
        this.#master = `${reply[0]} ${reply[1]}`
        return { host: reply[0], port: Number(reply[1]) }
      }
    } catch (error) {
      throw reason ?? error
    } finally {
      client.disconnect()
    }
  }

  /** Adds the other sentinels of the master. @param {Redis} client of a sentinel */
  async #learn(client) {
    const replies = /** @type {string[][]} */ (await client.call('SENTINEL', 'SENTINELS', this.options.name))
    for (const fields of replies) {
      const field = (/** @type {string} */ name) => fields[fields.indexOf(name) + 1]
      const host = field('ip')
      const port = Number(field('port'))
      const known = this.servers.some(server => server.host === host && server.port === port)
      if (!known && !field('flags').includes('disconnected')) this.servers = [...this.servers, { host, port }]
    }
  }

  #watch() {
    for (const sentinel of this.servers) {
      const address = `${sentinel.host} ${sentinel.port}`
      if (this.#watched.has(address)) continue
      if (this.#watched.size === MAX_WATCHED) break
      const client = this.#connectTo(sentinel, {
        retryStrategy: () => RETRY_MS,
        autoResubscribe: false,
        keepAlive: KEEP_ALIVE_MS,
      })
      client.on('error', () => {})
      // Lost with the connection, or late: then the next connection tries again.
      client.on('ready', () => client.subscribe(NEWS).catch(() => client.disconnect(true)))
      client.on('message', (/** @type {string} */ _topic, /** @type {string} */ text) => this.#onNews(text))
      this.#watched.set(address, client)
    }
  }

  /** @param {string} text */
  #onNews(text) {
    const [name, , , host, port] = text.split(' ')
    if (name !== this.options.name) return
    this.#failovers++
    if (`${host} ${port}` !== this.#master)
      this.stream?.destroy(new Error(`the sentinels have replaced the master by ${host}:${port}`))
  }
}

/**
 * @param {HostPort[]} nodes some nodes of a cluster @param {number} slot
 * @param {import('ioredis').RedisOptions} options of connections to the nodes
 * @returns {typeof ServerConnector} connects to the master that serves the slot
 */
export const clusterConnector = (nodes, slot, options) =>
  class extends LookupConnector {
    label = 'All nodes of the cluster'
    servers = nodes

    /** @param {HostPort} node @returns {Promise<HostPort>} */
    ask(node) {
      return new Promise((resolve, reject) =>
        queryServer(node, options, (error, view) => {
          if (error || view === null) return reject(error)
          const range = view.ranges.find(({ first, last }) => first <= slot && slot <= last)
          if (!range || range.master.port === 0) return reject(new Error(`slot ${slot} is not served`))
          const { host, port } = range.master
          // Configured addresses stay valid when all others have changed.
          const known = new Map([...view.servers, ...nodes].map(one => [`${one.host}:${one.port}`, one]))
          this.servers = [...known.values()]
          resolve({ host, port })
        }),
      )
    }
  }

/**
 * Asks a server for its view of the cluster, over a separate connection.
 * @param {HostPort} server @param {import('ioredis').RedisOptions} options
 * @param {(error: Error | null, view: ClusterView | null) => void} done
 * @returns {() => void} gives up without calling `done`
 */
export function queryServer({ host, port }, options, done) {
  const redis = new Redis({
    ...options,
    host,
    port,
    lazyConnect: true,
    enableReadyCheck: false,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    disableClientInfo: true,
    retryStrategy: null,
    connectTimeout: Math.min(options.connectTimeout ?? VIEW_TIMEOUT, VIEW_TIMEOUT),
  })
  /** @type {Error | null} why there is no connection */
  let reason = null
  let ended = false
  const timer = setTimeout(() => end(new Error('it does not answer'), null), VIEW_TIMEOUT)
  const stop = () => {
    ended = true
    clearTimeout(timer)
    redis.disconnect()
  }
  /** @type {typeof done} */
  const end = (error, view) => {
    if (ended) return
    stop()
    done(error && (reason ?? error), view)
  }
  redis.on('error', error => {
    reason = error
  })
  redis.connect().then(
    () => askView(sendWith(redis), host, (error, view) => end(error, error ? null : view)),
    error => end(error, null),
  )
  return stop
}

/** @param {{call: (name: string, ...args: string[]) => Promise<any>}} client @returns {Parameters<typeof askView>[0]} */
export const sendWith = client => (name, args, done) =>
  client.call(name, ...args).then(
    reply => done(null, reply),
    error => done(error, null),
  )

const SLOTS = 16_384

/** CRC16 (XMODEM), Redis Cluster spec. @param {string} key or the tag between its braces @returns {number} hash slot */
export function slotOf(key) {
  const tag = /^[^{]*\{([^}]+)\}/.exec(key)?.[1] ?? key
  let crc = 0
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : crc << 1
  }
  return crc % SLOTS
}

/**
 * Asks a server of a cluster for its view.
 * @param {(name: string, args: string[], done: Done) => void} send
 * @param {string} host its reachable address, which a server may not know itself
 * @param {(error: Error | null, view: ClusterView) => void} done
 */
export function askView(send, host, done) {
  /** @type {ClusterView} */
  const view = { ok: false, sharded: false, ranges: [], servers: [] }
  /** @type {Error | null} */
  let failed = null
  let left = 3
  /** @param {string} name @param {string[]} args @param {(reply: any) => void} read */
  const issue = (name, args, read) =>
    send(name, args, (error, reply) => {
      if (error) failed ??= error
      else read(reply)
      if (--left === 0) done(failed, view)
    })
  issue('cluster', ['info'], reply => (view.ok = /^cluster_state:ok\b/m.test(String(reply))))
  issue('command', ['info', 'spublish'], reply => (view.sharded = Array.isArray(reply?.[0])))
  issue('cluster', ['slots'], reply => readSlots(reply, host, view))
}

/**
 * @param {any} reply of CLUSTER SLOTS: first, last, master, replicas; each server as host, port, id, more names
 * @param {string} host that was asked
 * @param {ClusterView} view receives the ranges and servers
 */
function readSlots(reply, host, view) {
  /** @type {Map<string, ClusterServer>} */
  const servers = new Map()
  for (const [first, last, ...serving] of reply) {
    for (const [i, entry] of serving.entries()) {
      const server = readServer(entry, host)
      if (server.port > 0) servers.set(server.id, server)
      if (i === 0) view.ranges.push({ first: Number(first), last: Number(last), master: server })
    }
  }
  view.servers = [...servers.values()]
}

/** @param {any[]} entry @param {string} asked @returns {ClusterServer} */
function readServer([endpoint, port, id, names], asked) {
  let host = String(endpoint ?? '')
  if (host === '?') {
    // The server announces a host name that it lacks: its address is among the other names.
    const at = Array.isArray(names) ? names.findIndex((name, i) => i % 2 === 0 && String(name) === 'ip') : -1
    host = at < 0 ? '' : String(names[at + 1])
  }
  host ||= asked
  return { id: String(id ?? `${host}:${port}`), host, port: Number(port) }
}

/**
 * @param {RedisConnection} redis `engine.redis` @param {'tls' | 'sentinel_tls'} tls
 * @param {string} block
 */
function secure(redis, tls, block) {
  try {
    return tlsOptions(redis[tls])
  } catch (error) {
    throw new Error(`${block}.${tls}.${error.message}`)
  }
}

/**
 * @param {RedisConnection} redis `engine.redis`
 * @param {RedisShard} shard @param {string} block @returns {import('ioredis').RedisOptions}
 */
function sentinelOptions(redis, shard, block) {
  return {
    sentinels: shard.hosts,
    name: shard.sentinel_master_name,
    role: 'master',
    Connector: SentinelConnector,
    enableTLSForSentinelMode: shard.tls,
    sentinelTLS: shard.sentinel_tls ? secure(redis, 'sentinel_tls', block) : undefined,
    sentinelUsername: shard.sentinel_user || undefined,
    sentinelPassword: shard.sentinel_password || undefined,
    sentinelCommandTimeout: shard.io_timeout,
  }
}

/** @param {RedisShard} shard @returns {import('ioredis').RedisOptions} */
function serverOptions({ path, hosts }) {
  if (path !== '') return { path }
  const [{ host, port }] = hosts
  return { host, port }
}

/**
 * @param {RedisConnection} redis `engine.redis` @param {RedisShard} shard @param {string} block
 * @returns {Target}
 */
function targetOf(redis, shard, block) {
  const { kind, key, name } = shard
  /** @type {import('ioredis').RedisOptions} */
  const common = {
    protocol: 3,
    username: shard.user || undefined,
    password: shard.password || undefined,
    db: shard.db,
    connectionName: redis.client_name || undefined,
    connectTimeout: shard.connect_timeout,
    socketTimeout: shard.io_timeout,
    tls: shard.tls ? secure(redis, 'tls', block) : undefined,
  }
  switch (kind) {
    case 'sentinel':
      return { kind, key, name, options: { ...common, ...sentinelOptions(redis, shard, block) } }
    case 'cluster':
      return { kind, key, name, options: common, nodes: shard.hosts }
    default:
      return { kind, key, name, options: { ...common, ...serverOptions(shard) } }
  }
}

/**
 * @param {RedisConnection} redis `engine.redis` of the configuration, or a block with its keys
 * @param {string} [block] path of `redis`
 * @returns {Target[]} one for each shard, in the order of the configuration
 * @throws {Error} one line that names the key, without passwords
 */
export function parseTargets(redis, block = BLOCK) {
  const shards = redisShards(
    redis,
    (key, text) => {
      throw new Error(`${key}: ${text}`)
    },
    block,
  )
  return shards.map(shard => targetOf(redis, shard, block))
}
