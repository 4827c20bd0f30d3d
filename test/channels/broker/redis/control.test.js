// Who is there, and surveys over all nodes.

import t from 'tap'
import { errors } from '../../../../src/base/errors.js'
import { needsRedis, startRedis } from '../../../kit/servers/redis.js'
import { until } from '../../../kit/wait.js'
import { control } from '../conformance/control.js'
import { failure, Peer, upTo } from '../conformance/peer.js'
import { startControlRig } from './control-rig.js'

needsRedis(t)

const LONG = 60_000
const server = await startRedis(t)

control((name, count, body) => {
  // Counts are not kept by these parts.
  if (name === 'the connections of a user are counted over all workers') return
  t.test(name, async t => {
    const rig = await startControlRig(t, server)
    const peers = []
    for (let i = 0; i < count; i++) peers.push(await Peer.join(rig))
    await body(t, rig, ...peers)
  })
})

/**
 * Three workers, each of which answers a survey with its number and counts how often it is asked.
 * @param {any} t
 * @param {object} [options] of the rig
 */
async function three(t, options) {
  const rig = await startControlRig(t, server, options)
  const asked = [0, 0, 0]
  const start = (/** @type {number} */ i, node = `node-${i}`, worker = 0) => {
    const survey = () => {
      asked[i] = (asked[i] ?? 0) + 1
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
  return { rig, workers, asked, start, ask }
}

const places = () => server.call('HKEYS', 'halley.registry.places')
/** What outlives the registry. */
const LASTING = ['halley.branch.current', 'halley.orders.head']
const traces = async () => (await server.call('KEYS', '*')).filter(key => !LASTING.includes(key))

t.test('everybody is asked from the moment on in which they have joined', async t => {
  const { start, ask } = await three(t)
  t.same(await ask(0), [0, 1, 2])
  await start(3)
  t.same(await ask(1), [0, 1, 2, 3])
  await start(4, 'node-0', 1)
  t.same(await ask(2), [0, 1, 2, 3, 4])
})

t.test('a worker that says that it ends is not asked any more, and leaves no trace', async t => {
  const { workers, ask } = await three(t, { lease: LONG })
  await workers[2].control.close()
  t.same(await ask(0), [0, 1])
  t.same((await places()).sort(), ['0 node-0', '0 node-1'])
  await Promise.all([workers[0].control.close(), workers[1].control.close()])
  t.same(await traces(), [])
})

t.test(
  'a worker that dies without a word: surveys fail or go without it, and work again within its lease',
  async t => {
    const { workers, asked, ask } = await three(t, { lease: 3000 })
    workers[2].die()
    const first = ask(0).catch(error => error)
    const answers = await until(() => ask(1).catch(() => null))
    t.same(answers, [0, 1])
    t.same(await ask(0), [0, 1])
    const result = await first
    if (result !== errors.internal) t.same(result, [0, 1])
    t.equal(asked[2], 0)
  },
)

t.test('a survey that is under way when a lease runs out goes on without that worker', async t => {
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

t.test('when all workers have died, the registry goes with the last lease', async t => {
  const { workers } = await three(t)
  t.equal((await places()).length, 3)
  for (const worker of workers) worker.die()
  await until(async () => (await traces()).length === 0)
})

t.test('a worker of the own node that has ended is known to have by its siblings', async t => {
  const { workers, start, ask } = await three(t, { lease: LONG })
  const siblings = [await start(3, 'node-2', 1), await start(4, 'node-2', 2)]
  workers[2].die()
  const surveyed = ask(0)
  for (const { control } of siblings) control.workerGone(0)
  t.same(await surveyed, [0, 1, 3, 4])
  for (const { control } of siblings) control.workerGone(0)
  t.same(await ask(1), [0, 1, 3, 4])
})

t.test('who hears late that a worker has ended does not end the next one in its place', async t => {
  const { rig, workers, start, ask } = await three(t, { lease: 3000 })
  const sibling = await start(3, 'node-2', 1)
  workers[2].die()
  await start(4, 'node-2', 0)
  sibling.control.workerGone(0)
  await sibling.survey('who', {})
  t.same(await ask(0), [0, 1, 3, 4])
  t.same(
    rig.log.lines.filter(({ level }) => level === 'error'),
    [],
  )
})

t.test('the next worker in a place is asked instead of the one before', async t => {
  const { rig, workers, start, ask } = await three(t, { lease: LONG })
  workers[2].deaf = true
  const surveyed = ask(0)
  await start(3, 'node-2')
  t.same(await surveyed, [0, 1])
  t.same(await ask(1), [0, 1, 3])
  // The one before lives, and wants its place back.
  workers[2].deaf = false
  workers[2].goAway()
  await until(() => !workers[2].control.joined)
  workers[2].comeBack()
  await until(() => rig.log.lines.some(({ msg }) => msg?.includes('has the same node id')))
  t.same(await ask(1), [0, 1, 3])
  t.equal(await failure(workers[2].survey('who', {})), errors.internal)
})

t.test('a worker whose connection is away for a moment is waited for, and asked once', async t => {
  const { workers, asked, ask } = await three(t, { lease: LONG })
  workers[1].goAway()
  await until(() => !workers[1].control.joined)
  const surveyed = Promise.all([ask(0), ask(2), ask(0)])
  t.equal(await failure(ask(1)), errors.internal, 'without Redis nobody can be asked')
  workers[1].comeBack()
  t.same(await surveyed, [
    [0, 1, 2],
    [0, 1, 2],
    [0, 1, 2],
  ])
  t.same(asked, [3, 3, 3])
})

t.test('who asks and loses Redis is told so at once', async t => {
  const { workers, ask } = await three(t, { lease: LONG })
  workers[2].deaf = true
  const surveyed = failure(ask(0))
  workers[0].goAway()
  t.equal(await surveyed, errors.internal)
  workers[2].deaf = false
  workers[0].comeBack()
  await workers[0].known()
  t.same(await ask(0), [0, 1, 2])
})

t.test('a worker that does not answer makes a survey fail after five ticks', async t => {
  const { workers, ask } = await three(t)
  workers[1].deaf = true
  t.equal(await failure(ask(0)), errors.internal)
  workers[1].deaf = false
  t.same(await ask(0), [0, 1, 2])
})

t.test('a worker that stood still for longer than its lease is there again', async t => {
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

t.test(
  'no survey leaves out a worker that lives, while connections are cut and Redis begins anew',
  async t => {
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
  },
)

t.test('answers of many megabytes arrive, and do not stay in Redis', async t => {
  const rig = await startControlRig(t, server, { lease: LONG })
  const peers = [await Peer.join(rig), await Peer.join(rig), await Peer.join(rig)]
  const text = 'ключ 🎈'.repeat(900_000)
  for (const [i, peer] of peers.entries()) peer.survey = () => ({ i, text })
  const answers = await peers[0].broker.control.survey('large', {})
  t.same(answers.map(({ i }) => i).sort(), [0, 1, 2])
  t.ok(answers.every(answer => answer.text === text))
  await until(async () => (await server.call('KEYS', 'halley.answer.*')).length === 0)
  t.same(
    rig.log.lines.filter(({ level }) => level === 'warn'),
    [],
    'no connection is lost over it',
  )
})
