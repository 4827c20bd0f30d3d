import t from 'tap'
import { grows, MemoryTrends, trendOf } from '../../fleet/scenarios/soak.js'

t.test('only a significant trend above the tolerance is growth', async t => {
  const noise = [0.4, -0.3, 0.1, -0.4, 0.3, -0.1]
  const line = (/** @type {number} */ slope) =>
    Array.from({ length: 60 }, (_, i) => ({ x: i / 60, y: 50 + (slope * i) / 60 + noise[i % noise.length] }))
  const { mean, slope, error } = trendOf(line(6))
  t.ok(Math.abs(slope - 6) < error && error < 0.5, `${slope} +- ${error} MiB/h`)
  t.ok(Math.abs(mean - 53) < 0.1)
  t.ok(grows(line(6)))
  for (const small of [0, 0.5, -6]) t.notOk(grows(line(small)), `${small} MiB/h`)
})

t.test('after the warm-up, the minimum of each window counts', async t => {
  const trends = new MemoryTrends()
  const memory = (/** @type {number} */ mib) => ({ memory: { heap_used: mib * 2 ** 20, rss: 2 ** 26 } })
  for (let hour = 0; hour < 9; hour++) {
    const workers = [{ index: 0, sample: memory(20 + hour) }]
    trends.addWindow(
      [9, 5].map(more => ({ primary: memory(10 + more), workers })),
      hour,
    )
  }
  const { figures, growing } = trends.result()
  t.match(figures, { primary_heap_mib: 15, primary_heap_mib_per_h: 0, worker_0_heap_mib_per_h: 1 })
  t.same(growing, ['worker_0_heap'])
})
