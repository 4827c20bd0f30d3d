import t from 'tap'
import { Liveness } from '../../../src/processes/primary/liveness.js'

/** A worker with simulated CPU time. */
function worker(options = {}) {
  const times = { cpu: 0, waited: 0, ready: false }
  const limits = { start_timeout: 30_000, liveness_timeout: 5000, ...options }
  const liveness = new Liveness(1, limits, () => times)
  return {
    liveness,
    times,
    /**
     * @param {number} count @param {number} [used] CPU time, clock ticks @param {number} [waited] for a core, ms
     * @returns {string[]} what some ticks say
     */
    ticks: (count, used = 0, waited = 0) =>
      Array.from({ length: count }, () => {
        times.cpu += used
        times.waited += waited
        return liveness.tick()
      }).filter(Boolean),
  }
}

t.test('a worker that sends no samples and uses no CPU is stuck after its timeout', async t => {
  const { liveness, ticks } = worker()
  liveness.onListening()
  for (let i = 0; i < 100; i++) {
    t.strictSame(ticks(1), [])
    liveness.onSample(false)
  }
  t.strictSame(ticks(1), [])
  t.notOk(liveness.unresponsive)
  t.strictSame(ticks(4), [])
  t.ok(liveness.unresponsive)
  t.strictSame(ticks(1), ['no sample for 6 s'])
})

t.test('a worker that uses the CPU has six times the timeout, for long garbage collections', async t => {
  const { liveness, ticks } = worker()
  liveness.onListening()
  t.strictSame(ticks(30, 50), [])
  liveness.onSample(false)
  t.notOk(liveness.unresponsive)
  t.strictSame(ticks(30, 50), [])
  t.strictSame(ticks(1, 50), ['no sample for 31 s'])
})

t.test('time spent waiting for a core does not count', async t => {
  const { liveness, times, ticks } = worker()
  liveness.onListening()
  t.strictSame(ticks(32, 10, 900), [], '2 s until it is unresponsive, and 30 ticks with 0.1 s each')
  t.strictSame(ticks(250, 10, 900), [])
  t.match(ticks(20, 10, 900)[0], /^no sample for \d+ s$/, 'the limit is 30 s on a core')

  liveness.onSample(false)
  times.ready = true
  t.strictSame(ticks(20), [], 'no core is available')
  times.ready = false
  t.strictSame(ticks(6).slice(0, 1), ['no sample for 26 s'], 'stopped')

  const starting = worker()
  t.strictSame(starting.ticks(290, 10, 900), [])
  t.strictSame(starting.ticks(12, 10, 900).slice(0, 1), ['did not listen within 30 s'])
})

t.test('a worker may be paused by a debugger', async t => {
  const { liveness, ticks } = worker()
  liveness.onListening()
  liveness.onSample(true)
  t.strictSame(ticks(1000), [])
  t.ok(liveness.unresponsive, '/health reports it')
})

t.test('the start has a separate time limit; 0 disables it', async t => {
  const starting = worker()
  starting.liveness.onSample(false)
  t.strictSame(starting.ticks(30), [])
  t.notOk(starting.liveness.unresponsive)
  t.strictSame(starting.ticks(1), ['did not listen within 30 s'])
  const unlimited = worker({ start_timeout: 0, liveness_timeout: 0 })
  t.strictSame(unlimited.ticks(1000), [])
  unlimited.liveness.onListening()
  t.strictSame(unlimited.ticks(1000), [])
})
