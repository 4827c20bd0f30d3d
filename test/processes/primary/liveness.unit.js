import t from 'tap'
import { Liveness } from '../../../src/processes/primary/liveness.js'

/** A worker whose CPU time the test sets. */
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

t.test('a worker that neither reports nor uses the CPU is dead after its timeout', async t => {
  const { liveness, ticks } = worker()
  liveness.listens()
  for (let i = 0; i < 100; i++) {
    t.strictSame(ticks(1), [])
    liveness.heard(false)
  }
  t.strictSame(ticks(1), [])
  t.notOk(liveness.silent)
  t.strictSame(ticks(4), [])
  t.ok(liveness.silent)
  t.strictSame(ticks(1), ['it sent no sample for 6 s'])
})

t.test('one that uses the CPU gets six times as long: a long collection of garbage', async t => {
  const { liveness, ticks } = worker()
  liveness.listens()
  t.strictSame(ticks(30, 50), [])
  liveness.heard(false)
  t.notOk(liveness.silent)
  t.strictSame(ticks(30, 50), [])
  t.strictSame(ticks(1, 50), ['it sent no sample for 31 s'])
})

t.test('the time for which it waits for a core does not count', async t => {
  const { liveness, times, ticks } = worker()
  liveness.listens()
  t.strictSame(ticks(32, 10, 900), [], '2 s until it is silent, and 30 ticks with 0.1 s each')
  t.strictSame(ticks(250, 10, 900), [])
  t.match(ticks(20, 10, 900)[0], /^it sent no sample for \d+ s$/, '30 s on a core are its limit')

  liveness.heard(false)
  times.ready = true
  t.strictSame(ticks(20), [], 'it gets no core at all')
  times.ready = false
  t.strictSame(ticks(6).slice(0, 1), ['it sent no sample for 26 s'], 'it is stopped')

  const starting = worker()
  t.strictSame(starting.ticks(290, 10, 900), [])
  t.strictSame(starting.ticks(12, 10, 900).slice(0, 1), ['it did not listen within 30 s'])
})

t.test('a debugger may hold it', async t => {
  const { liveness, ticks } = worker()
  liveness.listens()
  liveness.heard(true)
  t.strictSame(ticks(1000), [])
  t.ok(liveness.silent, 'which health tells')
})

t.test('a start has a time limit of its own, and 0 is none', async t => {
  const starting = worker()
  starting.liveness.heard(false)
  t.strictSame(starting.ticks(30), [])
  t.notOk(starting.liveness.silent)
  t.strictSame(starting.ticks(1), ['it did not listen within 30 s'])
  const unlimited = worker({ start_timeout: 0, liveness_timeout: 0 })
  t.strictSame(unlimited.ticks(1000), [])
  unlimited.liveness.listens()
  t.strictSame(unlimited.ticks(1000), [])
})
