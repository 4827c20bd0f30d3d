import { setImmediate as immediate, setTimeout as sleep } from 'node:timers/promises'
import v8 from 'node:v8'
import t from 'tap'
import { collector, HeapTrim, TRIM_TICK_MS } from '../../src/metrics/heap-trim.js'
import { GcSampler } from '../../src/metrics/process-sample.js'
import { until } from '../kit/wait.js'

const youngBytes = () =>
  v8.getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.physical_space_size ?? 0

/** Makes V8 grow its young generation: the objects survive for a while, then they are garbage. */
function burst() {
  let kept = []
  for (let i = 0; i < 400_000; i++) {
    kept.push({ i, text: `${i}` })
    if (kept.length === 20_000) kept = []
  }
}

t.test('collections have the requested extent', async t => {
  const watch = new GcSampler()
  const collect = collector()
  /** Counts of collections, once there is one of this extent: Node.js reports them in a later turn. */
  const counts = async (/** @type {'major' | 'minor'} */ extent) => {
    const sum = { major: 0, minor: 0 }
    await until(() => {
      const { major, minor } = watch.sample()
      sum.major += major.count
      sum.minor += minor.count
      return sum[extent] > 0
    })
    return sum
  }
  await immediate()
  watch.sample()
  collect('major')
  await counts('major')
  collect('minor')
  t.equal((await counts('minor')).major, 0)
  watch.stop()
})

t.test('memory is returned after a burst and quiet seconds', async t => {
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

t.test('a busy loop is not interrupted by collections', async t => {
  /** @type {unknown[]} */
  const collected = []
  const trim = new HeapTrim(extent => collected.push(extent))
  for (let second = 0; second < 10; second++) {
    burst()
    trim.tick()
  }
  t.same(collected, [])
})
