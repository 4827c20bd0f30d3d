import t from 'tap'
import { drain } from '../../../src/processes/worker/drain.js'

const group = (count, ended) => ({
  clients: Array.from({ length: count }, (_, i) => i),
  end: client => ended.push(client),
})

t.test('clients are disconnected evenly over time, each once, oldest first', async t => {
  const ended = []
  const polls = []
  const begun = performance.now()
  await drain([group(400, ended), group(100, polls)], 200)
  t.ok(performance.now() - begun >= 199)
  t.strictSame(ended, group(400, []).clients)
  t.strictSame(polls, group(100, []).clients)
})

t.test('a few clients are disconnected in less time', async t => {
  const ended = []
  await drain([group(5, ended)], 3_600_000)
  t.equal(ended.length, 5)
  await drain([group(0, ended)], 3_600_000)
  await drain([], 3_600_000)
})

t.test('yields to other work for any number of clients', async t => {
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
