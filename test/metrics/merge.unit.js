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

t.test('totals are the sums of all workers, the primary included where it counts', async t => {
  for (const snapshot of mockSnapshots({ workers: 3, seconds: 20, down: 1 })) {
    const { workers, primary, totals } = snapshot
    const fresh = workers.flatMap(({ sample }) => sample ?? [])
    const merged = mergeTotals({
      views: workers,
      fresh,
      primary,
      lost: [],
      channels: totals.channels,
      kernel: Number(totals.memory.kernel) / Math.max(1, totals.connections.open),
    })
    const rounded = { user: merged.cpu.user.toFixed(2), system: merged.cpu.system.toFixed(2) }
    t.same(rounded, { user: totals.cpu.user.toFixed(2), system: totals.cpu.system.toFixed(2) })
    t.same({ ...merged, cpu: 0, gc: 0 }, { ...totals, cpu: 0, gc: 0 })
    t.equal(merged.gc.minor.count, totals.gc.minor.count)
  }
})

t.test('histograms are merged: a percentile of all is no average of percentiles', async t => {
  const [snapshot] = mockSnapshots({ seconds: 1, workers: 2 })
  const samples = snapshot.workers.flatMap(({ sample }) => sample ?? [])
  samples[0].loop.ticks = ticksOf(new Array(100).fill(1))
  samples[1].loop.ticks = ticksOf([...new Array(85).fill(1), ...new Array(15).fill(200)])
  const { loop } = mergeTotals({
    views: snapshot.workers,
    fresh: samples,
    primary: snapshot.primary,
    lost: [],
    channels: null,
    kernel: null,
  })
  const { count, p90, p99, max, avg } = loop.ticks
  t.equal(count, 200)
  t.ok(p90 < 1.02, `${p90} ms: 92.5 of 100 waits are 1 ms`)
  t.ok(p99 > 196)
  t.equal(max, 200)
  t.ok(Math.abs(avg - (185 + 15 * 200) / 200) < 0.01)
})

t.test('channels of several workers count for each, unless the primary knows better', async t => {
  const [{ workers, primary }] = mockSnapshots({ seconds: 1, workers: 2 })
  const merge = (/** @type {number | null} */ channels) =>
    mergeTotals({ views: workers, fresh: [], primary, lost: [], channels, kernel: null }).channels
  t.equal(merge(null), (workers[0].sample?.channels ?? 0) + (workers[1].sample?.channels ?? 0))
  t.equal(merge(7), 7)
})

t.test('a sample that was told before counts no work a second time, but its state stands', async t => {
  const [{ workers, primary }] = mockSnapshots({ seconds: 1, workers: 2 })
  const totals = mergeTotals({ views: workers, fresh: [], primary, lost: [], channels: null, kernel: null })
  t.same(totals.counts, emptyCounts())
  t.same(totals.cpu, primary.cpu)
  t.equal(totals.loop.ticks.count, 0)
  t.equal(totals.connections.connected, 10_000)
  t.ok(totals.memory.rss > primary.memory.rss)
})

t.test('what a worker told before it ended counts', async t => {
  const [{ workers, primary, totals }] = mockSnapshots({ seconds: 1, workers: 1 })
  const counts = /** @type {any} */ (workers[0].sample).counts
  const merged = mergeTotals({ views: [], fresh: [], primary, lost: [counts], channels: null, kernel: null })
  t.same(merged.counts, totals.counts)
})

t.test('adding changes nothing but the sum', async t => {
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

t.test('two samples that come together are one: the second does not hide a block in the first', async t => {
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

t.test('counts of a hook that is new in a sum keep their shape', async t => {
  const calls = { calls: 2, time: 3, within: [1, 2], failures: { timeout: 1 } }
  const sum = add(/** @type {any} */ ({}), { 'http rpc default': calls })
  add(sum, { 'http rpc default': calls })
  t.same(sum, { 'http rpc default': { calls: 4, time: 6, within: [2, 4], failures: { timeout: 2 } } })
  t.ok(Array.isArray(sum['http rpc default'].within))
})
