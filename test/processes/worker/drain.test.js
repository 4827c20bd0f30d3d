import t from 'tap'
import { drain } from '../../../src/processes/worker/drain.js'

/** @param {number} count @param {number[]} ended */
const group = (count, ended) => ({
  clients: Array.from({ length: count }, (_, i) => i),
  end: (/** @type {number} */ client) => ended.push(client),
})

t.test('clients are let go over the time, each once, first come first', async t => {
  /** @type {number[]} */
  const ended = []
  /** @type {number[]} */
  const polls = []
  const begun = performance.now()
  await drain([group(400, ended), group(100, polls)], 200)
  t.ok(performance.now() - begun >= 199)
  t.strictSame(ended, group(400, []).clients)
  t.strictSame(polls, group(100, []).clients)
})

t.test('a few clients take less than the time', async t => {
  /** @type {number[]} */
  const ended = []
  await drain([group(5, ended)], 3_600_000)
  t.equal(ended.length, 5)
  await drain([group(0, ended)], 3_600_000)
  await drain([], 3_600_000)
})

t.test('other work gets its turn, however many clients there are', async t => {
  let turns = 0
  let more = true
  const count = () => {
    turns++
    if (more) setImmediate(count)
  }
  setImmediate(count)
  let ended = 0
  const slow = () => {
    ended++
    for (const begun = performance.now(); performance.now() - begun < 1; );
  }
  await drain([{ clients: new Array(100).fill(0), end: slow }], 0)
  more = false
  t.equal(ended, 100)
  t.ok(turns >= 5, `${turns} turns`)
})
