import t from 'tap'
import { RestartDelays } from '../../../src/processes/primary/restarts.js'

function delays(slots) {
  let now = 0
  const policy = new RestartDelays(slots, () => now)
  return {
    /** A worker that had listened dies. */
    died: (alone = false) => policy.next(0, alone),
    failed: (failures, alone = false) => policy.next(failures, alone),
    pass: ms => (now += ms),
  }
}

t.test('workers that have listened are replaced immediately', async t => {
  const of64 = delays(64)
  for (let i = 0; i < 64; i++) t.equal(of64.died(), 0, 'all at the same time')
  const of2 = delays(2)
  for (let i = 0; i < 100; i++) {
    t.equal(of2.died(), 0, 'then one every 4 s')
    of2.pass(4000)
  }
})

t.test('workers that crash at their first client do not cause a fork storm', async t => {
  const policy = delays(2)
  let forks = 0
  for (let ms = 0; ms < 60_000; forks++) {
    const spent = 300 + policy.died()
    policy.pass(spent)
    ms += spent
  }
  t.ok(forks <= 60 + 4, `${forks} in a minute`)
  t.equal(policy.died(true) <= 500, true, 'the last worker waits half a second')
})

t.test('the delay after failed starts grows, except for the last worker', async t => {
  const policy = delays(2)
  t.strictSame(
    [1, 2, 3, 9, 10, 99].map(failures => policy.failed(failures)),
    [100, 200, 400, 25_600, 30_000, 30_000],
  )
  t.strictSame(
    [1, 2, 3, 9, 99].map(failures => policy.failed(failures, true)),
    [100, 200, 400, 500, 500],
  )
  t.equal(policy.died(), 0, 'failed starts do not delay workers that have listened')
})
