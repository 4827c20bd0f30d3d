// Status of users in Redis, for all nodes. The clock is that of Redis.

import { STATUS_REDIS } from '../../../config/user-status.js'
import { parseTargets } from './address.js'
import { replyTo } from './partition.js'
import { Placement } from './placement.js'
import { statusRead, statusUpdate } from './scripts.js'

/** @import { Logger } from 'pino' */
/** @import { Config } from '../../../config/options.js' */
/** @import { UserStatuses } from '../contract.js' */
/** @import { Partition } from './partition.js' */

/** Of a cluster, without an option: the default of the engine. */
const PARTITIONS = 128
/** Users of a command, which Redis executes alone. */
const BATCH = 200

/** @param {Partition} partition @param {readonly string[]} users */
const keysOf = (partition, users) => users.map(user => partition.key('status', user))

/** @param {Pick<Config, 'user_status' | 'engine'>} config @param {Logger} log @returns {UserStatuses} connecting */
export function openStatusStore({ user_status, engine }, log) {
  const { redis, expire_interval: ttl } = user_status
  const { reuse_from_engine: shared } = redis
  const servers = shared ? engine.redis : redis
  const partitions = shared ? engine.redis.sharded_pub_sub_partitions : PARTITIONS
  const placement = new Placement(
    parseTargets(servers, shared ? 'engine.redis' : STATUS_REDIS),
    { prefix: servers.prefix, partitions },
    { up() {}, down() {}, channelMessage() {}, controlMessage() {} },
    log,
  )
  placement.connect()

  /**
   * @param {readonly string[]} users
   * @param {(partition: Partition, users: string[]) => Promise<unknown>} run called for each batch
   */
  const inBatches = async (users, run) => {
    /** @type {Map<Partition, string[]>} */
    const byPartition = new Map()
    for (const user of users) {
      const partition = placement.of(user)
      const list = byPartition.get(partition)
      if (list === undefined) byPartition.set(partition, [user])
      else list.push(user)
    }
    const runs = []
    for (const [partition, list] of byPartition)
      for (let at = 0; at < list.length; at += BATCH) runs.push(run(partition, list.slice(at, at + BATCH)))
    await Promise.all(runs)
  }

  return {
    update: (users, { active = false, online = false, state }) =>
      inBatches(users, (partition, batch) => {
        const args = [ttl, Number(active), Number(online), Number(state !== undefined), state ?? '']
        return replyTo(done => partition.run(statusUpdate, keysOf(partition, batch), args, done))
      }),
    async get(users) {
      /** @type {Map<string, import('../contract.js').UserStatus>} */
      const found = new Map()
      await inBatches([...new Set(users)], async (partition, batch) => {
        const keys = keysOf(partition, batch)
        const values = await replyTo(done => partition.run(statusRead, keys, [], done))
        for (const [i, user] of batch.entries()) {
          const [active, online, state] = values.slice(3 * i, 3 * i + 3).map(String)
          found.set(user, { active: Number(active), online: Number(online), state })
        }
      })
      return users.map(user => /** @type {import('../contract.js').UserStatus} */ (found.get(user)))
    },
    remove: users =>
      inBatches(users, (partition, batch) =>
        replyTo(done => partition.send('del', keysOf(partition, batch), done)),
      ),
    close: () => placement.close(),
  }
}
