// Configured Redis deployments, connectors that locate their servers for ioredis, and the views of cluster nodes.
// `Connector` is a public option of ioredis: it opens the socket and can cork, pause and destroy it.

import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectSecurely } from 'node:tls'
import { AbstractConnector, Redis } from 'ioredis'
import { tlsOptions } from '../../../config/pem.js'
import { redisShards } from '../../../config/redis-shards.js'

/** @import { Socket } from 'node:net' */
/** @import { RedisOptions } from 'ioredis' */
/** @import { HostPort, RedisConnection, RedisShard } from '../../../config/redis-shards.js' */
/** @import { Done } from './connection.js' */

/**
 * @typedef {(event: string, error: Error) => void} Emit emits on the client
 *
 * A Redis deployment. `key`: configuration key; `name`: without passwords; `nodes`: seeds of a cluster.
 * @typedef {{kind: 'single' | 'sentinel' | 'cluster', key: string, name: string, options: RedisOptions,
 *   nodes?: HostPort[]}} Target
 */

/**
 * @typedef {{id: string, host: string, port: number}} ClusterServer
 * @typedef {{first: number, last: number, master: ClusterServer}} SlotRange slots of one master
 *
 * A server's view of its cluster. `ok`: it sees most masters, and all slots are served; `servers`: with replicas.
 * @typedef {{ok: boolean, sharded: boolean, ranges: SlotRange[], servers: HostPort[]}} ClusterView
 */

const BLOCK = 'engine.redis'
/** Topic of failovers, published by each sentinel: `<master name> <old host> <old port> <new host> <new port>`. */
const NEWS = '+switch-master'
const MAX_WATCHED = 10
const RETRY_MS = 1000
/** TCP keep-alive delay of connections to sentinels, ms: subscriptions are idle for months. */
const KEEP_ALIVE_MS = 15_000
const FIRST_ROUND_DELAY = 50
const MAX_ROUND_DELAY = 1000
/** Timeout (ms) of a view query to a connected node. */
const VIEW_TIMEOUT = 2000

const closed = () => new Error('Connection is closed.')

export class ServerConnector extends AbstractConnector {
  /** @param {any} options of the client */
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

/** @param {typeof ServerConnector} Connector @param {(socket: Socket) => void} opened called with each new socket */
export const observed = (Connector, opened) =>
  class extends Connector {
    /** @type {ServerConnector['connect']} */
    async connect(emit) {
      const socket = await super.connect(emit)
      opened(socket)
      return socket
    }
  }

/** Queries servers in turn until one returns the master. */
class LookupConnector extends ServerConnector {
  /** In lookup order. @type {HostPort[]} */
  servers = []
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
 * Connects to the sentinels' master. A partitioned old master may accept writes that will be lost, so its connection
 * closes when a sentinel announces another one. The detector of ioredis ignores names and addresses: it would close
 * healthy connections at failovers of other masters, and when the last sentinel announces the current master.
 */
class SentinelConnector extends LookupConnector {
  label = 'All sentinels'
  #master = ''
  #failovers = 0
  /** @type {Map<string, Redis>} subscriptions, by address of the sentinel */
  #watched = new Map()

  /** @param {any} options */
  constructor(options) {
    super(options)
    /** @type {HostPort[]} */
    this.servers = options.sentinels
  }

  /** Refuses a server that is no longer a master; the next lookup uses another sentinel. @param {{role?: string}} info */
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

  /** @param {HostPort} server @param {RedisOptions} more */
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
        // The reply may predate a failover.
        if (failovers !== this.#failovers) continue
        if (!Array.isArray(reply)) throw new Error(`unknown master ${JSON.stringify(this.options.name)}`)
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
      // On failure, the next connection retries.
      client.on('ready', () => client.subscribe(NEWS).catch(() => client.disconnect(true)))
      client.on('message', (/** @type {string} */ _topic, /** @type {string} */ text) => {
        const [name, , , host, port] = text.split(' ')
        if (name !== this.options.name) return
        this.#failovers++
        if (`${host} ${port}` !== this.#master)
          this.stream?.destroy(new Error(`the sentinels announced a new master: ${host}:${port}`))
      })
      this.#watched.set(address, client)
    }
  }
}

/**
 * @param {HostPort[]} nodes some nodes of a cluster @param {number} slot
 * @param {RedisOptions} options of connections to the nodes
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

export const ONCE = Object.freeze({
  lazyConnect: true,
  enableReadyCheck: false,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  disableClientInfo: true,
  retryStrategy: null,
})

/**
 * Queries a server's view of the cluster over a separate connection.
 * @param {HostPort} server @param {RedisOptions} options
 * @param {(error: Error | null, view: ClusterView | null) => void} done
 * @returns {() => void} aborts without calling `done`
 */
export function queryServer({ host, port }, options, done) {
  const redis = new Redis({
    ...options,
    host,
    port,
    ...ONCE,
    connectTimeout: Math.min(options.connectTimeout ?? VIEW_TIMEOUT, VIEW_TIMEOUT),
  })
  /** @type {Error | null} connection error */
  let reason = null
  let ended = false
  const timer = setTimeout(() => end(new Error('no response'), null), VIEW_TIMEOUT)
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
 * @param {(name: string, args: string[], done: Done) => void} send
 * @param {string} host its reachable address, possibly unknown to the server
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
 * @param {string} queried host @param {ClusterView} view receives the ranges and servers
 */
function readSlots(reply, queried, view) {
  /** @type {Map<string, ClusterServer>} */
  const servers = new Map()
  for (const [first, last, ...serving] of reply) {
    for (const [i, [endpoint, port, id, names]] of serving.entries()) {
      let host = String(endpoint ?? '')
      if (host === '?') {
        // `?`: the host name to announce is not set. The address is among the other names.
        const isIp = (/** @type {any} */ name, /** @type {number} */ at) =>
          at % 2 === 0 && String(name) === 'ip'
        const at = Array.isArray(names) ? names.findIndex(isIp) : -1
        host = at < 0 ? '' : String(names[at + 1])
      }
      host ||= queried
      const server = { id: String(id ?? `${host}:${port}`), host, port: Number(port) }
      if (server.port > 0) servers.set(server.id, server)
      if (i === 0) view.ranges.push({ first: Number(first), last: Number(last), master: server })
    }
  }
  view.servers = [...servers.values()]
}

/** @param {RedisConnection} redis `engine.redis` @param {'tls' | 'sentinel_tls'} tls @param {string} block */
function secure(redis, tls, block) {
  try {
    return tlsOptions(redis[tls])
  } catch (error) {
    throw new Error(`${block}.${tls}.${error.message}`)
  }
}

/** @param {RedisConnection} redis `engine.redis` @param {RedisShard} shard @param {string} block @returns {Target} */
function targetOf(redis, shard, block) {
  const { kind, key, name, path, hosts } = shard
  /** @type {RedisOptions} */
  const options = {
    protocol: 3,
    username: shard.user || undefined,
    password: shard.password || undefined,
    db: shard.db,
    connectionName: redis.client_name || undefined,
    connectTimeout: shard.connect_timeout,
    socketTimeout: shard.io_timeout,
    tls: shard.tls ? secure(redis, 'tls', block) : undefined,
  }
  if (kind === 'cluster') return { kind, key, name, options, nodes: hosts }
  if (kind === 'sentinel')
    Object.assign(options, {
      sentinels: hosts,
      name: shard.sentinel_master_name,
      role: 'master',
      Connector: SentinelConnector,
      enableTLSForSentinelMode: shard.tls,
      sentinelTLS: shard.sentinel_tls ? secure(redis, 'sentinel_tls', block) : undefined,
      sentinelUsername: shard.sentinel_user || undefined,
      sentinelPassword: shard.sentinel_password || undefined,
      sentinelCommandTimeout: shard.io_timeout,
    })
  else Object.assign(options, path === '' ? { host: hosts[0].host, port: hosts[0].port } : { path })
  return { kind, key, name, options }
}

/**
 * @param {RedisConnection} redis `engine.redis`, or a block with its keys @param {string} [block] its path
 * @returns {Target[]} one per shard, in configuration order
 * @throws {Error} one-line message with the key, without passwords
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
