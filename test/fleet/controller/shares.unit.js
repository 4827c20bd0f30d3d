import t from 'tap'
import {
  apportion,
  beginsPublishing,
  connectionBlocks,
  contradiction,
  settingsOf,
} from '../../../fleet/controller/shares.js'
import { defaultSettings } from '../../../fleet/settings.js'

/** @param {number[]} numbers */
const sum = numbers => numbers.reduce((total, number) => total + number, 0)

t.test('connections are shared by capacity, up to the capacity of each drone', async t => {
  t.same(apportion(10, [1, 1, 1]), [4, 3, 3], 'the remainder goes to the first drones')
  t.same(apportion(100, [100, 300], [100, 300]), [25, 75])
  t.same(apportion(350, [100, 300], [100, 300]), [88, 262])
  t.same(apportion(1000, [100, 300], [100, 300]), [100, 300], 'more than the total capacity')
  t.same(apportion(10, [5, 0, 5], [5, 0, 5]), [5, 0, 5], 'a drone of unknown capacity gets none')
  t.same(apportion(7, [], []), [])
  for (const n of [1, 17, 999, 12_345, 54_321]) {
    const capacities = [18_000, 4_000, 31_111, 1, 9_999]
    const shares = apportion(n, capacities, capacities)
    t.equal(sum(shares), n)
    t.ok(shares.every((part, i) => Number.isInteger(part) && part >= 0 && part <= capacities[i]))
  }
})

t.test('drones keep their connection numbers while n varies, and no number occurs twice', async t => {
  const capacities = [20_000, 10_000, 20_000]
  const full = connectionBlocks(capacities, 1000, 1000)
  t.same(
    full.map(({ first, connections }) => `${first} + ${connections}`),
    ['0 + 400', '400 + 200', '600 + 400'],
    'together they are 0 to n - 1',
  )
  for (const n of [0, 1, 333, 500, 999]) {
    const part = connectionBlocks(capacities, n, 1000)
    t.same(
      part.map(({ first }) => first),
      full.map(({ first }) => first),
      `first numbers at ${n}`,
    )
    t.equal(sum(part.map(({ connections }) => connections)), n)
    t.ok(part.every(({ connections }, i) => connections <= full[i].connections))
  }
})

t.test('rates are shared; the first drones publish, each to a part of the channels', async t => {
  const settings = {
    ...defaultSettings(),
    host: ['http://127.0.0.1:8000'],
    n: 100,
    rate: 400,
    churn: 8,
    publish_rate: 90,
    publish_channels: ['s{1..10}'],
    publishers: 3,
  }
  const shares = settingsOf(settings, [50, 50, 50, 50], { base: 100, publishFrom: 123 })
  t.same(
    shares.map(({ publish }) => publish && [publish.part, publish.parts, publish.rate]),
    [[0, 3, 30], [1, 3, 30], [2, 3, 30], null],
  )
  t.ok(
    shares.every(
      ({ rate, churn, total, publishFrom }) =>
        rate === 100 && churn === 2 && total === 100 && publishFrom === 123,
    ),
  )
  const two = settingsOf({ ...settings, publish_channels: ['a{1..10}', 'b{1..10}'] }, [50, 50, 50], {
    base: 100,
    publishFrom: 1,
  })
  t.same(
    two.map(({ publish: p }) => `${p?.channels} ${p?.part}/${p?.parts} ${p?.rate}`),
    ['a{1..10} 0/2 22.5', 'b{1..10} 0/1 45', 'a{1..10} 1/2 22.5'],
    'as many messages to each template',
  )
  const idle = settingsOf({ ...settings, publish_rate: 0 }, [50, 50], { base: 100, publishFrom: 123 })
  t.ok(idle.every(({ publish, publishFrom }) => publish === null && publishFrom === 0))
  const few = settingsOf({ ...settings, publishers: 10 }, [50, 50], { base: 100, publishFrom: 1 })
  t.same(
    few.map(({ publish }) => publish?.parts),
    [2, 2],
    'no more parts than drones',
  )
  const much = settingsOf({ ...settings, n: 1000 }, [50, 50], { base: 1000, publishFrom: 1 })
  t.same(
    much.map(({ first, connections, total }) => `${first} + ${connections} of ${total}`),
    ['0 + 50 of 100', '50 + 50 of 100'],
    'no numbers beyond the capacity',
  )
})

t.test('publishing begins anew when sequences restart', async t => {
  const off = { ...defaultSettings(), publish_channels: ['a{1..2}'] }
  const on = { ...off, publish_rate: 5 }
  t.ok(beginsPublishing(off, on))
  t.notOk(beginsPublishing(on, { ...on, publish_rate: 7 }))
  t.ok(beginsPublishing(on, { ...on, publish_channels: ['b{1..2}'] }))
  t.notOk(beginsPublishing(on, off))
})

t.test('an error names settings that contradict each other', async t => {
  const fine = { ...defaultSettings(), host: ['http://127.0.0.1:8000'], n: 5 }
  t.equal(contradiction(fine), '')
  t.match(contradiction({ ...fine, publish_rate: 1 }), /publish_channels/)
  t.match(contradiction({ ...fine, backoff_min: 10, backoff_max: 5 }), /backoff_max/)
  t.match(contradiction({ ...fine, host: [] }), /host/)
})
