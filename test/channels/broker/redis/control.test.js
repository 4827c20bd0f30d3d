// The registry of workers, and surveys of all nodes.

import t from 'tap'
import { errors } from '../../../../src/base/errors.js'
import { needsRedis, startRedis } from '../../../kit/servers/redis.js'
import { until } from '../../../kit/wait.js'
import { control } from '../conformance/control.js'
import { failure, Peer, upTo } from '../conformance/peer.js'
import { conform } from '../conformance.js'
import { startControlRig } from './control-rig.js'

needsRedis(t)

const LONG = 60_000
const server = await startRedis(t)

// These parts keep no counts.
const skip = ['the connections of a user are counted across all workers']
conform(t, t => startControlRig(t, server), [control], skip)

/**
 * Three workers, each of which answers a survey with its number and counts the surveys.
 * @param {any} t @param {object} [options] of the rig
 */
async function three(t, options) {
  const rig = await startControlRig(t, server, options)
  const surveys = [0, 0, 0]
  const start = (/** @type {number} */ i, node = `node-${i}`, worker = 0) => {
    const survey = () => {
      surveys[i] = (surveys[i] ?? 0) + 1
      return i
    }
    return rig.start(
      /** @type {any} */ ({ survey, called: (request, answer) => answer(request) }),
      node,
      worker,
    )
  }
  const workers = [await start(0), await start(1), await start(2)]
  const ask = async (i = 0) => (await workers[i].survey('who', {})).sort((x, y) => x - y)
  return { rig, workers, surveys, start, ask }
}

const places = () => server.call('HKEYS', 'halley.registry.places')
/** Keys that outlive the registry. */
const LASTING = ['halley.branch.current', 'halley.orders.head']
const traces = async () => (await server.call('KEYS', '*')).filter(key => !LASTING.includes(key))

t.test('surveys query all joined workers', async t => {
  const { start, ask } = await three(t)
  t.same(await ask(0), [0, 1, 2])
  await start(3)
  t.same(await ask(1), [0, 1, 2, 3])
  await start(4, 'node-0', 1)
  t.same(await ask(2), [0, 1, 2, 3, 4])
})

t.test('a worker that leaves is removed from the registry', async t => {
  const { workers, ask } = await three(t, { lease: LONG })
  await workers[2].control.close()
  t.same(await ask(0), [0, 1])
  t.same((await places()).sort(), ['0 node-0', '0 node-1'])
  await Promise.all([workers[0].control.close(), workers[1].control.close()])
  t.same(await traces(), [])
})

t.test('surveys work again within the lease of a dead worker', async t => {
  const { workers, surveys, ask } = await three(t, { lease: 3000 })
  workers[2].die()
  const first = ask(0).catch(error => error)
  const answers = await until(() => ask(1).catch(() => null))
  t.same(answers, [0, 1])
  t.same(await ask(0), [0, 1])
  const result = await first
  if (result !== errors.internal) t.same(result, [0, 1])
  t.equal(surveys[2], 0)
})

t.test('a survey continues without a worker whose lease expires', async t => {
  const { workers, ask } = await three(t, { lease: 3000 })
  workers[2].die()
  const left = async () => {
    const [seconds, micros] = await server.call('TIME')
    const end = await server.call('ZSCORE', 'halley.registry.leases', '0 node-2')
    return end - (seconds * 1000 + micros / 1000)
  }
  await until(async () => (await left()) < 400)
  t.same(await ask(0), [0, 1])
})

t.test('the registry expires with the last lease', async t => {
  const { workers } = await three(t)
  t.equal((await places()).length, 3)
  for (const worker of workers) worker.die()
  await until(async () => (await traces()).length === 0)
})

t.test('workers of the same node remove an exited one', async t => {
  const { workers, start, ask } = await three(t, { lease: LONG })
  const siblings = [await start(3, 'node-2', 1), await start(4, 'node-2', 2)]
  workers[2].die()
  const surveyed = ask(0)
  for (const { control } of siblings) control.workerGone(0)
  t.same(await surveyed, [0, 1, 3, 4])
  for (const { control } of siblings) control.workerGone(0)
  t.same(await ask(1), [0, 1, 3, 4])
})

t.test('a late notice does not remove the replacement', async t => {
  const { rig, workers, start, ask } = await three(t, { lease: 3000 })
  const sibling = await start(3, 'node-2', 1)
  workers[2].die()
  await start(4, 'node-2', 0)
  sibling.control.workerGone(0)
  await sibling.survey('who', {})
  t.same(await ask(0), [0, 1, 3, 4])
  const failures = rig.log.lines.filter(({ level }) => level === 'error')
  t.same(failures, [])
})

t.test('the replacement responds instead of the exited worker', async t => {
  const { rig, workers, start, ask } = await three(t, { lease: LONG })
  workers[2].deaf = true
  const surveyed = ask(0)
  await start(3, 'node-2')
  t.same(await surveyed, [0, 1])
  t.same(await ask(1), [0, 1, 3])
  // The previous worker is alive and registers again.
  workers[2].deaf = false
  await workers[2].disconnect()
  workers[2].restore()
  await until(() => rig.log.lines.some(({ msg }) => msg?.includes('has the same node id')))
  t.same(await ask(1), [0, 1, 3])
  t.equal(await failure(workers[2].survey('who', {})), errors.internal)
})

t.test('a survey waits for a disconnected worker and queries it once', async t => {
  const { workers, surveys, ask } = await three(t, { lease: LONG })
  await workers[1].disconnect()
  const surveyed = Promise.all([ask(0), ask(2), ask(0)])
  t.equal(await failure(ask(1)), errors.internal, 'without Redis no survey is possible')
  workers[1].restore()
  t.same(await surveyed, [
    [0, 1, 2],
    [0, 1, 2],
    [0, 1, 2],
  ])
  t.same(surveys, [3, 3, 3])
})

t.test('a survey fails immediately when its caller loses its connection to Redis', async t => {
  const { workers, ask } = await three(t, { lease: LONG })
  workers[2].deaf = true
  const surveyed = failure(ask(0))
  workers[0].cut()
  t.equal(await surveyed, errors.internal)
  workers[2].deaf = false
  await workers[0].reconnect()
  t.same(await ask(0), [0, 1, 2])
})

t.test('a survey without a response fails after five ticks', async t => {
  const { workers, ask } = await three(t)
  workers[1].deaf = true
  t.equal(await failure(ask(0)), errors.internal)
  workers[1].deaf = false
  t.same(await ask(0), [0, 1, 2])
})

t.test('a worker blocked for longer than its lease joins again', async t => {
  const { workers, ask } = await three(t)
  workers[1].sleep()
  await until(async () => (await places()).length === 2)
  t.same(await ask(0), [0, 2])
  workers[1].wake()
  t.equal(await failure(ask(1)), errors.internal, 'what it asks before it is known again')
  await until(async () => (await places()).length === 3)
  t.same(await ask(0), [0, 1, 2])
  t.same(await ask(1), [0, 1, 2])
})

t.test('surveys are complete through outages and restarts of Redis', async t => {
  const { workers, ask } = await three(t, { lease: 6000 })
  let ends = false
  let complete = 0
  const wrong = []
  const surveying = upTo(3, 0).map(async i => {
    while (!ends) {
      const answers = await ask(i).catch(error => error)
      if (answers === errors.internal) await new Promise(resolve => setTimeout(resolve, 5))
      else {
        if (answers.join() === '0,1,2') complete++
        else wrong.push(answers)
      }
    }
  })
  const back = () => Promise.all(workers.map(worker => until(() => worker.control.joined)))
  await server.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
  await back()
  await server.restart()
  await back()
  await server.call('FLUSHALL')
  const before = complete
  await until(() => complete > before + 10)
  ends = true
  await Promise.all(surveying)
  t.same(wrong, [])
})

t.test('large results arrive and are then removed from Redis', async t => {
  const rig = await startControlRig(t, server, { lease: LONG })
  const peers = [await Peer.join(rig), await Peer.join(rig), await Peer.join(rig)]
  const text = 'ключ 🎈'.repeat(900_000)
  for (const [i, peer] of peers.entries()) peer.survey = () => ({ i, text })
  const answers = await peers[0].broker.control.survey('large', {})
  t.same(answers.map(({ i }) => i).sort(), [0, 1, 2])
  t.ok(answers.every(answer => answer.text === text))
  await until(async () => (await server.call('KEYS', 'halley.answer.*')).length === 0)
  const warnings = rig.log.lines.filter(({ level }) => level === 'warn')
  t.same(warnings, [], 'no connection is lost')
})
