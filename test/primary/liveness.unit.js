import t from 'tap'
import { Liveness } from '../../src/primary/liveness.js'

/** A worker whose CPU time the test sets. */
function worker(options = {}) {
  let cpu = 0
  const liveness = new Liveness(1, { start_timeout: 30_000, liveness_timeout: 5000, ...options }, () => cpu)
  return {
    liveness,
    /** @returns {string[]} what some ticks say */
    ticks: (/** @type {number} */ count, used = 0) =>
      Array.from({ length: count }, () => {
        cpu += used
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
