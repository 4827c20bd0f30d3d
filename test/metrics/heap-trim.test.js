import { setImmediate as immediate, setTimeout as sleep } from 'node:timers/promises'
import v8 from 'node:v8'
import t from 'tap'
import { collector, HeapTrim, TRIM_TICK_MS } from '../../src/metrics/heap-trim.js'
import { GcSampler } from '../../src/metrics/process-sample.js'

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

t.test('a collection is of the extent that was asked for', async t => {
  const watch = new GcSampler()
  const collect = collector()
  // Node.js hands over what it has seen after the turn in which that was.
  await immediate()
  watch.sample()
  collect('major')
  await immediate()
  t.equal(watch.sample().major.count, 1)
  collect('minor')
  await immediate()
  t.match(watch.sample(), { major: { count: 0 }, minor: { count: 1 } })
  watch.stop()
})

t.test('memory is given back some quiet seconds after a burst', async t => {
  // V8 looks at how much was allocated over the last seconds. On a busy machine it may count the burst at the one
  // collection that there is after it: then once more.
  let shrunk = false
  for (let bursts = 0; bursts < 4 && !shrunk; bursts++) {
    const trim = new HeapTrim()
    burst()
    const grown = youngBytes()
    t.ok(grown > 6 * 1024 * 1024, `${grown} bytes`)
    for (let ticks = 0; ticks < 100 && !shrunk; ticks++) {
      trim.tick()
      await sleep(TRIM_TICK_MS)
      shrunk = youngBytes() <= grown / 2
    }
  }
  t.ok(shrunk, `${youngBytes()} bytes`)
})

t.test('a busy loop is not disturbed', async t => {
  /** @type {unknown[]} */
  const collected = []
  const trim = new HeapTrim(extent => collected.push(extent))
  for (let second = 0; second < 10; second++) {
    burst()
    trim.tick()
  }
  t.same(collected, [])
})
