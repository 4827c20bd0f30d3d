// Whole nodes are killed while clients connect and disconnect: other nodes log the disconnects.

import t from 'tap'
import { startNode } from '../../channels/broker/redis/nodes.js'
import { withoutProgram } from '../../kit/needs.js'
import { startRedis } from '../../kit/servers/redis.js'
import { until } from '../../kit/wait.js'
import { byClient, faultsOf } from './book.js'
import { Churn, config } from './churn.js'

const skip = withoutProgram('redis-server')
const CLIENTS = 40
const lifecycle = { redis: { stream: true, takeover_delay: '3s' } }

const node = (t, redis) => startNode(t, redis.address, { config: { ...config, lifecycle } })

/** @param {import('../../kit/servers/redis.js').RedisServer} server @returns {Promise<any[]>} records */
const streamOf = async server =>
  (await server.call('XRANGE', 'halley.lifecycle.stream', '-', '+')).map(([, [, text]]) => JSON.parse(text))

async function killNode(node) {
  const workers = node.workerPids
  node.process.kill('SIGKILL')
  for (const pid of workers) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It has exited with its primary.
    }
  }
  await node.exited
}

/** @param {any[]} records @param {Iterable<string>} ids @returns {string[]} those without a disconnect */
function open(records, ids) {
  const ends = byClient(records, 'disconnected')
  return [...ids].filter(id => !ends.has(id))
}

t.test('another node logs the disconnects of a dead one', { skip }, async t => {
  const redis = await startRedis(t)
  const [a, b] = await Promise.all([node(t, redis), node(t, redis)])
  const churn = new Churn(t, [a.ws, b.ws], CLIENTS)
  await until(() => churn.size > 5 * CLIENTS)
  // What the stream had before: a dead node cannot write the rest.
  const before = byClient(await streamOf(redis), 'connected')
  await killNode(a)
  const ofA = [...(churn.book.get(a.ws) ?? [])].filter(id => before.has(id))
  t.ok(ofA.length > CLIENTS)
  await until(async () => open(await streamOf(redis), ofA).length === 0)

  await churn.stop()
  await b.stop()
  const records = await streamOf(redis)
  const ofB = churn.book.get(b.ws) ?? new Set()
  // If a node is blocked for 3 s, the same id may occur twice.
  t.same(faultsOf(records, [...ofA, ...ofB], { once: false }).slice(0, 5), [])
  const uid = before.get(ofA[0])?.[0].node
  const taken = [...byClient(records, 'disconnected').values()].flat()
  const died = taken.filter(({ reason }) => reason === 'node died')
  t.ok(died.length > 0, `${died.length} disconnects of the dead node`)
  t.ok(died.some(({ node, logged_by }) => node === uid && logged_by !== uid))
  t.equal(await redis.call('EXISTS', `halley.lifecycle.journal.${uid}`), 0, 'nothing of the node remains')
})

t.test('without another node, the next one to start logs the disconnects', { skip }, async t => {
  const redis = await startRedis(t)
  const a = await node(t, redis)
  const churn = new Churn(t, [a.ws], CLIENTS)
  await until(() => churn.size > 2 * CLIENTS)
  const before = byClient(await streamOf(redis), 'connected')
  await killNode(a)
  await churn.stop()
  t.ok(open(await streamOf(redis), before.keys()).length > 0)
  const b = await node(t, redis)
  await until(async () => open(await streamOf(redis), before.keys()).length === 0)
  await b.stop()
  t.same(faultsOf(await streamOf(redis), before.keys(), { once: false }), [])
})

t.test('an outage of Redis makes no node count as dead and loses no event', { skip }, async t => {
  const redis = await startRedis(t, { aof: 'always' })
  const [a, b] = await Promise.all([node(t, redis), node(t, redis)])
  const churn = new Churn(t, [a.ws, b.ws], CLIENTS)
  await until(() => churn.size > 2 * CLIENTS)
  await redis.kill()
  const then = churn.size
  await until(() => churn.size > then + 2 * CLIENTS)
  await redis.start()
  await until(() => churn.size > then + 4 * CLIENTS)
  await churn.stop()
  await a.stop()
  await b.stop()
  const records = await streamOf(redis)
  const known = [...churn.book.values()].flatMap(ids => [...ids])
  t.same(faultsOf(records, known, { once: false }).slice(0, 5), [])
  const { length } = records.filter(({ reason }) => reason === 'node died')
  if (length > 0) t.comment(`${length} disconnects of a node that stood still`)
})
