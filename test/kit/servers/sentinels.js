// A Redis with replicas and Sentinel, for tests.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '../wait.js'
import { serverArgs, spawnRedis } from './redis.js'

/** @typedef {import('./redis.js').RedisServer} RedisServer */

/** Faster than by default, ms; old versions lack the command. */
const PERIODS = { 'info-period': 500, 'publish-period': 200, 'ping-period': 200, 'ask-period': 200 }

export class SentinelSet {
  /**
   * @param {string} name of the master @param {RedisServer[]} servers the initial master first
   * @param {RedisServer[]} sentinels
   */
  constructor(name, servers, sentinels) {
    this.name = name
    this.servers = servers
    this.sentinels = sentinels
  }

  /** For `engine.redis.address`. */
  get address() {
    const [first, ...others] = this.sentinels
    const more = others.map(({ host, port }) => `&addr=${host}:${port}`).join('')
    return `redis+sentinel://${this.#credentials}${first.host}:${first.port}?sentinel_master_name=${this.name}${more}`
  }

  get #credentials() {
    const [{ password }] = this.servers
    return password === '' ? '' : `:${encodeURIComponent(password)}@`
  }

  /** Last log lines, for errors. */
  get #output() {
    return this.sentinels.map(({ log }) => ['', ...log.slice(-20)].join('\n')).join('\n')
  }

  /** The master according to the first running sentinel. */
  async master() {
    const sentinel = this.sentinels.find(({ runs }) => runs)
    if (!sentinel) throw new Error('no sentinel runs')
    return this.#masterOf(sentinel)
  }

  /** @param {RedisServer} sentinel */
  async #masterOf(sentinel) {
    const [, port] = await sentinel.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', this.name)
    const found = this.servers.find(server => server.port === Number(port))
    if (!found) throw new Error(`no server listens on port ${port}`)
    return found
  }

  /**
   * @param {RedisServer} old killed or stopped
   * @returns {Promise<RedisServer>} the new master: known to all sentinels, writable
   */
  async replaced(old) {
    for (const sentinel of this.sentinels)
      await until(
        async () => !sentinel.runs || (await this.#masterOf(sentinel)) !== old,
        () => this.#output,
      )
    const master = await this.master()
    await until(async () => (await master.info('replication')).role === 'master')
    return master
  }

  /** Promotes a replica. @returns {Promise<RedisServer>} the new master */
  async failover() {
    const old = await this.master()
    const [sentinel] = this.sentinels
    await until(
      () => sentinel.call('SENTINEL', 'FAILOVER', this.name),
      () => this.#output,
    )
    return this.replaced(old)
  }

  /** Resolves when the sentinels know each other and all servers, and the replicas are in sync. */
  async whole() {
    for (const sentinel of this.sentinels) {
      await until(
        async () => {
          const reply = await sentinel.call('SENTINEL', 'MASTER', this.name)
          const { flags, 'num-slaves': replicas, 'num-other-sentinels': others } = pairs(reply)
          return (
            flags === 'master' &&
            Number(replicas) === this.servers.length - 1 &&
            Number(others) === this.sentinels.length - 1
          )
        },
        () => this.#output,
      )
    }
    const master = await this.master()
    for (const server of this.servers)
      if (server !== master)
        await until(async () => (await server.info('replication')).master_link_status === 'up')
  }
}

/** @param {string[]} list name, value, name, value ... @returns {Record<string, string>} */
const pairs = list =>
  Object.fromEntries(list.flatMap((name, i) => (i % 2 === 0 ? [[name, list[i + 1]]] : [])))

/**
 * Starts a master, its replicas and their sentinels, which know each other.
 * @param {any} t ends with this test
 * @param {{replicas?: number, sentinels?: number, name?: string, downAfter?: number, failoverTimeout?: number, args?:
 *   string[], password?: string, aof?: boolean | 'always'}} [options] times in ms, for busy machines; `password` of
 *   the servers, not of the sentinels
 */
export async function startSentinels(
  t,
  {
    replicas = 1,
    sentinels = 3,
    name = 'mymaster',
    downAfter = 3000,
    failoverTimeout = 3000,
    args = [],
    password,
    aof,
  } = {},
) {
  const server = (/** @type {string[]} */ more) =>
    spawnRedis(t, (port, dir) => serverArgs({ port, dir, password, aof, args: [...args, ...more] }), {
      password,
    })
  const master = await server([])
  const others = await Promise.all(
    Array.from({ length: replicas }, () => server(['--replicaof', master.host, `${master.port}`])),
  )
  for (const replica of others)
    await until(async () => (await replica.info('replication')).master_link_status === 'up')
  const quorum = Math.floor(sentinels / 2) + 1
  const watchers = await Promise.all(
    Array.from({ length: sentinels }, () =>
      spawnRedis(t, async (port, dir) => {
        // Sentinel writes its state to this file.
        const file = join(dir, 'sentinel.conf')
        const lines = [
          `port ${port}`,
          'bind 127.0.0.1',
          `dir ${dir}`,
          `sentinel monitor ${name} ${master.host} ${master.port} ${quorum}`,
          `sentinel down-after-milliseconds ${name} ${downAfter}`,
          `sentinel failover-timeout ${name} ${failoverTimeout}`,
          ...(password ? [`sentinel auth-pass ${name} ${password}`] : []),
        ]
        await writeFile(file, `${lines.join('\n')}\n`)
        return [file, '--sentinel']
      }),
    ),
  )
  for (const sentinel of watchers) {
    const periods = Object.entries(PERIODS).flat()
    await sentinel.call('SENTINEL', 'DEBUG', ...periods).catch(() => {})
  }
  const set = new SentinelSet(name, [master, ...others], watchers)
  await set.whole()
  return set
}
