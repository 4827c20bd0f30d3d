// Work in slices: it yields to the event loop and skips nothing, even if items are added and removed meanwhile.

import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { runSlice, SlicedQueue, SlicedVisits, SlicedWork } from '../../src/base/slices.js'

/** Keeps the processor busy. @param {number} ms */
function busy(ms) {
  for (const end = performance.now() + ms; performance.now() < end; );
}

/** @param {() => boolean} done @returns {Promise<number>} turns of the event loop until then */
async function turnsUntil(done) {
  let turns = 0
  for (; !done(); turns++) await nextTurn()
  return turns
}

t.test('a slice ends after a few long steps', async t => {
  let steps = 0
  t.equal(
    runSlice(() => {
      steps++
      busy(1)
      return true
    }),
    true,
    'work is left',
  )
  t.ok(steps <= 8, `${steps} steps`)
  let left = 8
  t.equal(
    runSlice(() => --left > 0),
    false,
    'few steps are one slice, however long they take',
  )
  t.equal(left, 0)
})

t.test('long work yields to the event loop', async t => {
  let left = 80
  let ended = 0
  const work = new SlicedWork(
    () => {
      busy(1)
      return --left > 0
    },
    () => ended++,
  )
  work.start()
  work.start()
  t.equal(left, 80, 'it begins after this turn')
  t.ok(work.running)
  const turns = await turnsUntil(() => ended > 0)
  t.ok(turns >= 8, `${turns} turns`)
  t.equal(ended, 1)
  t.notOk(work.running)
  left = 1
  work.start()
  await turnsUntil(() => ended === 2)
  t.equal(left, 0, 'it can be started again')
})

t.test('a queue handles a few items immediately and many in slices', async t => {
  /** @type {number[]} */
  const handled = []
  const queue = new SlicedQueue((/** @type {number} */ item) => {
    busy(0.05)
    handled.push(item)
  })
  queue.add(0)
  t.same(handled, [0], 'at once')
  for (let i = 1; i < 1000; i++) queue.add(i)
  t.ok(handled.length < 100, `${handled.length} of them in the turn that added them`)
  t.equal(queue.size, 1000 - handled.length)
  // Items are added between slices.
  let next = 1000
  const turns = await turnsUntil(() => {
    if (next < 1100) queue.add(next++)
    return handled.length === 1100
  })
  t.ok(turns > 3, `${turns} turns`)
  t.equal(new Set(handled).size, 1100)
  queue.add(1100)
  t.equal(handled.at(-1), 1100, 'few again: immediately')
})

t.test('visits run in the order of the calls', async t => {
  /** @type {string[]} */
  const visited = []
  const visits = new SlicedVisits()
  const items = Array.from({ length: 400 }, (_, i) => i)
  visits.add(items, item => {
    busy(0.1)
    visited.push(`a${item}`)
  })
  t.ok(visited.length > 0, 'begun at once')
  t.ok(visited.length < 400)
  visits.add([1, 2], item => visited.push(`b${item}`))
  visits.add([], () => t.fail('nothing to visit'))
  visits.add([3], item => visited.push(`c${item}`))
  await turnsUntil(() => visited.length === 403)
  t.same(visited, [...items.map(i => `a${i}`), 'b1', 'b2', 'c3'])
  visits.add([9], item => visited.push(`d${item}`))
  t.equal(visited.at(-1), 'd9', 'nothing is queued: immediately')
})
