// A Redis Cluster for tests.

import { freePort } from '../ports.js'
import { until } from '../wait.js'
import { fields, serverArgs, spawnRedis } from './redis.js'

/** @typedef {import('./redis.js').RedisServer} RedisServer */

const SLOTS = 16_384

/**
 * @typedef {object} ClusterNode
 * @property {string} id
 * @property {RedisServer} server
 * @property {'master' | 'replica'} role
 * @property {string} of id of a replica's master
 * @property {boolean} failed
 * @property {[number, number][]} slots first and last
 */

/** @param {string} text of CLUSTER NODES; `[...]`: migrating slots @returns {[number, number][]} */
function range(text) {
  if (text.startsWith('[')) return []
  const [first, last = first] = text.split('-').map(Number)
  return [[first, last]]
}

/** A running cluster: first the initial masters, then their replicas in the same order. */
export class Cluster {
  /** @param {RedisServer[]} servers */
  constructor(servers) {
    this.servers = servers
  }

  /** For `engine.redis.address`. */
  get address() {
    const [first, ...others] = this.servers
    const more = others.map(({ host, port }) => `addr=${host}:${port}`).join('&')
    return `${first.address.replace('redis:', 'redis+cluster:')}${more === '' ? '' : `?${more}`}`
  }

  /** @param {RedisServer} [asked] @returns {Promise<ClusterNode[]>} its view, in the order of `servers` */
  async nodes(asked = this.servers.find(({ runs }) => runs)) {
    if (!asked) throw new Error('no node of the cluster runs')
    /** @type {string} */
    const text = await asked.call('CLUSTER', 'NODES')
    const nodes = text
      .trimEnd()
      .split('\n')
      .flatMap(line => {
        const [id, address, flags, of, , , , link, ...slots] = line.split(' ')
        const server = this.servers.find(({ port }) => port === Number(address.match(/:(\d+)@/)?.[1]))
        if (!server) return []
        return {
          id,
          server,
          role: /** @type {'master' | 'replica'} */ (flags.includes('master') ? 'master' : 'replica'),
          of: of === '-' ? '' : of,
          failed: /\bfail\b|handshake|noaddr/.test(flags) || link !== 'connected',
          slots: slots.flatMap(range),
        }
      })
    return nodes.sort((a, b) => this.servers.indexOf(a.server) - this.servers.indexOf(b.server))
  }

  /** @returns {Promise<RedisServer[]>} running ones with slots */
  async masters() {
    return (await this.nodes())
      .filter(({ role, failed, slots }) => role === 'master' && !failed && slots.length > 0)
      .map(({ server }) => server)
  }

  /** @param {number} slot @returns {Promise<RedisServer>} */
  async masterOf(slot) {
    const nodes = await this.nodes()
    const found = nodes.find(({ slots }) => slots.some(([first, last]) => first <= slot && slot <= last))
    if (!found) throw new Error(`no node serves slot ${slot}`)
    return found.server
  }

  /** @param {RedisServer} master @returns {Promise<RedisServer[]>} */
  async replicasOf(master) {
    const nodes = await this.nodes()
    const id = nodes.find(({ server }) => server === master)?.id
    return nodes.filter(({ of }) => of === id).map(({ server }) => server)
  }

  /**
   * Promotes the first replica.
   * @param {RedisServer} master @returns {Promise<RedisServer>} the new master, known to all nodes
   */
  async failover(master) {
    const [replica] = await this.replicasOf(master)
    if (!replica) throw new Error('it has no replica')
    await replica.call('CLUSTER', 'FAILOVER')
    await this.#mastered(replica)
    return replica
  }

  /** @param {RedisServer} master killed @returns {Promise<RedisServer>} its successor, known to all nodes */
  async replaced(master) {
    const candidates = await this.replicasOf(master)
    const replica = await until(async () => {
      for (const server of candidates)
        if (server.runs && (await server.info('replication')).role === 'master') return server
    })
    await this.#mastered(replica)
    return replica
  }

  /** @param {RedisServer} server */
  async #mastered(server) {
    await this.healthy()
    await this.#everywhere(nodes =>
      nodes.some(node => node.server === server && node.role === 'master' && node.slots.length > 0),
    )
  }

  /** @param {(nodes: ClusterNode[]) => boolean} condition on the view of each running node */
  async #everywhere(condition) {
    for (const server of this.servers)
      await until(async () => !server.runs || condition(await this.nodes(server)))
  }

  /** Resolves when all running nodes report that all slots are served. */
  async healthy() {
    for (const server of this.servers) {
      await until(
        async () => !server.runs || fields(await server.call('CLUSTER', 'INFO')).cluster_state === 'ok',
      )
    }
  }

  /** Resolves when all nodes run and know each other, and the replicas are in sync. */
  async whole() {
    await this.healthy()
    await this.#everywhere(
      nodes =>
        nodes.length === this.servers.length &&
        nodes.every(({ failed, role, slots }) => !failed && (role === 'replica' || slots.length > 0)),
    )
    for (const { server, role } of await this.nodes())
      if (role === 'replica')
        await until(async () => (await server.info('replication')).master_link_status === 'up')
  }
}

/**
 * Starts a cluster: all slots are served, and the replicas are in sync.
 * @param {any} t ends with this test
 * @param {{masters?: number, replicas?: number, timeout?: number, args?: string[], password?: string, aof?: boolean |
 *   'always'}} [options] `replicas` of each master; `timeout`: `cluster-node-timeout`, ms
 */
export async function startCluster(
  t,
  { masters = 3, replicas = 1, timeout = 1500, args = [], password, aof } = {},
) {
  const servers = await Promise.all(
    Array.from({ length: masters * (1 + replicas) }, () =>
      spawnRedis(
        t,
        async (port, dir) => [
          ...serverArgs({ port, dir, password, aof, args }),
          ...['--cluster-enabled', 'yes', '--cluster-port', `${await freePort()}`],
          ...['--cluster-node-timeout', `${timeout}`],
        ],
        { password },
      ),
    ),
  )
  const cluster = new Cluster(servers)
  const ids = await Promise.all(servers.map(server => server.call('CLUSTER', 'MYID')))
  await Promise.all(
    servers.map(async (server, i) => {
      await server.call('CLUSTER', 'SET-CONFIG-EPOCH', i + 1)
      if (i >= masters) return
      const first = Math.floor((i * SLOTS) / masters)
      const last = Math.floor(((i + 1) * SLOTS) / masters) - 1
      await server.call('CLUSTER', 'ADDSLOTSRANGE', first, last)
    }),
  )
  // Connect all pairs: faster than gossip.
  for (const [i, server] of servers.entries())
    for (const { host, port, busPort } of await Promise.all(servers.slice(i + 1).map(addressed)))
      await server.call('CLUSTER', 'MEET', host, port, busPort)
  await Promise.all(
    servers.slice(masters).map((server, i) =>
      // Refused until the master is known.
      until(() => server.call('CLUSTER', 'REPLICATE', ids[i % masters])),
    ),
  )
  await cluster.whole()
  return cluster
}

/** @param {RedisServer} server */
async function addressed(server) {
  const [, busPort] = await server.call('CONFIG', 'GET', 'cluster-port')
  return { host: server.host, port: server.port, busPort }
}
