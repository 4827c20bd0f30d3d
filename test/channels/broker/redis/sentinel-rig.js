// A worker's connection to the master named by sentinels.

import { parseTargets } from '../../../../src/channels/broker/redis/address.js'
import { SingleShard } from '../../../../src/channels/broker/redis/placement.js'
import { until } from '../../../kit/wait.js'
import { keepLog, send } from './cluster-rig.js'
import { redisConfig } from './rig.js'

/** @param {any} t @param {{address: string}} set */
export function joinSentinels(t, set) {
  const { lines, log } = keepLog()
  /** @type {string[]} */
  const events = []
  const [target] = parseTargets(
    redisConfig({ address: set.address, connect_timeout: '500ms', io_timeout: '1s' }),
  )
  const shard = new SingleShard(
    target,
    'test',
    {
      up: () => events.push('up'),
      down: () => events.push('down'),
      channelMessage: () => {},
      controlMessage: () => {},
    },
    log,
  )
  t.teardown(() => shard.close())
  shard.connect()
  const [partition] = shard.partitions
  /** @param {number} times */
  const ups = times => until(() => events.filter(event => event === 'up').length >= times)
  /** @returns {Promise<number>} the port of the server, once it can be written to */
  const port = () =>
    until(async () => {
      await send(partition, 'set', 'a', 'b')
      const reply = await send(partition, 'config', 'get', 'port')
      return Number(String(reply[1]))
    })
  return { shard, partition, events, lines, ups, port }
}

/** The topology of a sentinel set, for failover.js. */
export const topologyOf = set => ({
  address: set.address,
  masters: async () => [await set.master()],
  replicaOf: async master => set.servers.find(server => server !== master),
  stepDown: () => set.failover(),
  // The old master accepts publications until the sentinels reconfigure it.
  exact: false,
  losesAtOnce: false,
  whole: () => set.whole(),
})
