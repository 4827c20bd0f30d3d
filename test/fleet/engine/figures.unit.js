import t from 'tap'
import { Clock, Figures } from '../../../fleet/drone/engine/figures.js'

t.test('faults are counted by code and message', async t => {
  const figures = new Figures()
  for (const reason of ['constructor', '__proto__', 'constructor']) figures.fault(reason)
  t.same(Object.entries(figures.sample().faults), [
    ['constructor', 2],
    ['__proto__', 1],
  ])
  t.same(Object.keys(figures.sample().faults), [])
})

t.test('the clock offset satisfies the bounds of all replies', async t => {
  const clock = new Clock()
  t.same(clock.state, { offset: 0, error: 0, against: 'none' })
  const before = Date.now()
  const begin = clock.now()
  t.ok(begin > before - 1000 && begin < Date.now() + 1000)
  const offset = 1234.567
  for (let i = 0; i < 200; i++) {
    const sent = begin + i * 7.3
    const there = sent + 0.2 + (i % 7)
    const received = there + 0.3 + (i % 5)
    clock.learn(Math.floor(there + offset), sent, received)
    const { offset: found, error, against } = clock.state
    t.ok(against === 'gateway' && Math.abs(found - offset) <= error, `${found} ± ${error}`)
  }
  t.ok(clock.state.error < 1, `${clock.state.error}`)
})

t.test('a server clock that was set is followed', async t => {
  const clock = new Clock()
  const begin = clock.now()
  clock.learn(Math.floor(begin + 100), begin, begin + 2)
  clock.learn(Math.floor(begin + 5010), begin + 10, begin + 12)
  t.ok(Math.abs(clock.state.offset - 5000) <= clock.state.error)
})

t.test('a drifting clock is followed: old replies do not count', async t => {
  const clock = new Clock()
  const begin = clock.now()
  for (let i = 0; i < 600; i++) {
    const at = begin + i * 1000
    const offset = i * 0.05
    clock.learn(Math.floor(at + offset), at, at + 0.4)
    t.ok(Math.abs(clock.state.offset - offset) <= 7, `${clock.state.offset} is ${offset}`)
  }
})
