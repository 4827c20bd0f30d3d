import t from 'tap'
import { Expiry } from '../../../src/broker/embedded/expiry.js'

/** Things that end at `at`, and note when they were looked at. */
function start(now) {
  const looked = []
  const expiry = new Expiry(now, (thing, now) => {
    looked.push([thing.name, now])
    return thing.at > now ? thing.at : 0
  })
  const add = (name, at) => {
    const thing = { name, at, dueSecond: 0 }
    expiry.schedule(thing, at)
    return thing
  }
  return { expiry, looked, add }
}

t.test('a thing ends with the first sweep after its time, and once', async t => {
  const { expiry, looked, add } = start(1_000_500)
  add('a', 1_002_000)
  add('b', 1_002_001)
  add('past', 999_000)
  for (let now = 1_001_000; now <= 1_006_000; now += 1000) expiry.sweep(now)
  t.same(looked, [
    ['past', 1_001_000],
    ['a', 1_002_000],
    ['b', 1_003_000],
  ])
})

t.test('putting off costs a look, not an end', async t => {
  const { expiry, looked, add } = start(0)
  const thing = add('a', 2000)
  thing.at = 5000
  expiry.schedule(thing, 5000)
  for (let now = 1000; now <= 9000; now += 1000) expiry.sweep(now)
  t.same(looked, [
    ['a', 2000],
    ['a', 5000],
  ])
})

t.test('what is to end earlier is looked at earlier', async t => {
  const { expiry, looked, add } = start(0)
  const thing = add('a', 9000)
  thing.at = 3000
  expiry.schedule(thing, 3000)
  for (let now = 1000; now <= 12_000; now += 1000) expiry.sweep(now)
  t.same(looked, [['a', 3000]])
})

t.test('a machine that slept for a year sweeps everything at once, the earliest first', async t => {
  const { expiry, looked, add } = start(0)
  for (const [name, at] of [
    ['c', 30_000],
    ['a', 1000],
    ['b', 2000],
    ['later', 40_000_000_000],
  ])
    add(name, at)
  expiry.sweep(31_536_000_000)
  t.same(
    looked.map(([name]) => name),
    ['a', 'b', 'c'],
  )
  expiry.sweep(40_000_000_000)
  t.equal(looked.at(-1)[0], 'later')
})

t.test('a clock that goes back harms nothing', async t => {
  const { expiry, looked, add } = start(10_000)
  add('a', 12_000)
  expiry.sweep(5000)
  t.same(looked, [])
  add('b', 6000)
  for (let now = 6000; now <= 13_000; now += 1000) expiry.sweep(now)
  t.same(
    looked.map(([name]) => name),
    ['b', 'a'],
  )
})
