// Calls between workers of different nodes.

import t from 'tap'
import { needsRedis, startRedis } from '../../../kit/servers/redis.js'
import { until } from '../../../kit/wait.js'
import { calls } from '../conformance/calls.js'
import { Peer, upTo } from '../conformance/peer.js'
import { INTERNAL, NOT_FOUND, outcome, startControlRig } from './control-rig.js'

needsRedis(t)

const server = await startRedis(t)

/** Those of the contract's tests that are about one node, or about a worker whose death is known at once. */
const NOT_HERE = ['an empty node is this one', 'calls made while a worker is replaced get one answer each']

calls((name, count, body) => {
  if (NOT_HERE.includes(name)) return
  t.test(name, async t => {
    const rig = await startControlRig(t, server)
    const peers = []
    for (let i = 0; i < count; i++) peers.push(await Peer.join(rig))
    await body(t, rig, ...peers)
  })
})

/**
 * Two workers of two nodes.
 * @param {any} t
 * @param {object} [options] of the rig
 */
async function two(t, options) {
  const rig = await startControlRig(t, server, options)
  const [a, b] = [await Peer.join(rig), await Peer.join(rig)]
  /** @type {[any, any]} */
  const workers = [a.broker, b.broker]
  return { rig, a, b, workers }
}

/** Answers each request with itself and keeps what it was asked. */
function echo(peer, prefix = '') {
  const asked = []
  peer.called = (request, answer) => {
    asked.push(String(request))
    answer(`${prefix}${request}`)
  }
  return asked
}

/** Answers nothing before it is told to. */
function hold(peer) {
  const held = []
  peer.called = (request, answer) => held.push({ text: String(request), answer })
  return held
}

t.test('a worker that dies without a word: what it was asked is not found within the lease', async t => {
  const { a, b, workers } = await two(t)
  const held = hold(b)
  const pending = outcome(workers[0], b, 'x')
  await until(() => held.length === 1)
  workers[1].die()
  const late = await outcome(workers[0], b, 'y')
  t.ok(late === INTERNAL || late === NOT_FOUND, 'as long as it may be alive, it is out of reach')
  t.equal(await pending, NOT_FOUND)
  t.equal(await outcome(workers[0], b, 'z'), NOT_FOUND)
  echo(a)
  t.equal(await outcome(workers[0], a, 'still here'), 'still here')
})

t.test('a worker that says that it ends: its callers know at once', async t => {
  const { b, workers } = await two(t, { lease: 60_000 })
  const held = hold(b)
  const pending = outcome(workers[0], b, 'x')
  await until(() => held.length === 1)
  await workers[1].control.close()
  t.equal(await pending, NOT_FOUND)
  t.equal(await outcome(workers[0], b, 'y'), NOT_FOUND)
})

t.test('the next worker in a place gets the calls; those to the one before are not found', async t => {
  const { rig, b, workers } = await two(t, { lease: 60_000 })
  const held = hold(b)
  const pending = upTo(10).map(n => outcome(workers[0], b, `${n}`))
  await until(() => held.length === 10)
  workers[1].die()
  t.equal(await outcome(workers[0], b, 'x'), INTERNAL, 'nobody knows of its death yet')
  const next = await Peer.join(rig, b.place.worker)
  t.same(
    await Promise.all(pending),
    upTo(10).map(() => NOT_FOUND),
  )
  echo(next, 'next ')
  t.equal(await outcome(workers[0], b, 'x'), 'next x')
})

t.test('calls made while a worker is replaced get one outcome each: the right answer, or none', async t => {
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
    t.same(
      results.filter(([n, result]) => !outcomes(n).includes(result)),
      [],
    )
    await until(async () => (await outcome(broker, { place }, 'x')) === `${round}:x`)
  }
})

t.test('a worker whose connection is away for a moment is out of reach, and not gone', async t => {
  const { b, workers } = await two(t, { lease: 60_000 })
  echo(b)
  workers[1].goAway()
  await until(() => !workers[1].control.joined)
  t.equal(await outcome(workers[0], b, 'x'), INTERNAL)
  workers[1].comeBack()
  await workers[1].known()
  t.equal(await outcome(workers[0], b, 'y'), 'y')
})

t.test('an answer that is given while Redis is out of reach arrives when it is back', async t => {
  const { b, workers } = await two(t, { lease: 60_000 })
  const held = hold(b)
  const pending = upTo(5).map(n => outcome(workers[0], b, `${n}`))
  await until(() => held.length === 5)
  workers[1].goAway()
  await until(() => !workers[1].control.joined)
  for (const { text, answer } of held.slice(0, 3)) answer(`answer ${text}`)
  workers[1].comeBack()
  t.same(await Promise.all(pending.slice(0, 3)), ['answer 1', 'answer 2', 'answer 3'])
  for (const { text, answer } of held.slice(3)) answer(`answer ${text}`)
  t.same(
    await Promise.all(pending.slice(3)),
    ['answer 4', 'answer 5'],
    'what it had been asked is not forgotten',
  )
})

t.test('a call that was lost on its way to a worker fails when the worker is back', async t => {
  const { b, workers } = await two(t, { lease: 60_000 })
  const held = hold(b)
  const received = outcome(workers[0], b, 'received')
  await until(() => held.length === 1)
  workers[1].deaf = true
  const lost = upTo(3).map(n => outcome(workers[0], b, `lost ${n}`))
  workers[1].goAway()
  await until(() => !workers[1].control.joined)
  workers[1].deaf = false
  workers[1].comeBack()
  t.same(await Promise.all(lost), [INTERNAL, INTERNAL, INTERNAL])
  held[0].answer('answer')
  t.equal(await received, 'answer')
  t.equal(held.length, 1)
})

t.test(
  'a caller that loses Redis is told so at once; answers to what it asked before go nowhere',
  async t => {
    const { b, workers } = await two(t, { lease: 60_000 })
    const held = hold(b)
    const pending = outcome(workers[0], b, 'before')
    await until(() => held.length === 1)
    workers[0].goAway()
    t.equal(await pending, INTERNAL)
    t.equal(await outcome(workers[0], b, 'away'), INTERNAL)
    workers[0].comeBack()
    await workers[0].known()
    const again = outcome(workers[0], b, 'after')
    await until(() => held.length === 2)
    held[0].answer('to the first')
    held[1].answer('to the second')
    t.equal(await again, 'to the second')
  },
)

t.test('no worker that lives is ever not found, while connections are cut and Redis begins anew', async t => {
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

t.test('a handler that fails is an error for the caller, and for nobody else', async t => {
  const { rig, b, workers } = await two(t)
  b.called = () => {
    throw new Error('on purpose')
  }
  t.equal(await outcome(workers[0], b, 'x'), INTERNAL)
  t.match(rig.log.lines, [{ level: 'error', msg: 'call failed' }])
  echo(b)
  t.equal(await outcome(workers[0], b, 'y'), 'y')
})
