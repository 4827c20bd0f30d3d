import t from 'tap'
import { add, emptyCounts, foldSamples, mergeTotals } from '../../src/metrics/merge.js'
import { TickHistogram } from '../../src/metrics/tick-histogram.js'
import { mockSnapshots } from './mock.js'

/** @param {number[]} waits ms */
function ticksOf(waits) {
  const histogram = new TickHistogram()
  for (const wait of waits) histogram.record(wait)
  return histogram.toTicks()
}

/** @param {number} seconds */
function samplesOf(seconds) {
  return mockSnapshots({ seconds, workers: 1 }).map(
    ({ workers }) => /** @type {import('../../src/metrics/schema.js').WorkerSample} */ (workers[0].sample),
  )
}

/** @param {Partial<Parameters<typeof mergeTotals>[0]> & Pick<Parameters<typeof mergeTotals>[0], 'views' | 'primary'>} parts */
const merge = parts =>
  mergeTotals({
    fresh: [],
    lost: [],
    channels: null,
    broker: { maps: null, polls: null },
    kernel: null,
    ...parts,
  })

t.test('totals are the sums of all workers, with the primary in CPU and memory', async t => {
  for (const { workers: views, primary } of mockSnapshots({ workers: 3, seconds: 20, down: 1 })) {
    const fresh = views.flatMap(({ sample }) => sample ?? [])
    const all = [...fresh, primary]
    const sum = (/** @type {(sample: any) => number} */ value, of = /** @type {any[]} */ (fresh)) =>
      of.reduce((total, sample) => total + value(sample), 0)
    const totals = merge({ views, fresh, primary, channels: 7, kernel: 1000 })
    t.match(totals, {
      workers: fresh.length,
      channels: 7,
      subscriptions: sum(s => s.subscriptions),
      connections: { open: sum(s => s.connections.open), connected: sum(s => s.connections.connected) },
      outbox: {
        bytes: sum(s => s.outbox.bytes),
        largest: Math.max(...fresh.map(({ outbox }) => outbox.largest)),
      },
      memory: {
        rss: sum(s => s.memory.rss, all),
        heap_used: sum(s => s.memory.heap_used, all),
        native: sum(s => s.memory.rss - s.memory.heap_total, all),
        kernel: 1000 * sum(s => s.connections.open),
      },
      counts: { accepts: sum(s => s.counts.accepts), out: { bytes: sum(s => s.counts.out.bytes) } },
    })
    t.equal(totals.cpu.user.toFixed(2), sum(s => s.cpu.user, all).toFixed(2))
    t.equal(
      totals.gc.minor.count,
      sum(s => s.gc.minor.count),
    )
    t.equal(totals.loop.utilization, Math.max(...fresh.map(({ loop }) => loop.utilization)))
  }
})

t.test('histograms are merged; percentiles are never averaged', async t => {
  const [snapshot] = mockSnapshots({ seconds: 1, workers: 2 })
  const samples = snapshot.workers.flatMap(({ sample }) => sample ?? [])
  samples[0].loop.ticks = ticksOf(new Array(100).fill(1))
  samples[1].loop.ticks = ticksOf([...new Array(85).fill(1), ...new Array(15).fill(200)])
  const { loop } = merge({ views: snapshot.workers, fresh: samples, primary: snapshot.primary })
  const { count, p90, p99, max, avg } = loop.ticks
  t.equal(count, 200)
  t.ok(p90 < 1.02, `${p90} ms: 92.5 of 100 waits are 1 ms`)
  t.ok(p99 > 196)
  t.equal(max, 200)
  t.ok(Math.abs(avg - (185 + 15 * 200) / 200) < 0.01)
})

t.test('channels are summed unless the primary knows the number', async t => {
  const [{ workers, primary }] = mockSnapshots({ seconds: 1, workers: 2 })
  const [one, two] = workers.map(({ sample }) => sample?.channels ?? 0)
  t.equal(merge({ views: workers, primary }).channels, one + two)
  t.equal(merge({ views: workers, primary, channels: 7 }).channels, 7)
})

t.test('counts of a sample are merged once, its state while it is the latest', async t => {
  const [{ workers, primary }] = mockSnapshots({ seconds: 1, workers: 2 })
  const totals = merge({ views: workers, primary })
  t.same(totals.counts, emptyCounts())
  t.same(totals.cpu, primary.cpu)
  t.equal(totals.loop.ticks.count, 0)
  t.equal(totals.connections.connected, 10_000)
  t.ok(totals.memory.rss > primary.memory.rss)
})

t.test('counts of an ended worker are merged', async t => {
  const [{ workers, primary, totals }] = mockSnapshots({ seconds: 1, workers: 1 })
  const counts = /** @type {any} */ (workers[0].sample).counts
  const merged = merge({ views: [], primary, lost: [counts] })
  t.same(merged.counts, totals.counts)
})

t.test('add() changes only the sum', async t => {
  const [first, second] = samplesOf(2).map(({ counts }) => counts)
  const before = structuredClone([first, second])
  const sum = add(add(emptyCounts(), first), second)
  t.same([first, second], before)
  t.equal(sum.in.messages, first.in.messages + second.in.messages)
  t.equal(
    sum.transports.websocket.out.bytes,
    first.transports.websocket.out.bytes + second.transports.websocket.out.bytes,
  )
  t.equal(sum.commands.connect, first.commands.connect + second.commands.connect)
})

t.test('two samples of a worker are folded without hiding a blocked loop', async t => {
  const [earlier, later] = samplesOf(2)
  earlier.interval = 1500
  later.interval = 500
  earlier.loop = { utilization: 1, ticks: ticksOf([0.5, 0.5, 600]) }
  later.loop = { utilization: 0.2, ticks: ticksOf([0.5]) }
  earlier.cpu = { user: 0.8, system: 0 }
  later.cpu = { user: 0, system: 0.4 }
  const folded = foldSamples(earlier, later)
  t.equal(folded.interval, 2000)
  t.equal(folded.loop.ticks.max, 600)
  t.equal(folded.loop.ticks.count, 4)
  t.equal(folded.loop.utilization, 0.8)
  t.same(folded.cpu, { user: 0.6, system: 0.1 })
  t.equal(folded.counts.accepts, earlier.counts.accepts + later.counts.accepts)
  t.equal(folded.gc.minor.count, earlier.gc.minor.count + later.gc.minor.count)
  t.same(folded.connections, later.connections)
  t.same(folded.memory, later.memory)
})

t.test('counts of a new hook keep their shape', async t => {
  const calls = { calls: 2, time: 3, within: [1, 2], failures: { timeout: 1 } }
  const sum = add(/** @type {any} */ ({}), { 'http rpc default': calls })
  add(sum, { 'http rpc default': calls })
  t.same(sum, { 'http rpc default': { calls: 4, time: 6, within: [2, 4], failures: { timeout: 2 } } })
  t.ok(Array.isArray(sum['http rpc default'].within))
})
