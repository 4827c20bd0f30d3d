import { setTimeout as sleep } from 'node:timers/promises'
import v8 from 'node:v8'
import t from 'tap'
import { HeapTrim, TRIM_TICK_MS } from '../../src/stats/heap-trim.js'

const youngBytes = () =>
  v8.getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.physical_space_size ?? 0

/** Makes V8 grow its young generation: what is allocated survives for a while, and is gone afterwards. */
function burst() {
  let kept = []
  for (let i = 0; i < 400_000; i++) {
    kept.push({ i, text: `${i}` })
    if (kept.length === 20_000) kept = []
  }
}

t.test('memory is given back some quiet seconds after a burst', async t => {
  const trim = new HeapTrim()
  burst()
  const grown = youngBytes()
  t.ok(grown > 6 * 1024 * 1024, `${grown} bytes`)
  // V8 itself looks at how much was allocated over the last seconds; a busy machine makes this loop look busy for longer.
  while (youngBytes() > grown / 2) {
    trim.tick()
    await sleep(TRIM_TICK_MS)
  }
})

t.test('a busy loop is not disturbed', async t => {
  /** @type {unknown[]} */
  const collected = []
  const trim = new HeapTrim(options => collected.push(options))
  for (let second = 0; second < 10; second++) {
    burst()
    trim.tick()
  }
  t.same(collected, [])
})
