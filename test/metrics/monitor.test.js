import t from 'tap'
import { TickHistogram } from '../../src/metrics/tick-histogram.js'
import { pause, until } from '../kit/wait.js'
import { mockSnapshots } from './mock.js'
import { monitorRig, sampleOf } from './monitor-rig.js'

/** @typedef {import('../../src/metrics/schema.js').GatewayEvent} GatewayEvent */

/** @param {{events: GatewayEvent[]}} of */
const kinds = ({ events }) => events.map(({ kind }) => kind)

t.test('a snapshot has the last sample of every worker, and the totals', async t => {
  const { monitor, next } = monitorRig({ channels: () => 5 })
  monitor.addSample(0, sampleOf(0, { counts: { accepts: 3 } }))
  monitor.addSample(1, sampleOf(1, { counts: { accepts: 4, closes: { 1000: 1 } } }))
  const snapshot = next()
  t.match(snapshot, { version: 1, seq: 1, interval: 1000, csv: null })
  for (const [index, worker] of snapshot.workers.entries())
    t.match(worker, { index, state: 'up', sample: { pid: 100 + index } })
  t.match(snapshot.totals, { workers: 2, channels: 5, counts: { accepts: 7, closes: { 1000: 1 } } })
  t.equal(monitor.latest, snapshot)
  t.equal(next().seq, 2)
})

t.test('counts are only in the next snapshot', async t => {
  const { monitor, next } = monitorRig()
  monitor.addSample(0, sampleOf(0, { counts: { accepts: 3 } }))
  t.equal(next().totals.counts.accepts, 3)
  const second = next()
  t.equal(second.totals.counts.accepts, 0)
  t.equal(second.counters.accepts, 3)
  t.equal(second.workers[0].sample?.counts.accepts, 3, 'its last sample is kept')
})

t.test('two samples between two snapshots are merged', async t => {
  const { monitor, next } = monitorRig()
  const ticks = new TickHistogram()
  ticks.record(900)
  const late = sampleOf(0, { counts: { accepts: 3 } })
  late.loop.ticks = ticks.toTicks()
  monitor.addSample(0, late)
  monitor.addSample(0, sampleOf(0, { counts: { accepts: 4 } }))
  const { workers, totals } = next()
  t.equal(totals.counts.accepts, 7)
  t.equal(workers[0].sample?.counts.accepts, 7)
  t.equal(workers[0].sample?.loop.ticks.max, 900)
})

t.test('counters never decrease, whichever workers die', async t => {
  const { monitor, next } = monitorRig()
  monitor.addSample(0, sampleOf(0, { counts: { accepts: 10, closes: { 1000: 2 } } }))
  const first = next()
  t.equal(first.counters.accepts, 10)
  monitor.addSample(0, sampleOf(0, { counts: { accepts: 5, closes: { 1006: 1 } } }))
  monitor.workerState(0, 'down')
  const dead = next()
  t.equal(dead.totals.counts.accepts, 5, 'of its last sample, which was in no snapshot')
  t.equal(dead.counters.accepts, 15)
  t.match(dead.workers[0], { state: 'down', sample: null, deaths: 1 })
  monitor.workerState(0, 'starting')
  t.match(next().workers[0], { state: 'starting', sample: null, deaths: 1, age: 0 })
  monitor.workerState(0, 'up')
  monitor.addSample(0, sampleOf(0, { counts: { accepts: 1 } }))
  const back = next()
  t.match(back.workers[0], { state: 'up', deaths: 1 })
  t.match(back.counters, { accepts: 16, closes: { 1000: 2, 1006: 1 } })
  t.same(first.counters.accepts, 10, 'an earlier snapshot does not change')
  t.equal(back.lifetimes.workers.length, 2)
})

t.test('a sample that arrives after the exit of its worker is only counted', async t => {
  const { monitor, next } = monitorRig()
  monitor.addSample(0, sampleOf(0))
  monitor.workerState(1, 'down')
  monitor.addSample(1, sampleOf(1, { counts: { accepts: 2 } }))
  const { workers, totals } = next()
  t.match(workers[1], { state: 'down', sample: null })
  t.match(totals, { workers: 1, counts: { accepts: 2 } })
})

t.test('a requested restart is not a death', async t => {
  const { monitor, next } = monitorRig()
  monitor.workerState(0, 'down', true)
  t.match(next().workers[0], { state: 'down', deaths: 0 })
})

t.test('a hanging worker is reported once, within two seconds', async t => {
  const { monitor, pass, next } = monitorRig()
  for (const index of [0, 1]) monitor.addSample(index, sampleOf(index))
  pass(150)
  t.equal(next(0).workers[0].age, 150)
  pass(850)
  monitor.addSample(1, sampleOf(1))
  const second = next(150)
  t.match(second.workers[0], { state: 'up', age: 1150 }, 'one late sample')
  pass(850)
  monitor.addSample(1, sampleOf(1))
  const third = next(150)
  t.match(third.workers[0], { state: 'silent', age: 2150 })
  t.ok(third.workers[0].sample, 'the last one')
  t.equal(third.totals.workers, 1)
  t.match(third.events, [{ kind: 'worker_silent', level: 'warn', worker: 0 }])
  monitor.addSample(1, sampleOf(1))
  t.same(kinds(next()), [])
  monitor.addSample(0, sampleOf(0))
  const back = next()
  t.equal(back.workers[0].state, 'up')
  t.match(back.events, [{ kind: 'worker_silent', level: 'info', worker: 0 }])
})

t.test('after the primary itself was stopped, no worker is reported as silent', async t => {
  const { monitor, next } = monitorRig({ workers: 1 })
  monitor.addSample(0, sampleOf(0))
  next()
  t.same(kinds(next(40_000)), [])
  monitor.addSample(0, sampleOf(0))
  t.same(kinds(next()), [])
  t.same(kinds(next()), ['worker_silent'])
})

t.test('a worker that never sends a sample is reported', async t => {
  const { monitor, next } = monitorRig({ workers: 1, up: false })
  t.equal(next(60_000).workers[0].state, 'starting')
  monitor.workerState(0, 'up')
  t.equal(next().workers[0].state, 'starting', 'until its first sample is here')
  next()
  t.match(next(1001).workers[0], { state: 'silent', sample: null })
})

t.test('slow clients and full listen queues are events', async t => {
  const { monitor, machine, next } = monitorRig()
  monitor.addSample(0, sampleOf(0, { counts: { closes: { 3008: 1 } } }))
  t.match(next(0).events, [{ kind: 'slow_clients', worker: 0, text: '1 slow client disconnected' }])
  monitor.addSample(0, sampleOf(0, { counts: { closes: { 3008: 2 } } }))
  monitor.addSample(1, sampleOf(1, { counts: { closes: { 3008: 2, 1000: 1 } } }))
  t.match(next(0).events, [{ kind: 'slow_clients', worker: null, text: '4 slow clients disconnected' }])
  machine.listen = { overflows: 12, drops: 12 }
  t.match(next(0).events, [{ kind: 'listen_overflow', level: 'warn', text: /^12 connections/ }])
})

t.test('Redis is lost when the first worker loses it, and back when all have it again', async t => {
  const { monitor, pass, next } = monitorRig({ workers: 3 })
  monitor.redisState(1, true)
  t.same(kinds(next(0)), [], 'it was never lost')
  for (const index of [1, 0]) monitor.redisState(index, false)
  monitor.redisState(1, false)
  t.match(next(0).events, [{ kind: 'redis_lost', level: 'error', worker: 1 }])
  pass(1500)
  monitor.redisState(1, true)
  t.same(kinds(next(0)), [])
  monitor.workerState(0, 'down')
  // An ended worker needs no Redis.
  t.match(next(0).events, [{ kind: 'redis_back', level: 'info', text: /after 1.5 s/ }])
})

t.test('events are in the next snapshot and kept for later clients', async t => {
  const { monitor, next } = monitorRig()
  monitor.event({ level: 'error', kind: 'worker_died', text: 'worker 0 died', worker: 0 })
  monitor.event({ level: 'info', kind: 'reloaded', text: 'reloaded' })
  t.match(next(0).events, [
    { time: 1_767_614_400_150, level: 'error', kind: 'worker_died', text: 'worker 0 died', worker: 0 },
    { kind: 'reloaded', worker: null },
  ])
  t.same(next(0).events, [])
  for (let i = 0; i < 500; i++) monitor.event({ level: 'warn', kind: 'slow_clients', text: `${i}` })
  for (const kind of 'gc csv started stopping redis_lost worker_started'.split(' '))
    for (let i = 0; i < 15; i++)
      monitor.event({ level: 'info', kind: /** @type {any} */ (kind), text: `${i}` })
  t.same(monitor.hello().events, [], 'events of the next snapshot are not in hello')
  next(0)
  const { events } = monitor.hello()
  t.equal(events.length, 100)
  t.equal(events[events.length - 1].text, '14')
  t.equal(events.filter(({ kind }) => kind === 'slow_clients').length, 10)
  const { monitor: other, next: nextOf } = monitorRig()
  other.event({ level: 'error', kind: 'worker_died', text: 'worker 0 died', worker: 0 })
  for (let i = 0; i < 500; i++) other.event({ level: 'warn', kind: 'slow_clients', text: `${i}` })
  nextOf(0)
  t.equal(kinds(other.hello())[0], 'worker_died', 'frequent events do not displace rare ones')
})

t.test('the history has five minutes, without the largest fields', async t => {
  const { monitor, next } = monitorRig()
  const [{ workers }] = mockSnapshots({ seconds: 1 })
  for (let second = 0; second < 310; second++) {
    for (const { index, sample } of workers) if (sample) monitor.addSample(index, sample)
    next()
  }
  t.same(monitor.hello().history, [], 'it is to be read in parts')
  const history = monitor.history.after(0)
  t.equal(history.length, 300)
  t.same([history[0].seq, history[299].seq], [11, 310])
  const [{ totals, workers: views, machine, primary, counters }] = history
  t.equal(totals.connections.connected, 10_000)
  t.same([totals.loop.ticks.buckets, totals.counts.transports, counters.closes], [[], {}, {}])
  t.same([views[0].sample?.memory.spaces, primary.memory.spaces, machine.network?.interfaces], [{}, {}, {}])
  t.ok((views[1].sample?.counts.out.messages ?? 0) > 0, 'numbers stay')
  t.match(monitor.history.after(308), [{ seq: 309 }, { seq: 310 }])
  t.equal(monitor.history.after(0, 20).length, 20)
  t.same(monitor.history.after(310), [])
  t.ok((monitor.latest?.totals.loop.ticks.buckets.length ?? 0) > 0, 'the latest one is whole')
})

t.test('with more than 16 workers the history has only totals', async t => {
  const { monitor, next } = monitorRig({ workers: 17 })
  next()
  t.same(monitor.history.after(0)[0].workers, [])
  t.equal(monitor.latest?.workers.length, 17)
})

t.test('the JSON of a snapshot is made once, and only for listeners', async t => {
  const { monitor, next } = monitorRig()
  const stringify = JSON.stringify
  let texts = 0
  JSON.stringify = /** @type {any} */ (
    (/** @type {any} */ value) => {
      texts++
      return stringify(value)
    }
  )
  t.teardown(() => {
    JSON.stringify = stringify
  })
  next()
  t.equal(texts, 0)
  /** @type {string[]} */
  const lines = []
  const offs = [0, 1, 2].map(() => monitor.on(update => lines.push(update.line())))
  const snapshot = next()
  t.equal(texts, 1)
  t.same(new Set(lines).size, 1)
  t.same(JSON.parse(lines[0]), { type: 'snapshot', snapshot: JSON.parse(stringify(snapshot)) })
  for (const off of offs) off()
  next()
  t.equal(lines.length, 3)
})

t.test('a failing listener or unreadable machine files do not stop snapshots', async t => {
  const { machine } = monitorRig()
  let reads = 0
  const { monitor, next, logged } = monitorRig({
    machine: {
      sample() {
        if (++reads > 1) throw new Error('EIO')
        return machine
      },
    },
  })
  let calls = 0
  monitor.on(() => {
    throw new Error('failed')
  })
  monitor.on(() => calls++)
  next()
  t.equal(next().machine, machine, 'the last figures')
  t.equal(calls, 2)
  t.equal(logged.length, 3)
})

t.test('a snapshot is made shortly after each full second until stop()', async t => {
  const { monitor } = monitorRig({ clock: Date.now, now: () => performance.now() })
  /** @type {import('../../src/metrics/schema.js').Snapshot[]} */
  const all = []
  monitor.on(({ snapshot }) => all.push(snapshot))
  monitor.start()
  const seconds = () => all.map(({ time }) => Math.floor((time - 149) / 1000))
  // A busy machine may miss one.
  await until(() => {
    const [a, b, c] = seconds().slice(-3)
    return b === a + 1 && c === b + 1
  })
  monitor.stop()
  const { length } = all
  t.equal(new Set(seconds()).size, length, 'none twice')
  // `collect` counts from the full second; a busy machine is late.
  for (const { time, collect = 0 } of all) t.ok(collect >= time % 1000 && collect < 60_000, `${collect} ms`)
  await pause(1300)
  t.equal(all.length, length)
})
