// Accounting through faults: 20 killed workers and 5 killed nodes while clients come and go. The events of each channel
// alternate, agree with what the clients know, and keep their ids.

import { join } from 'node:path'
import t from 'tap'
import { startNode } from '../../channels/broker/redis/nodes.js'
import { tempDir } from '../../kit/folders.js'
import { startGateway } from '../../kit/gateway.js'
import { startRedis, withoutRedis } from '../../kit/servers/redis.js'
import { pause, until } from '../../kit/wait.js'
import { enter, StateBackend } from './rig.js'
import { compare, killWorker, randomOf, Storm } from './storm.js'
import { channelOf } from './suite.js'

t.setTimeout(900_000)

const VISITORS = 30
const WORKERS = 20
const NODES = 5
const DELAY = 1000
const TTL = 4000
const CHANNELS = Array.from({ length: 40 }, (_, i) => `room:${i}`)
const seed = Number(process.env.SEED ?? Date.now() % 1e9)

/**
 * @param {any} t @param {StateBackend} backend @param {() => Promise<import('../../kit/gateway.js').TestGateway>} start
 * @param {{nodes: number, quiet: number}} options `nodes`: at a time; `quiet`: ms until an empty channel is vacated
 */
async function run(t, backend, start, { nodes, quiet }) {
  t.comment(`SEED=${seed}`)
  const random = randomOf(seed)
  const storm = new Storm(t, CHANNELS)
  for (let i = 0; i < nodes; i++) storm.nodes.push(await start())
  // The backend fails, too.
  backend.delay = async () => {
    if (random() < 0.1) backend.refusals.push(500)
    await pause(random() * 30)
  }
  const visitors = Array.from({ length: VISITORS }, (_, i) => storm.visitor(seed + 1 + i))
  let workers = 0
  for (let killed = 0; killed < NODES; killed++) {
    for (const last = workers + WORKERS / NODES; workers < last; ) {
      await pause(500 + random() * 2500)
      if (killWorker(storm, random)) workers++
    }
    await pause(500 + random() * 1500)
    const at = Math.floor(random() * storm.nodes.length)
    const [node] = storm.nodes.splice(at, 1)
    storm.kill(() => node.process.kill('SIGKILL'))
    await node.exited
    storm.nodes.splice(at, 0, await start())
  }
  await pause(3000)
  storm.stopping = true
  await Promise.all(visitors)

  // Who stays is occupied, all others are vacated.
  const stays = CHANNELS.slice(0, 5)
  const from = Date.now()
  const clients = await Promise.all(stays.map(channel => enter(t, storm.nodes[0], channel)))
  for (const channel of stays)
    storm.stays.push({ channel, from, sure: Date.now(), leaving: Infinity, until: Infinity })
  const isSettled = () => JSON.stringify(backend.occupied.sort()) === JSON.stringify(stays)
  await until(isSettled, () => `only ${stays}; occupied are ${backend.occupied}`)
  await pause(2 * DELAY)
  t.same(backend.occupied.sort(), stays, 'it stays so')

  t.same(backend.faults, [], 'the events of a channel alternate; a repeated one is the same')
  const { faults, gaps } = compare(storm, backend, quiet)
  t.same(faults, [], 'they agree with the clients')
  t.comment(
    `${storm.stays.length} subscriptions, ${backend.events.length} events, ${backend.repeated} repeated, ${gaps} gaps`,
  )
  t.ok(backend.events.length >= 2 * CHANNELS.length)
  await Promise.all(clients.map(client => client.close()))
  await until(() => backend.occupied.length === 0)
}

t.test('Redis, three nodes', { skip: withoutRedis() }, async t => {
  const [redis, backend] = await Promise.all([startRedis(t), StateBackend.start(t)])
  const start = () =>
    startNode(t, redis.address, {
      redis: {
        presence_ttl: `${TTL}ms`,
        channel_state: { vacated_event_delay: `${DELAY}ms`, num_partitions: 8 },
      },
      config: { channel: channelOf(backend) },
    })
  await run(t, backend, start, { nodes: 3, quiet: TTL + DELAY + 4000 })
})

t.test('the memory engine, with a snapshot file', async t => {
  const backend = await StateBackend.start(t)
  const snapshot_file = join(tempDir(t), 'state')
  const start = () =>
    startGateway(t, {
      engine: { memory: { snapshot_file, channel_state: { vacated_event_delay: `${DELAY}ms` } } },
      client: { allow_anonymous_connect_without_token: true },
      channel: channelOf(backend),
    })
  // After the death of a node, clients have a minute to return.
  await run(t, backend, start, { nodes: 1, quiet: 60_000 + DELAY + 4000 })
})
