// The delays of points without timers are those that a timer for each point would have measured.

import t from 'tap'
import { SleepingGrid } from '../../src/metrics/sleeping-grid.js'
import { TickHistogram } from '../../src/metrics/tick-histogram.js'

/** A grid whose last point with a timer was at 0. */
function setUp() {
  const grid = new SleepingGrid(10)
  grid.start(0)
  return { grid, ticks: new TickHistogram() }
}

t.test('points of a sleeping loop have the delay of its wake-up', async t => {
  const { grid, ticks } = setUp()
  grid.expect(100)
  grid.turn(33, 0.2, ticks)
  t.equal(ticks.count, 0, 'which is not known before the timer comes')
  grid.turn(100.5, 0.1, ticks)
  grid.flush(ticks)
  const { count, min, max } = ticks.toTicks()
  t.equal(count, 10)
  t.ok(min === max && Math.abs(max - 0.4) < 0.01, `${min} to ${max} ms`)
})

t.test('a point within a turn waits for its end; the next one follows at the resolution', async t => {
  for (const [length, longest, points, all] of [
    [200, 198, 1, 5],
    [40, 38, 1, 5],
    [3, 1, 1, 5],
    [1.5, 0, 0, 5],
  ]) {
    const { grid, ticks } = setUp()
    // The turn begins 2 ms before a point.
    grid.turn(28 + length, length, ticks)
    t.equal(ticks.count, points, `${length} ms`)
    t.ok(Math.abs(ticks.max - longest) < 0.01, `${ticks.max} of ${length} ms`)
    grid.turn(28 + length + 25, 0, ticks)
    grid.flush(ticks)
    t.equal(ticks.count, all, 'two before it, two or three after it')
  }
})

t.test('a turn that delays the timer counts once', async t => {
  const { grid, ticks } = setUp()
  grid.expect(100)
  grid.turn(480, 400, ticks)
  grid.turn(480.1, 0.1, ticks)
  grid.flush(ticks)
  t.equal(ticks.count, 9)
  t.equal(ticks.max, 390, 'from the point at 90 ms on')
  t.equal(ticks.percentile(50), 0)
})

t.test('a stopped process has the delay of its timer and few points', async t => {
  const { grid, ticks } = setUp()
  grid.expect(100)
  grid.turn(500, 0, ticks)
  grid.flush(ticks)
  t.equal(ticks.count, 1)
  t.equal(ticks.max, 400)
  grid.turn(530, 0, ticks)
  grid.flush(ticks)
  t.ok(ticks.count <= 4)
  t.ok(ticks.sum <= 400 + 3 * 10, 'a long delay is recorded once')
})

t.test('a late wake-up is hidden while other work arrives with each timer', async t => {
  const { grid, ticks } = setUp()
  grid.expect(100)
  grid.turn(190, 0, ticks)
  grid.flush(ticks)
  const after = new TickHistogram()
  for (let due = 290; due <= 1290; due += 100) {
    grid.expect(due)
    // 1 ms of work, partly before the loop slept: the delay of its wake-up is unknown, but at most 0.2 ms.
    grid.turn(due + 0.2, 1, after)
    grid.flush(after)
  }
  t.ok(after.max <= 1, `${after.max} ms`)
  t.ok(after.count > 100)
})

t.test('delays and points never exceed the elapsed time', async t => {
  for (const late of [0, 1, 10, 30, 90, 400, 3000]) {
    const { grid, ticks } = setUp()
    let now = 0
    for (let i = 0; i < 50; i++) {
      grid.expect(now + 100)
      now += 100 + late
      grid.turn(now, 0, ticks)
      grid.flush(ticks)
    }
    const time = ticks.sum + ticks.count * 10
    t.ok(Math.abs(time - now) <= 0.5 * 50 * (10 + late), `${late} ms late: ${time} of ${now} ms`)
    t.equal(ticks.max, late)
  }
})
