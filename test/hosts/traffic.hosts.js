// Faults of the network under traffic: nothing acknowledged is lost, doubled or out of order.

import './enter.js'
import t from 'tap'
import { channels } from '../channels/broker/redis/nodes.js'
import {
  audit,
  begin,
  Listener,
  Load,
  SdkListener,
  unrecoveredCounts,
} from '../channels/broker/redis/traffic.js'
import { pause, until } from '../kit/wait.js'
import { freeze, Network } from './network.js'
import { startNodeOn, startRedisOn } from './programs.js'

const network = new Network('redis', 'a', 'b')
const [redisHost, hostA, hostB] = ['redis', 'a', 'b'].map(name => network.host(name))
const redis = await startRedisOn(t, redisHost)
const [a, b] = await Promise.all(
  [hostA, hostB].map(host =>
    startNodeOn(t, host, redis.address, {
      workers: 1,
      redis: { io_timeout: '2s' },
      config: { client: { ping_interval: '2s', pong_timeout: '1s' } },
    }),
  ),
)

/** @returns {Promise<any>} each node counts both */
const joined = () =>
  until(async () => {
    const counts = await Promise.all([a, b].map(async node => (await node.api('info')).result?.nodes.length))
    return counts.every(count => count === 2)
  })

let number = 0
/**
 * @param {string} name
 * @param {object} options
 * @param {() => Promise<void>} options.fault
 * @param {boolean} [options.stays] clients must not lose a connection or a subscription
 * @param {import('../kit/gateway.js').TestGateway[]} [options.publishers] nodes that are published to
 */
const trial = (name, { fault, stays = false, publishers = [a, b] }) =>
  t.test(name, async t => {
    const kept = channels(`kept:${number++}`, 4)
    const listeners = [a, b].flatMap(({ ws }) => [
      new Listener(() => ws, kept, { stays }),
      new SdkListener(() => ws, kept, { stays }),
    ])
    await begin(t, listeners)
    const load = new Load(() => publishers.map(({ url }) => url), kept, { rate: 200, connections: 4 })
    await load.acked(100)
    await fault()
    await joined()
    await load.acked(100)
    await load.stop()
    await audit(t, load, listeners, a)
    t.same([...new Set(unrecoveredCounts(listeners))], [0], 'every client has recovered')
  })

await joined()

trial('a node cannot reach Redis for longer than its lease', {
  stays: true,
  async fault() {
    network.part(redisHost, hostB)
    await until(async () => (await a.api('info')).result?.nodes.length === 1)
    await pause(2000)
    network.clear()
  },
})

trial('a node sends to Redis, and receives nothing', {
  stays: true,
  async fault() {
    network.block(redisHost, hostB)
    await pause(5000)
    network.clear()
  },
})

trial('a node receives from Redis, and what it sends is lost', {
  stays: true,
  async fault() {
    network.block(hostB, redisHost)
    await pause(5000)
    network.clear()
  },
})

trial('clients cannot reach their node, which ends their connections', {
  publishers: [a],
  async fault() {
    network.part(network.here, hostB)
    await pause(6000)
    network.clear()
  },
})

trial('many short outages of the link to Redis', {
  stays: true,
  async fault() {
    for (let i = 0; i < 16; i++) {
      const cut = i % 2 === 0 ? redisHost : hostB
      network.part(cut, cut === redisHost ? hostA : redisHost)
      await pause(200 + 90 * i)
      network.clear()
      await pause(300 + 40 * i)
    }
  },
})

trial('a node stands still', {
  publishers: [a],
  async fault() {
    const thaw = freeze(b.process.pid)
    await pause(9000)
    thaw()
  },
})

trial('small packets, of which some are lost', {
  async fault() {
    network.mtu(576)
    for (const host of [redisHost, hostA, hostB]) network.lose(host, 0.02)
    await pause(12_000)
    network.clear()
    network.mtu(1500)
  },
})
