import t from 'tap'
import { Wheel } from '../../src/transport/wheel.js'

const timed = (/** @type {string} */ name) => ({ name, dueAt: 0, slot: -1 })

function setUp(tickMs = 100, start = 1_000_000) {
  const wheel = new Wheel(tickMs, start)
  let now = start
  return {
    wheel,
    start,
    /** @param {number} ms @returns {string[]} names of those that were due */
    pass(ms, step = tickMs) {
      /** @type {string[]} */
      const due = []
      for (const end = now + ms; now < end; ) {
        now = Math.min(end, now + step)
        wheel.tick(now, ({ name }) => due.push(name))
      }
      return due
    },
    /** @param {any} entry @param {number} ms */
    set(entry, ms) {
      wheel.set(entry, now + ms)
    },
  }
}

t.test('what is set is due when its time has come, not before', async t => {
  const { set, pass } = setUp()
  for (const ms of [0, 1, 99, 100, 101, 950, 25_000, 51_200, 51_250, 300_000, 3_600_000])
    set(timed(`${ms}`), ms)
  t.same(pass(100), ['0', '1', '99', '100'])
  t.same(pass(100), ['101'])
  t.same(pass(700), [])
  t.same(pass(100), ['950'])
  t.same(pass(23_900), [])
  t.same(pass(100), ['25000'])
  t.same(pass(26_200), ['51200'], 'once around')
  t.same(pass(100), ['51250'])
  t.same(pass(248_600), [])
  t.same(pass(100), ['300000'], 'many times around')
  t.same(pass(3_299_900), [])
  t.same(pass(100), ['3600000'])
  t.same(pass(100_000), [])
})

t.test('what is set again counts from then, what is removed never comes', async t => {
  const { set, pass, wheel } = setUp()
  const [sooner, later, gone] = [timed('sooner'), timed('later'), timed('gone')]
  set(sooner, 5000)
  set(later, 300)
  set(gone, 300)
  set(sooner, 200)
  set(later, 60_000)
  wheel.remove(gone)
  wheel.remove(gone)
  t.same(pass(300), ['sooner'])
  t.same(pass(59_600), [])
  t.same(pass(100), ['later'])
})

t.test('setting it again from within is no endless loop', async t => {
  const { wheel, start } = setUp()
  let count = 0
  wheel.set(timed('again'), start)
  wheel.tick(start + 100, entry => {
    count++
    wheel.set(entry, start)
  })
  t.equal(count, 1)
})

t.test('ticks that come late, all at once or out of step lose nothing', async t => {
  for (const step of [1, 37, 100, 101, 1234, 60_000, 3_600_000]) {
    const { set, pass } = setUp()
    const times = [0, 50, 100, 149, 150, 5000, 51_199, 51_201, 99_999]
    for (const ms of times) set(timed(`${ms}`), ms)
    const due = pass(200_000, step)
    t.same(
      due.map(Number).sort((a, b) => a - b),
      times,
      `${step} ms`,
    )
  }
})

t.test('a clock that is set back delays, and loses nothing', async t => {
  const { wheel, start } = setUp()
  const entry = timed('x')
  wheel.set(entry, start + 1000)
  /** @type {string[]} */
  const due = []
  for (let now = start - 5000; now <= start + 1200; now += 100) wheel.tick(now, ({ name }) => due.push(name))
  t.same(due, ['x'])
})
