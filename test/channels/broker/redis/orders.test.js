// Orders reach workers that were unreachable when the orders were given.

import t from 'tap'
import { errors } from '../../../../src/base/errors.js'
import { needsRedis, startRedis } from '../../../kit/servers/redis.js'
import { until } from '../../../kit/wait.js'
import { failure } from '../conformance/peer.js'
import { startControlRig } from './control-rig.js'

needsRedis(t)

const LONG = 60_000
const LEASE = 2500
const server = await startRedis(t)

/**
 * Three workers on nodes of their own, which write down their orders.
 * @param {any} t @param {object} [options] of the rig
 */
async function three(t, options = {}) {
  const rig = await startControlRig(t, server, { lease: LONG, ...options })
  /** @type {{op: string, params: any, before: number}[][]} */
  const executed = []
  const lost = []
  const current = []
  const start = (/** @type {number} */ i) => {
    executed[i] = []
    lost[i] = 0
    current[i] = []
    /** @type {any} */
    const events = {
      survey: (op, params, before) => {
        executed[i].push({ op, params, before })
        current[i].push(workers[i]?.control.current)
        return i
      },
      ordersLost: () => lost[i]++,
      called: (request, answer) => answer(request),
    }
    return rig.start(events, `node-${i}`, 0)
  }
  /** @type {import('./control-rig.js').Worker[]} */
  const workers = []
  for (const i of [0, 1, 2]) workers[i] = await start(i)
  const names = (/** @type {number} */ i) => executed[i].map(({ params }) => params)
  /** Worker 2 is disconnected, and counts as dead. */
  const away = async () => {
    await workers[2].disconnect()
    await server.call('HDEL', 'halley.registry.places', '0 node-2')
    await server.call('ZREM', 'halley.registry.leases', '0 node-2')
    await server.call('PUBLISH', 'halley.workers', `-${workers[2].uid}\n`)
  }
  /** The same, also by its own clock. */
  const awayForLong = async () => {
    workers[2].cut()
    await until(async () => (await server.call('HLEN', 'halley.registry.places')) === 2)
  }
  const back = async () => {
    await workers[2].reconnect()
  }
  return { rig, workers, executed, lost, current, names, away, awayForLong, back, start }
}

t.test('every worker executes each order once, in the same order', async t => {
  const { workers, executed, names } = await three(t)
  const answers = await Promise.all(Array.from({ length: 30 }, (_, n) => workers[n % 3].order('note', n)))
  for (const answer of answers) t.same(answer.sort(), [0, 1, 2])
  t.same([...new Set(executed.flat().map(({ before }) => before))], [Infinity], 'all as they are published')
  t.same(names(1), names(0))
  t.same(names(2), names(0))
  const sorted = names(0).toSorted((a, b) => a - b)
  t.same(
    sorted,
    Array.from({ length: 30 }, (_, n) => n),
  )
})

t.test('a worker executes missed orders before it counts as current', async t => {
  const { workers, executed, names, current, lost, away, back } = await three(t)
  t.same((await workers[0].order('note', 'with all')).sort(), [0, 1, 2])
  await away()
  const began = performance.now()
  t.same((await workers[0].order('note', 'first')).sort(), [0, 1])
  const between = performance.now()
  await new Promise(resolve => setTimeout(resolve, 300))
  t.same((await workers[1].order('note', 'second')).sort(), [0, 1])
  await back()
  t.same(names(2), ['with all', 'first', 'second'])
  t.same(current[2].slice(1), [false, false])
  const [, { before }] = executed[2]
  // The clocks of worker and Redis are compared over a connection of a busy machine.
  t.ok(before >= began && before <= between + 250, 'connections made after an order are not affected')
  t.equal(executed[0].at(-1)?.before, Infinity, 'without a disconnected worker all are affected')
  t.same((await workers[2].order('note', 'again')).sort(), [0, 1, 2])
  t.same(names(2), names(0))
  t.same(lost, [0, 0, 0])
})

t.test('an order waits for disconnected workers until their lease ends', async t => {
  const { workers, names } = await three(t)
  await workers[2].disconnect()
  const given = workers[0].order('note', 'x')
  await until(() => names(1).length === 1)
  workers[2].restore()
  t.same((await given).sort(), [0, 1, 2])
  t.same(names(2), ['x'])
})

t.test('thousands of missed orders are executed in order', async t => {
  const { workers, names, away, back } = await three(t)
  await away()
  const orders = Array.from({ length: 1200 }, (_, n) => n)
  await Promise.all(orders.map(n => workers[0].order('note', n)))
  await back()
  t.same(names(2), orders)
})

for (const [bound, keep, count] of /** @type {const} */ ([
  ['number', { life: LONG, entries: 2, bytes: 1e6 }, 3],
  ['bytes', { life: LONG, entries: 100, bytes: 60 }, 5],
  ['age', { life: 1000, entries: 100, bytes: 1e6 }, 1],
]))
  t.test(`missed orders beyond the limit are lost (${bound})`, async t => {
    const { workers, names, lost, away, awayForLong, back } = await three(t, {
      keep,
      lease: bound === 'age' ? LEASE : LONG,
    })
    await workers[0].order('note', 'with all')
    await (bound === 'age' ? awayForLong() : away())
    for (let n = 0; n < count; n++) await workers[0].order('note', n)
    if (bound === 'age') await until(async () => (await server.call('EXISTS', 'halley.orders.log')) === 0)
    t.ok((await server.call('XLEN', 'halley.orders.log')) < count)
    await back()
    t.same(names(2), ['with all'])
    t.same(lost, [0, 0, 1])
    t.same((await workers[0].order('note', 'new')).sort(), [0, 1, 2])
    t.same(names(2), ['with all', 'new'])
  })

t.test('the log is bounded but keeps at least the newest order', async t => {
  const { workers, lost } = await three(t, { keep: { life: LONG, entries: 50, bytes: 3000 } })
  for (let n = 0; n < 120; n++) await workers[n % 3].order('note', n)
  t.equal(await server.call('XLEN', 'halley.orders.log'), 50)
  const large = 'x'.repeat(1000)
  for (let n = 0; n < 5; n++) await workers[0].order('note', large)
  t.equal(await server.call('XLEN', 'halley.orders.log'), 2)
  await workers[0].order('note', large.repeat(5))
  t.equal(await server.call('XLEN', 'halley.orders.log'), 1)
  t.ok((await server.call('PTTL', 'halley.orders.log')) > 0)
  t.same(lost, [0, 0, 0])
})

t.test('a long outage without orders loses no order', async t => {
  const { workers, lost, away, back } = await three(t, { keep: { life: 60_000, entries: 1, bytes: 1e6 } })
  await workers[0].order('note', 1)
  await away()
  await back()
  t.same(lost, [0, 0, 0])
})

t.test('if Redis loses its data, only disconnected workers lose orders', async t => {
  const { workers, names, lost, awayForLong, back } = await three(t, { lease: LEASE })
  await workers[0].order('note', 1)
  await server.call('DEL', 'halley.orders.log', 'halley.orders.head')
  t.same((await workers[0].order('note', 2)).sort(), [0, 1, 2])
  await server.call('FLUSHALL')
  await until(async () => (await server.call('HLEN', 'halley.registry.places')) === 3)
  t.same((await workers[1].order('note', 3)).sort(), [0, 1, 2])
  t.same(lost, [0, 0, 0])
  t.same(names(2), [1, 2, 3])
  await awayForLong()
  await workers[0].order('note', 4)
  await server.call('DEL', 'halley.orders.log', 'halley.orders.head')
  await workers[0].order('note', 5)
  await back()
  t.same(names(2), [1, 2, 3])
  t.same(lost, [0, 0, 1])
})

t.test('a worker blocked for longer than its lease is not current', async t => {
  const { workers, names } = await three(t, { lease: LEASE })
  workers[2].sleep()
  await until(async () => (await server.call('HLEN', 'halley.registry.places')) === 2)
  t.same((await workers[0].order('note', 'x')).sort(), [0, 1])
  workers[2].control.tick()
  t.equal(workers[2].stale, 1)
  t.notOk(workers[2].control.current)
  workers[2].wake()
  await workers[2].known()
  t.same(names(2), ['x'])
  t.same((await workers[0].order('note', 'y')).sort(), [0, 1, 2])
})

t.test('a starting worker executes orders made since its start', async t => {
  const { rig, workers, names, executed, start } = await three(t)
  await workers[0].order('note', 'earlier')
  server.stop()
  const starts = start(3)
  const orders = [workers[0], workers[1]].map(worker => worker.order('note', 'meanwhile').catch(() => {}))
  await new Promise(resolve => setTimeout(resolve, 50))
  server.cont()
  workers[3] = await starts
  await Promise.all(orders)
  t.ok(names(3).every(name => name === 'meanwhile'))
  t.ok(executed[3].length <= 2)
  const failures = rig.log.lines.filter(({ level }) => level === 'error')
  t.same(failures, [])
})

t.test('an order refused by Redis fails', async t => {
  const { workers, names } = await three(t)
  await server.call('CONFIG', 'SET', 'maxmemory', '1')
  t.equal(await failure(workers[0].order('note', 1)), errors.internal)
  await server.call('CONFIG', 'SET', 'maxmemory', '0')
  await workers[0].disconnect()
  t.equal(await failure(workers[0].order('note', 2)), errors.internal)
  t.equal(await failure(workers[0].order('note', 2, { at: 1, late: true })), errors.internal)
  t.same(names(1), [])
})

t.test(
  'a claim takes effect in the sequence of orders, a late one at the time of its connection',
  async t => {
    const { workers, executed } = await three(t)
    const claim = { claim: 'client' }
    const ago = (/** @type {number} */ ms) => performance.now() - ms
    const times = []
    for (const [at, late] of /** @type {const} */ ([
      [ago(5000), true],
      [ago(5000), false],
      [ago(0), false],
      [ago(0), false],
    ]))
      times.push(...(await workers[0].order('note', claim, { at, late })))
    await until(() => executed.every(({ length }) => length === times.length))
    for (const own of executed)
      t.same(
        own.map(({ params }) => params),
        times.map(time => ({ ...claim, time })),
        'all workers execute it with the same time',
      )
    const now = Number((await server.call('TIME'))[0]) * 1000
    for (const time of times.slice(0, 2)) t.ok(time < now - 2500 && time > now - 10_000, `${time} ${now}`)
    t.ok(times[2] > times[1] + 2500)
    t.ok(times[3] > times[2])
    for (const own of executed)
      t.ok(own.slice(0, 2).every(({ before }) => Math.abs(before - ago(5000)) < 2500))
    for (const own of executed) t.ok(own.slice(2).every(({ before }) => before === Infinity))
  },
)
