import { startRedis } from '../../../kit/servers/redis.js'
import { until } from '../../../kit/wait.js'

/** @typedef {import('../../../kit/servers/redis.js').RedisServer} RedisServer */

/** @param {RedisServer} server */
const end = async server => Number((await server.info('replication')).master_repl_offset)

/** A master with one replica, which switch roles without Sentinel or Cluster. */
export class Pair {
  /** @param {RedisServer} master @param {RedisServer} replica */
  constructor(master, replica) {
    this.master = master
    this.replica = replica
  }

  static async start(t) {
    const pair = new Pair(await startRedis(t), await startRedis(t))
    await pair.attach()
    return pair
  }

  /** The replica follows the master and has all of its data. */
  async attach() {
    const { master, replica } = this
    await replica.call('REPLICAOF', master.host, master.port)
    await until(async () => (await replica.info('replication')).master_link_status === 'up')
    await this.synced()
  }

  async synced() {
    const written = await end(this.master)
    await until(async () => (await end(this.replica)) >= written)
  }

  /** The replica takes over with its data; the old master continues. */
  async split() {
    await this.synced()
    await this.replica.call('REPLICAOF', 'NO', 'ONE')
  }

  /** The old master becomes the replica of the new one, and drops its own writes. */
  async swap() {
    ;[this.master, this.replica] = [this.replica, this.master]
    await this.attach()
  }
}
