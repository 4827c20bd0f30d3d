// The end of a ramp: by counts and times of snapshots, one a second.
import t from 'tap'
import { RampWatch } from '../../fleet/runner/step-run.js'

/**
 * @param {(second: number) => number} open connections
 * @param {number} [ramp] s until all 1,000 have been asked for
 * @returns {number | null} the second at which the ramp ends; null: not within ten minutes
 */
function endOf(open, ramp = 10) {
  const watch = new RampWatch(1000)
  for (let second = 0; second < 600; second++) {
    const gauges = { wanted: second < ramp ? second * 100 : 1000, opening: 0, open: open(second) }
    if (watch.hasEnded({ time: 1_700_000_000_000 + second * 1000, gauges }, second >= ramp)) return second
  }
  return null
}

t.test('a ramp ends as soon as all connections are open', async t => {
  t.equal(
    endOf(second => Math.min(1000, second * 50)),
    20,
  )
  t.equal(
    endOf(() => 1000),
    10,
    'but not before all have been asked for',
  )
  t.equal(
    endOf(second => Math.min(1000, second * 50), 0),
    20,
    'even if all are requested together and none is open yet',
  )
})

t.test('a ramp continues while connections open, however slowly, and for 20 s after', async t => {
  t.equal(
    endOf(second => Math.min(1000, 500 + Math.floor(second / 15) * 20)),
    375,
  )
  t.equal(
    endOf(() => 700),
    30,
  )
})

t.test('a ramp ends after two minutes without a new maximum', async t => {
  const lost = endOf(second => (second < 50 ? second * 10 : 100 + (second % 30) * 10))
  t.equal(lost, 49 + 121)
})

t.test('a loss recovered within two minutes does not end a ramp', async t => {
  t.equal(
    endOf(second => (second < 50 ? second * 10 : Math.min(1000, 100 + (second - 50) * 10))),
    140,
  )
})
