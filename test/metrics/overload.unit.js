import t from 'tap'
import { Overload, YOUNG_BYTES } from '../../src/metrics/overload.js'
import { TickHistogram, timeAbove } from '../../src/metrics/tick-histogram.js'

/** @param {number[]} waits ms @param {{interval?: number, heap?: number, cpu?: number}} [more] heap: per cent */
function sample(waits, { interval = 1000, heap = 10, cpu = 1 } = {}) {
  const histogram = new TickHistogram()
  for (const wait of waits) histogram.record(wait)
  return /** @type {any} */ ({
    interval,
    cpu: { user: cpu / 2, system: cpu / 2 },
    loop: { ticks: histogram.toTicks() },
    memory: { heap_used: heap * 1e8 + 5e6, heap_limit: 1e10 + YOUNG_BYTES, spaces: { new: { used: 5e6 } } },
  })
}

const IDLE = Array(100).fill(0.1)
/** The loop is blocked for half a second, then runs briefly. */
const PULSES = [470, 0.1, 0.1, 0.1, 0.1, 470, 0.1]

/** @param {Partial<ConstructorParameters<typeof Overload>[0]>} [options] */
function setUp(options = {}) {
  /** @type {(string | null)[]} */
  const changes = []
  let collections = 0
  let now = 0
  const overload = new Overload({
    maxTick: 200,
    maxMemory: 90,
    limit: null,
    onChange: reason => changes.push(reason),
    collect() {
      collections++
      now += 200
    },
    clock: () => now,
    ...options,
  })
  return {
    changes,
    get collections() {
      return collections
    },
    /** @param {any[]} samples @returns {(string | null)[]} the state after each */
    after: (...samples) =>
      samples.map(each => {
        now += each.interval
        return overload.update(each)
      }),
  }
}

t.test('timeAbove() sums the ticks above a delay', async t => {
  const { ticks } = sample([100, 300, 300, 0.5]).loop
  t.ok(Math.abs(timeAbove(ticks, 200) - 600) < 10)
  t.ok(Math.abs(timeAbove(ticks, 50) - 700) < 10)
  t.equal(timeAbove(ticks, 400), 0)
})

t.test('a high delay: overloaded after two samples, recovered after three quiet ones', async t => {
  const { after, changes } = setUp()
  const [high, low] = [sample(PULSES), sample(IDLE)]
  t.same(after(low, high, high), [null, null, 'event_loop'])
  t.same(after(high, low, low), ['event_loop', 'event_loop', 'event_loop'])
  t.same(after(high, low, low, low), ['event_loop', 'event_loop', 'event_loop', null])
  t.same(changes, ['event_loop', null])
})

t.test('one long tick is no overload, however long', async t => {
  const { after, changes } = setUp()
  const stall = sample([5000], { interval: 5000 })
  t.same(after(sample(IDLE), stall, sample(IDLE), sample([900]), sample(IDLE)), Array(5).fill(null))
  t.same(changes, [])
})

t.test('a busy worker with short ticks is not overloaded', async t => {
  const { after } = setUp()
  const busy = sample(Array(10).fill(95))
  t.same(after(busy, busy, busy, busy), Array(4).fill(null))
})

t.test('with several workers per core, the limit is multiplied', async t => {
  const { after } = setUp({ workersPerCore: 3 })
  const [shared, high] = [sample([800]), sample([700, 0.1, 700], { interval: 1500 })]
  t.same(after(sample([590, 400]), sample([590, 400]), shared), [null, null, null])
  t.same(after(shared, high, high), ['event_loop', 'event_loop', 'event_loop'])
  const alone = setUp({ workersPerCore: 0.5 })
  t.same(alone.after(sample(PULSES), sample(PULSES)), [null, 'event_loop'])
})

t.test('between both thresholds, the state does not change', async t => {
  const { after } = setUp()
  const [high, middle, low] = [sample([800]), sample([600]), sample([400])]
  t.same(after(middle, middle, middle), [null, null, null])
  after(high, high)
  t.same(after(middle, middle, middle, middle), Array(4).fill('event_loop'))
  t.same(after(low, low, low), ['event_loop', 'event_loop', null])
})

t.test('memory: the heap or the control group counts, with separate thresholds', async t => {
  const { after } = setUp()
  const heap = (/** @type {number} */ percent) => sample(IDLE, { heap: percent })
  t.same(after(heap(90), heap(91)), [null, 'memory'])
  t.same(after(heap(86), heap(86), heap(86), heap(86)), Array(4).fill('memory'))
  t.same(after(heap(85), heap(85), heap(85)), ['memory', 'memory', null])
  let share = 0.5
  const group = setUp({ limit: { share: () => share } })
  t.same(group.after(heap(10)), [null])
  share = 0.95
  t.same(group.after(heap(10)), ['memory'])
  share = 0.5
  t.same(group.after(heap(10), heap(10), heap(10)), ['memory', 'memory', null])
})

t.test('an idle worker with a full heap collects garbage, rarely; a busy one does not', async t => {
  const rig = setUp()
  rig.after(sample(IDLE, { heap: 95, cpu: 0.9 }))
  t.equal(rig.collections, 0)
  // A collection takes 200 ms here: one in ten seconds.
  rig.after(...Array(9).fill(sample(IDLE, { heap: 95, cpu: 0.01 })))
  t.equal(rig.collections, 1)
  rig.after(...Array(10).fill(sample(IDLE, { heap: 95, cpu: 0.01 })))
  t.equal(rig.collections, 2)
})

t.test('the young generation of a small heap does not count', async t => {
  const { after } = setUp()
  // As with --max-old-space-size=64, which ends a process at 64 MB of old objects.
  const small = (/** @type {number} */ used) => ({
    ...sample(IDLE),
    memory: { heap_used: used * 2 ** 20, heap_limit: 64 * 2 ** 20 + YOUNG_BYTES, spaces: {} },
  })
  t.same(after(small(57), small(58)), [null, 'memory'])
})

t.test('0 disables either limit', async t => {
  const { after } = setUp({ maxTick: 0, maxMemory: 0 })
  t.same(after(...Array(5).fill(sample(PULSES, { heap: 99 }))), Array(5).fill(null))
})
