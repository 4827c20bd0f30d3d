// A shard of a cluster that records its events, and operations on clusters.

import pino from 'pino'
import { ClusterShard } from '../../../../src/channels/broker/redis/placement.js'
import { until } from '../../../kit/wait.js'

/** @import { Partition } from '../../../../src/channels/broker/redis/partition.js' */
/** @import { Cluster } from '../../../kit/servers/cluster.js' */
/** @import { RedisServer } from '../../../kit/servers/redis.js' */

/** Records log lines. */
export function keepLog() {
  /** @type {any[]} */
  const lines = []
  const log = pino({ level: 'info' }, { write: text => lines.push(JSON.parse(text)) })
  return { lines, log }
}

/** A ClusterShard, and its events. */
export class ShardRig {
  /** @type {{kind: 'up' | 'down', partition: Partition}[]} */
  events = []
  /** @type {{channel: string, text: string}[]} */
  messages = []
  /** @type {{topic: string, text: string}[]} */
  control = []

  /**
   * @param {any} t ends with this test @param {Cluster} cluster
   * @param {{partitions?: number, prefix?: string, options?: object, seeds?: RedisServer[]}} [options]
   */
  constructor(
    t,
    cluster,
    { partitions = 16, prefix = 'test', options = {}, seeds = cluster.servers.slice(0, 1) } = {},
  ) {
    const { lines, log } = keepLog()
    this.lines = lines
    this.shard = new ClusterShard(
      {
        kind: 'cluster',
        key: 'engine.redis',
        name: 'the cluster',
        options: { protocol: 3, connectTimeout: 5000, socketTimeout: 10_000, ...options },
        nodes: seeds.map(({ host, port }) => ({ host, port })),
      },
      prefix,
      partitions,
      {
        up: partition => this.events.push({ kind: 'up', partition }),
        down: partition => this.events.push({ kind: 'down', partition }),
        channelMessage: (channel, message) => this.messages.push({ channel, text: String(message) }),
        controlMessage: (topic, message) => this.control.push({ topic, text: String(message) }),
      },
      log,
    )
    t.teardown(() => this.shard.close())
    this.shard.connect()
  }

  /** @returns {Promise<void>} when all partitions are up */
  async whole() {
    await until(() => this.shard.up)
  }

  /** @param {'up' | 'down'} kind @param {Partition} partition */
  count(kind, partition) {
    return this.events.filter(event => event.kind === kind && event.partition === partition).length
  }

  /** @param {'up' | 'down'} kind @param {Partition} partition @param {number} times */
  async reached(kind, partition, times) {
    await until(() => this.count(kind, partition) >= times)
  }

  /** @param {string} text @returns {Promise<void>} when this message is here */
  async got(text) {
    await until(() => this.messages.some(message => message.text === text))
  }
}

/**
 * @param {Partition} partition @param {string} name @param {...(string | number)} args
 * @returns {Promise<any>} the reply, its texts as strings
 */
export function send(partition, name, ...args) {
  return new Promise((resolve, reject) =>
    partition.send(name, args, (error, reply) =>
      error ? reject(error) : resolve(Buffer.isBuffer(reply) ? String(reply) : reply),
    ),
  )
}

/** @param {Promise<any>} sent @returns {Promise<any>} its error, null if there is none */
export const refusal = sent =>
  sent.then(
    () => null,
    error => error,
  )

/** @param {Partition} partition @param {string} channel */
export function subscribe(partition, channel) {
  return new Promise((resolve, reject) =>
    partition.subscribe([partition.key('channel', channel)], error =>
      error ? reject(error) : resolve(null),
    ),
  )
}

/** @param {Partition} partition @param {string} channel @param {string} text */
export function publish(partition, channel, text) {
  return send(partition, partition.publishCommand, partition.key('channel', channel), text)
}

/** Where a cluster of servers keeps a partition. @param {Cluster} cluster @param {Partition} partition */
export async function slotOf(cluster, partition) {
  const server = cluster.servers.find(({ runs }) => runs)
  return Number(await server?.call('CLUSTER', 'KEYSLOT', partition.key('a', 'b')))
}

/** @param {Cluster} cluster @param {Partition} partition */
export async function masterOf(cluster, partition) {
  return cluster.masterOf(await slotOf(cluster, partition))
}

/**
 * Moves a slot to another master, as redis-cli does it.
 * @param {Cluster} cluster @param {number} slot @param {RedisServer} target
 * @param {() => Promise<void>} [halfway] called when its keys have moved, and before the slot has
 */
export async function moveSlot(cluster, slot, target, halfway) {
  const source = await cluster.masterOf(slot)
  const nodes = await cluster.nodes(target)
  const idOf = (/** @type {any} */ server) =>
    /** @type {any} */ (nodes.find(node => node.server === server)).id
  await target.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', idOf(source))
  await source.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', idOf(target))
  await until(async () => {
    const keys = await source.call('CLUSTER', 'GETKEYSINSLOT', slot, 1000)
    if (keys.length === 0) return true
    const auth = target.password === '' ? [] : ['AUTH', target.password]
    await source.call('MIGRATE', target.host, target.port, '', 0, 5000, ...auth, 'KEYS', ...keys)
    return false
  })
  await halfway?.()
  const masters = await cluster.masters()
  for (const server of [target, source, ...masters.filter(master => master !== target && master !== source)])
    await server.call('CLUSTER', 'SETSLOT', slot, 'NODE', idOf(target))
}
