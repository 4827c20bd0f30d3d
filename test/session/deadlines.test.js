import t from 'tap'
import { Deadlines } from '../../src/session/deadlines.js'
import { Random } from './fuzz/random.js'

/**
 * @param {number} at
 * @param {number[]} ended
 */
const deadline = (at, ended) => ({ at, gone: false, end: () => void ended.push(at) })

t.test('what is due ends, in order, and nothing else', async t => {
  const random = new Random(1)
  const deadlines = new Deadlines()
  /** @type {number[]} */
  const ended = []
  const times = Array.from({ length: 5000 }, () => random.below(10_000))
  for (const at of times) deadlines.add(deadline(at, ended))
  times.sort((a, b) => a - b)
  for (let now = 0; now <= 10_000; now += 700) {
    deadlines.tick(now)
    t.strictSame(
      ended,
      times.filter(at => at <= now),
    )
  }
  deadlines.tick(10_000)
  t.strictSame(ended, times)
  t.equal(deadlines.size, 0)
})

t.test('what has lost its reason does not end', async t => {
  const deadlines = new Deadlines()
  /** @type {number[]} */
  const ended = []
  const forgotten = deadline(5, ended)
  deadlines.add(deadline(1, ended))
  deadlines.add(forgotten)
  deadlines.add(deadline(9, ended))
  forgotten.gone = true
  deadlines.tick(10)
  t.strictSame(ended, [1, 9])
})

t.test('what has lost its reason is not kept for long', async t => {
  const deadlines = new Deadlines()
  /** @type {number[]} */
  const ended = []
  const kept = Array.from({ length: 500 }, (_, i) => deadline(1_000_000 + i, ended))
  for (const one of kept) deadlines.add(one)
  for (let i = 0; i < 100_000; i++) deadlines.add({ ...deadline(2_000_000 - i, ended), gone: true })
  t.ok(deadlines.size < 3000, `${deadlines.size} are kept`)
  deadlines.tick(3_000_000)
  t.strictSame(
    ended,
    kept.map(({ at }) => at),
  )
})
