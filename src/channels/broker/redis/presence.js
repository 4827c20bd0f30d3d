import { replyTo } from './partition.js'
import { keysOf, PartitionPresence } from './partition-presence.js'
import { presenceAlive, presenceStats } from './scripts.js'

/**
 * @typedef {import('../contract.js').Presence} Presence
 * @typedef {import('./partition.js').Partition} Partition
 */

const TICK_MS = 1000
const CLIENT = 0x63 // c

/**
 * Presence over all workers of all nodes. For each channel Redis holds the clients, each with its worker, and the
 * workers with their leases. A client counts while its worker renews the lease: one small command for each channel of
 * a worker, not for each client.
 * @implements {Presence}
 */
export class RedisPresence {
  #placement
  #uid
  #ttl
  #log
  /** @type {Map<Partition, PartitionPresence>} */
  #byPartition = new Map()
  /** @type {NodeJS.Timeout | undefined} */
  #timer

  /**
   * @param {object} options @param {import('./placement.js').Placement} options.placement @param {string} options.uid
   * @param {number} options.ttl ms until the clients of a dead worker vanish
   * @param {import('pino').Logger} options.log
   */
  constructor({ placement, uid, ttl, log }) {
    this.#placement = placement
    this.#uid = uid
    this.#ttl = ttl
    this.#log = log
  }

  start() {
    this.#timer = setInterval(() => this.tick(), TICK_MS)
  }

  close() {
    clearInterval(this.#timer)
  }

  /** @param {string} channel */
  #presenceOf(channel) {
    const partition = this.#placement.of(channel)
    let own = this.#byPartition.get(partition)
    if (!own) {
      own = new PartitionPresence(partition, { uid: this.#uid, ttl: this.#ttl })
      this.#byPartition.set(partition, own)
    }
    return own
  }

  /**
   * @param {string} channel @param {string} client @param {string} info ClientInfo as JSON text
   * @param {boolean} leave announce a leave if this worker dies
   * @param {(error: Error | null) => void} done never called before this returns. After an error the presence of the
   *   client is unchanged
   */
  add(channel, client, info, leave, done) {
    this.#presenceOf(channel).add(channel, client, this.#value(info, leave), done)
  }

  /** @param {string} info @param {boolean} leave @returns {string} as in presence.lua */
  #value(info, leave) {
    const { user } = JSON.parse(info)
    return `${this.#uid} ${leave ? 1 : 0} ${Buffer.byteLength(user)} ${user}${info}`
  }

  /** @type {Presence['update']} */
  update(channel, client, info) {
    const own = this.#byPartition.get(this.#placement.of(channel))
    const former = own?.get(channel, client)
    if (former === undefined) return
    const leave = former.startsWith('1', this.#uid.length + 1)
    own?.update(channel, client, this.#value(info, leave))
  }

  /** @param {string} channel @param {string} client @returns {boolean} whether it is present through this worker */
  has(channel, client) {
    return this.#byPartition.get(this.#placement.of(channel))?.get(channel, client) !== undefined
  }

  /** @param {string} channel @param {string} client */
  remove(channel, client) {
    this.#byPartition.get(this.#placement.of(channel))?.remove(channel, client)
  }

  /** @type {Presence['list']} */
  async list(channel) {
    const partition = this.#placement.of(channel)
    const [presence, present] = keysOf(partition, channel)
    // A script around the long list would triple its cost in Redis.
    const [entries, workers] = await Promise.all([
      replyTo(done => partition.send('hgetall', [presence], done)),
      replyTo(done => partition.run(presenceAlive, [present], [], done)),
    ])
    const alive = new Set(workers.map(String))
    /** @type {Map<string, string>} */
    const clients = new Map()
    for (let i = 0; i < entries.length; i += 2) {
      const field = entries[i]
      if (field[0] !== CLIENT) continue
      const value = entries[i + 1]
      const worker = value.indexOf(' ')
      if (!alive.has(value.latin1Slice(0, worker))) continue
      // See presence.lua: '<worker> <leave> <bytes of user> <user><info>'
      const user = value.indexOf(' ', worker + 3) + 1
      const info = user + Number(value.latin1Slice(worker + 3, user - 1))
      clients.set(field.utf8Slice(1, field.length), value.utf8Slice(info, value.length))
    }
    return clients
  }

  /** @type {Presence['stats']} */
  async stats(channel) {
    const partition = this.#placement.of(channel)
    const keys = keysOf(partition, channel)
    const [clients, users] = await replyTo(done => partition.run(presenceStats, keys, [], done))
    return { clients, users }
  }

  /** Called once a second. */
  tick() {
    let swept = 0
    for (const own of this.#byPartition.values()) {
      own.tick()
      swept += own.swept
      own.swept = 0
    }
    if (swept > 0) this.#log.info({ clients: swept }, 'presence of ended workers removed')
  }

  /** The connection of a partition has come up. @param {Partition} partition */
  up(partition) {
    this.#byPartition.get(partition)?.up()
  }
}
