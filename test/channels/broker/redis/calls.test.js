// Calls between workers of different nodes.

import t from 'tap'
import { needsRedis, startRedis } from '../../../kit/servers/redis.js'
import { until } from '../../../kit/wait.js'
import { calls } from '../conformance/calls.js'
import { Peer, upTo } from '../conformance/peer.js'
import { conform } from '../conformance.js'
import { INTERNAL, NOT_FOUND, outcome, startControlRig } from './control-rig.js'

needsRedis(t)

const server = await startRedis(t)

conform(
  t,
  t => startControlRig(t, server),
  [calls],
  // These tests have one node, or a worker whose death is known immediately.
  ['an empty node id means this node', 'a call during a replacement gets one result'],
)

/** Two workers of two nodes. @param {any} t @param {object} [options] of the rig */
async function two(t, options) {
  const rig = await startControlRig(t, server, options)
  const [a, b] = [await Peer.join(rig), await Peer.join(rig)]
  /** @type {[any, any]} */
  const workers = [a.broker, b.broker]
  return { rig, a, b, workers }
}

/** Responds to each request with the request, and records it. */
function echo(peer, prefix = '') {
  const requests = []
  peer.called = (request, answer) => {
    requests.push(String(request))
    answer(`${prefix}${request}`)
  }
  return requests
}

/** Delays its responses. */
function hold(peer) {
  const held = []
  peer.called = (request, answer) => held.push({ text: String(request), answer })
  return held
}

t.test('calls to a dead worker fail within its lease', async t => {
  const { a, b, workers } = await two(t)
  const held = hold(b)
  const pending = outcome(workers[0], b, 'x')
  await until(() => held.length === 1)
  workers[1].die()
  const late = await outcome(workers[0], b, 'y')
  t.ok(late === INTERNAL || late === NOT_FOUND, 'it counts as unreachable while it may be alive')
  t.equal(await pending, NOT_FOUND)
  t.equal(await outcome(workers[0], b, 'z'), NOT_FOUND)
  echo(a)
  t.equal(await outcome(workers[0], a, 'still here'), 'still here')
})

t.test('calls to a worker that leaves fail immediately', async t => {
  const { b, workers } = await two(t, { lease: 60_000 })
  const held = hold(b)
  const pending = outcome(workers[0], b, 'x')
  await until(() => held.length === 1)
  await workers[1].control.close()
  t.equal(await pending, NOT_FOUND)
  t.equal(await outcome(workers[0], b, 'y'), NOT_FOUND)
})

t.test('calls to a replaced worker fail; its replacement gets new ones', async t => {
  const { rig, b, workers } = await two(t, { lease: 60_000 })
  const held = hold(b)
  const pending = upTo(10).map(n => outcome(workers[0], b, `${n}`))
  await until(() => held.length === 10)
  workers[1].die()
  t.equal(await outcome(workers[0], b, 'x'), INTERNAL, 'its exit is not known yet')
  const next = await Peer.join(rig, b.place.worker)
  const outcomes = await Promise.all(pending)
  t.same(
    outcomes,
    upTo(10).map(() => NOT_FOUND),
  )
  echo(next, 'next ')
  t.equal(await outcome(workers[0], b, 'x'), 'next x')
})

t.test('a call during a replacement gets the right result or an error', async t => {
  const rig = await startControlRig(t, server, { lease: 60_000 })
  /** @type {any} */
  const { broker } = await Peer.join(rig)
  const place = { node: 'other', worker: 3 }
  const start = (/** @type {number} */ round) => {
    const called = (request, answer) => answer(`${round}:${request}`)
    return rig.start(/** @type {any} */ ({ survey: () => null, called }), place.node, place.worker)
  }
  let worker = await start(0)
  for (let round = 1; round <= 3; round++) {
    const results = []
    const made = upTo(300).map(async n => {
      for (let i = 0; i < n % 30; i++) await new Promise(setImmediate)
      results.push([n, await outcome(broker, { place }, `${n}`)])
    })
    await new Promise(setImmediate)
    worker.die()
    worker = await start(round)
    await Promise.all(made)
    t.equal(results.length, 300)
    const outcomes = n => [NOT_FOUND, INTERNAL, ...upTo(round + 1, 0).map(made => `${made}:${n}`)]
    const wrong = results.filter(([n, result]) => !outcomes(n).includes(result))
    t.same(wrong, [])
    await until(async () => (await outcome(broker, { place }, 'x')) === `${round}:x`)
  }
})

t.test('a disconnected worker is unreachable, but not removed', async t => {
  const { b, workers } = await two(t, { lease: 60_000 })
  echo(b)
  await workers[1].disconnect()
  t.equal(await outcome(workers[0], b, 'x'), INTERNAL)
  await workers[1].reconnect()
  t.equal(await outcome(workers[0], b, 'y'), 'y')
})

t.test('a result returned during an outage arrives after it', async t => {
  const { b, workers } = await two(t, { lease: 60_000 })
  const held = hold(b)
  const pending = upTo(5).map(n => outcome(workers[0], b, `${n}`))
  await until(() => held.length === 5)
  await workers[1].disconnect()
  for (const { text, answer } of held.slice(0, 3)) answer(`answer ${text}`)
  workers[1].restore()
  t.same(await Promise.all(pending.slice(0, 3)), ['answer 1', 'answer 2', 'answer 3'])
  for (const { text, answer } of held.slice(3)) answer(`answer ${text}`)
  const late = await Promise.all(pending.slice(3))
  t.same(late, ['answer 4', 'answer 5'], 'earlier calls are still answered')
})

t.test('a call lost in transit fails when the worker reconnects', async t => {
  const { b, workers } = await two(t, { lease: 60_000 })
  const held = hold(b)
  const received = outcome(workers[0], b, 'received')
  await until(() => held.length === 1)
  workers[1].deaf = true
  const lost = upTo(3).map(n => outcome(workers[0], b, `lost ${n}`))
  await workers[1].disconnect()
  workers[1].deaf = false
  workers[1].restore()
  t.same(await Promise.all(lost), [INTERNAL, INTERNAL, INTERNAL])
  held[0].answer('answer')
  t.equal(await received, 'answer')
  t.equal(held.length, 1)
})

t.test('calls fail when their caller loses its connection to Redis', async t => {
  const { b, workers } = await two(t, { lease: 60_000 })
  const held = hold(b)
  const pending = outcome(workers[0], b, 'before')
  await until(() => held.length === 1)
  workers[0].cut()
  t.equal(await pending, INTERNAL)
  t.equal(await outcome(workers[0], b, 'away'), INTERNAL)
  await workers[0].reconnect()
  const again = outcome(workers[0], b, 'after')
  await until(() => held.length === 2)
  held[0].answer('to the first')
  held[1].answer('to the second')
  t.equal(await again, 'to the second')
})

t.test('live workers are found through outages and restarts of Redis', async t => {
  const { a, b, workers } = await two(t, { lease: 6000 })
  echo(a)
  echo(b)
  let ends = false
  const seen = new Map()
  const ask = async (from, to) => {
    for (let n = 0; !ends; n++) {
      const result = await outcome(from, to, `${n}`)
      const kind = result === `${n}` ? 'answered' : result
      seen.set(kind, (seen.get(kind) ?? 0) + 1)
      await new Promise(setImmediate)
    }
  }
  const asking = [ask(workers[0], b), ask(workers[1], a)]
  const back = () => Promise.all(workers.map(worker => until(() => worker.control.joined)))
  await server.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
  await back()
  await server.restart()
  await back()
  await server.call('FLUSHALL')
  const before = seen.get('answered') ?? 0
  await until(() => seen.get('answered') > before + 20)
  ends = true
  await Promise.all(asking)
  t.same([...seen.keys()].sort(), ['answered', INTERNAL].sort())
})
