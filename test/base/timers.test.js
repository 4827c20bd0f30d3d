import { once } from 'node:events'
import t from 'tap'
import { setAlignedInterval, Timer, TimerWheel, timeToMultiple } from '../../src/base/timers.js'
import { Random } from '../clients/session/fuzz/random.js'

const TICK_MS = 100
const START = 1_700_000_000_000
const DAY = 24 * 3600_000

class TestTimer extends Timer {
  /** @param {() => void} run */
  constructor(run) {
    super()
    this.run = run
  }

  onTimer() {
    this.run()
  }
}

function setUp(start = START) {
  let now = start
  const wheel = new TimerWheel(TICK_MS, () => now)
  /** @type {any[]} names of the timers called since the last look */
  let called = []
  return {
    wheel,
    clock: () => now,
    timer: (/** @type {any} */ name) => new TestTimer(() => called.push(name)),
    /** @param {Timer} timer @param {number} ms */
    schedule: (timer, ms) => wheel.schedule(timer, now + ms),
    /** @param {any} name @param {number} ms */
    add(name, ms) {
      const timer = new TestTimer(() => called.push(name))
      wheel.schedule(timer, now + ms)
      return timer
    },
    /** @param {number} ms in steps @returns {any[]} names of the timers called, in their order */
    pass(ms, step = TICK_MS) {
      for (const end = now + ms; now < end; ) {
        now = Math.min(end, now + step)
        while (wheel.tick());
      }
      const names = called
      called = []
      return names
    },
    /** @param {number} time */
    setClock(time) {
      now = time
    },
  }
}

t.test('timers are called in order of deadline, then of scheduling', async t => {
  const { add, pass, wheel } = setUp()
  const random = new Random(1)
  const times = Array.from({ length: 5000 }, () => random.below(1_000_000))
  for (const ms of times) add(ms, ms)
  t.equal(wheel.size, 5000)
  t.same(
    pass(1_000_000).map(ms => Math.ceil(ms / TICK_MS)),
    times.map(ms => Math.ceil(ms / TICK_MS)).sort((a, b) => a - b),
  )
  for (const name of ['a', 'b', 'c']) add(name, 5000)
  t.same(pass(5000), ['a', 'b', 'c'])
})

t.test('no timer is early, lost or more than a tick late', async t => {
  for (const step of [1, 37, 100, 101, 1234, 60_000, 3_600_000, 40 * DAY]) {
    const { wheel, clock, setClock } = setUp()
    const random = new Random(step)
    const steps = 2000
    let before = START
    let calls = 0
    let wrong = 0
    for (let i = 0; i < 300; i++) {
      const at = START + random.below(steps) * step * random.below(2) + random.below(step * 10)
      const timer = new TestTimer(() => {
        calls++
        if (clock() < at || before >= at + TICK_MS) wrong++
      })
      wheel.schedule(timer, at)
    }
    // The last step passes a whole tick.
    for (const ms of [...Array(steps + 10).fill(step), TICK_MS]) {
      before = clock()
      setClock(before + ms)
      while (wheel.tick());
    }
    t.same({ calls, wrong, left: wheel.size }, { calls: 300, wrong: 0, left: 0 }, `${step} ms`)
  }
})

t.test('a deadline beyond the last level is kept', async t => {
  const { add, pass } = setUp()
  const years = 3 * 365 * DAY
  add('near', 20 * DAY)
  add('far', years)
  const never = add('never', Number.POSITIVE_INFINITY)
  t.same(pass(20 * DAY - TICK_MS, 3600_000), [])
  t.same(pass(TICK_MS), ['near'])
  t.same(pass(years - 20 * DAY - TICK_MS, DAY), [])
  t.same(pass(TICK_MS), ['far'])
  t.ok(never.armed)
})

t.test('rescheduling moves a timer, cancelling removes it', async t => {
  const { timer, schedule, pass, wheel } = setUp()
  const [sooner, later, gone] = [timer('sooner'), timer('later'), timer('gone')]
  wheel.cancel(gone)
  schedule(sooner, 5000)
  schedule(later, 300)
  schedule(gone, 300)
  schedule(sooner, 200)
  schedule(later, 60_000)
  t.ok(gone.armed)
  wheel.cancel(gone)
  wheel.cancel(gone)
  t.notOk(gone.armed)
  t.equal(wheel.size, 2)
  t.same(pass(300), ['sooner'])
  t.notOk(sooner.armed)
  t.same(pass(59_600), [])
  t.same(pass(100), ['later'])
  schedule(gone, 100)
  t.same(pass(100), ['gone'], 'a cancelled timer can be scheduled again')
})

t.test('scheduleNoLater() moves a timer only to an earlier deadline', async t => {
  const { timer, clock, schedule, pass, wheel } = setUp()
  const one = timer('one')
  wheel.scheduleNoLater(one, clock() + 2000)
  wheel.scheduleNoLater(one, clock() + 90_000)
  const { dueTick } = one
  t.same(pass(1900), [])
  t.equal(one.dueTick, dueTick)
  t.same(pass(100), ['one'])
  schedule(one, 90_000)
  wheel.scheduleNoLater(one, clock() + 500)
  t.equal(wheel.size, 1)
  t.same(pass(500), ['one'])
  t.equal(wheel.size, 0)
})

t.test('timers may be changed from a callback', async t => {
  const { timer, schedule, add, pass, wheel } = setUp()
  const [second, third, fourth] = [timer('second'), timer('third'), timer('fourth')]
  let again = 0
  const first = new TestTimer(() => {
    again++
    wheel.cancel(second)
    schedule(third, 1000)
    // Due immediately: called in the next tick, otherwise this one would never end.
    schedule(first, 0)
    wheel.cancel(first)
    schedule(first, -5000)
  })
  for (const one of [first, second, third, fourth]) schedule(one, 100)
  t.same(pass(100), ['fourth'])
  t.equal(again, 1)
  pass(100)
  t.equal(again, 2)
  wheel.cancel(first)
  add('x', 50)
  t.same(pass(1000), ['x', 'third'])
  t.equal(wheel.size, 0)
})

t.test('a clock set back delays timers without losing any', async t => {
  const { add, pass, setClock } = setUp()
  add('a', 1000)
  setClock(START - 5000)
  t.same(pass(5900), [])
  add('b', 50)
  t.same(pass(100), ['a', 'b'])
})

t.test('a clock that leaps by decades calls all timers', async t => {
  const { add, pass } = setUp(0)
  add('near', 1000)
  add('far', 300 * DAY)
  t.same(pass(START, START), ['near', 'far'])
  add('next', 6500)
  t.same(pass(6400), [])
  t.same(pass(100), ['next'])
})

/** @param {number} us */
const work = us => {
  for (const end = performance.now() + us / 1000; performance.now() < end; );
}

t.test('100,000 timers of one tick do not block the event loop', async t => {
  let now = START
  const wheel = new TimerWheel(TICK_MS, () => now)
  const COUNT = 100_000
  let calls = 0
  let inTurn = 0
  let most = 0
  for (let i = 0; i < COUNT; i++) {
    const timer = new TestTimer(() => {
      calls++
      inTurn++
      work(4)
    })
    // It moves down from a higher level.
    wheel.schedule(timer, now + 3600_000)
  }
  now += 3600_000
  wheel.tick()
  while (calls < COUNT) {
    most = Math.max(most, inTurn)
    inTurn = 0
    await new Promise(resolve => setImmediate(resolve))
  }
  t.equal(calls, COUNT)
  t.equal(wheel.size, 0)
  t.ok(most < COUNT / 20, `${most} in one turn`)
})

t.test('timers may be changed between two slices of a tick', async t => {
  let now = START
  const wheel = new TimerWheel(TICK_MS, () => now)
  /** @type {Timer[]} */
  const timers = []
  let calls = 0
  for (let i = 0; i < 10_000; i++) {
    const timer = new TestTimer(() => {
      calls++
      work(2)
    })
    timers.push(timer)
    wheel.schedule(timer, now + 100)
  }
  now += 100
  t.ok(wheel.tick(), 'the rest follows')
  t.ok(calls > 0 && calls < 10_000)
  const done = calls
  let late = 0
  wheel.schedule(new TestTimer(() => late++), now)
  for (const timer of timers.slice(5000)) wheel.cancel(timer)
  while (wheel.tick());
  t.equal(calls, Math.max(done, 5000))
  t.equal(late, 0)
  now += 100
  while (wheel.tick());
  t.equal(late, 1)
})

t.test('a started wheel ticks by itself and sleeps while empty', async t => {
  // The intervals of wheels keep no process alive.
  const alive = setInterval(() => {}, 1000)
  t.teardown(() => clearInterval(alive))
  let looks = 0
  const clock = () => {
    looks++
    return Date.now()
  }
  const wheel = new TimerWheel(10, clock)
  const other = new TimerWheel(10, Date.now)
  other.start()
  /** @param {TimerWheel} wheel @param {number} ms */
  const passed = (wheel, ms) =>
    new Promise(resolve => {
      const at = Date.now() + ms
      wheel.schedule(new TestTimer(() => resolve(Date.now() >= at)), at)
    })
  const early = passed(wheel, 0)
  await passed(other, 50)
  t.equal(looks, 1, 'not started, it does nothing')
  wheel.start()
  t.ok(await early)
  t.ok(await passed(wheel, 35))
  t.ok(await passed(wheel, 0))
  const before = looks
  await passed(other, 100)
  t.ok(looks <= before + 1, `${looks - before} looks at the clock while it is empty`)
  t.ok(await passed(wheel, 20), 'and wakes up again')
})

t.test('waits for the next multiple at least a fifth of the period away', async t => {
  const waits = [
    [0, 250],
    [1, 249],
    [199, 51],
    [200, 50],
    [201, 299],
    [249, 251],
    [250, 250],
  ]
  for (const [now, wait] of waits) t.equal(timeToMultiple(250, 1_700_000_000_000 + now), wait, `${now}`)
})

t.test('repeats until it is stopped', async t => {
  const bell = new EventTarget()
  // The interval itself does not keep the process alive.
  const alive = setInterval(() => {}, 1000)
  t.teardown(() => clearInterval(alive))
  let calls = 0
  const stop = setAlignedInterval(() => {
    if (++calls === 3) {
      stop()
      bell.dispatchEvent(new Event('third'))
    }
  }, 20)
  await once(bell, 'third')
  // If the first one still ran, it would be called before this one.
  const stopOther = setAlignedInterval(() => bell.dispatchEvent(new Event('other')), 20)
  await once(bell, 'other')
  stopOther()
  t.equal(calls, 3)
})

t.test('continues after an exception', async t => {
  const bell = new EventTarget()
  const alive = setInterval(() => {}, 1000)
  t.teardown(() => clearInterval(alive))
  const errors = []
  process.once('uncaughtException', error => errors.push(error.message))
  let calls = 0
  const stop = setAlignedInterval(() => {
    if (++calls === 1) throw new Error('first')
    bell.dispatchEvent(new Event('second'))
  }, 20)
  await once(bell, 'second')
  stop()
  t.same(errors, ['first'])
})
