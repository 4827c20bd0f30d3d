// Opening of connections, with a simulated clock.

import { mock } from 'node:test'
import t from 'tap'
import { Pool, PoolTimer, ReadPause } from '../../../fleet/drone/engine/pool.js'

function makePool(settings, wanted) {
  const dialled = []
  const failed = []
  let now = 1e6
  const pool = new Pool({
    dial: slot => {
      dialled.push(slot)
      return { slot, close() {} }
    },
    fail: (slot, reason) => {
      failed.push(reason)
      pool.leave(slot, 'lost', now)
    },
    shut: slot => pool.leave(slot, 'again', now),
  })
  Object.assign(pool, { concurrency: 1000, ...settings })
  pool.tick(now)
  pool.resize(wanted)
  const pass = (ms, step = 10) => {
    for (const end = now + ms; now < end; ) pool.tick((now += step))
  }
  const openAll = () => {
    for (let slot = 0; slot < pool.wanted; slot++)
      if (pool.at(slot) && !pool.isOpen(slot)) pool.opened(slot, now)
  }
  return { pool, dialled, failed, pass, openAll, now: () => now }
}

t.test('concurrency limits the number of opening connections', async t => {
  const { pool, dialled, pass, now } = makePool({ concurrency: 7 }, 100)
  pass(1000)
  t.equal(pool.opening, 7)
  t.same(dialled, [0, 1, 2, 3, 4, 5, 6])
  pool.opened(3, now())
  t.equal(dialled.length, 8, 'the next one starts immediately')
  t.same([pool.opening, pool.open], [7, 1])
})

t.test('with concurrency 0 no connection is opened, and the pool is idle', async t => {
  const { pool, dialled, pass } = makePool({ concurrency: 0 }, 100)
  pass(1000)
  t.same(dialled, [])
  t.ok(pool.isIdle)
  pool.concurrency = 2
  t.notOk(pool.isIdle)
  pass(20)
  t.same(dialled, [0, 1])
})

t.test('abandon() forgets all connections and returns the number of open ones', async t => {
  const { pool, pass } = makePool({ concurrency: 7 }, 10)
  pass(10)
  for (const slot of [0, 1, 2]) pool.opened(slot, 0)
  t.equal(pool.abandon(), 3)
  t.match(pool, { wanted: 0, opening: 0, open: 0, isIdle: true })
})

t.test('rate limits the attempts per second, even after a blocked event loop', async t => {
  const { dialled, pass } = makePool({ rate: 100 }, 5000)
  pass(10_000)
  t.ok(dialled.length >= 995 && dialled.length <= 1011, `${dialled.length}`)
  pass(1000, 1000)
  t.ok(dialled.length <= 1030, `${dialled.length}`)
})

t.test('a lost connection reopens after a bounded exponential back-off with jitter', async t => {
  const waits = []
  const { pool, dialled, pass, now } = makePool({ backoff: { min: 100, max: 2000 } }, 50)
  pass(10)
  for (let attempt = 0; attempt < 12; attempt++) {
    const lost = now()
    dialled.length = 0
    for (let slot = 0; slot < 50; slot++) pool.leave(slot, 'lost', lost)
    const came = []
    while (dialled.length < 50) {
      const before = dialled.length
      pass(10)
      for (let i = before; i < dialled.length; i++) came.push(now() - lost)
    }
    waits.push({ least: came[0], most: came.at(-1) })
  }
  t.ok(waits.every(({ least }) => least >= 100))
  t.ok(waits.every(({ most }) => most <= 2010))
  t.ok(waits[0].most <= 210, 'the first back-off is at most twice the minimum')
  t.ok(waits.at(-1).most > 1500 && waits.at(-1).least < 700, 'anywhere in between')
})

t.test('churn closes and reopens connections at its rate', async t => {
  const { pool, dialled, pass, openAll } = makePool({ churn: 50 }, 100)
  pass(10)
  openAll()
  dialled.length = 0
  for (let i = 0; i < 400; i++) {
    pass(10)
    openAll()
  }
  t.ok(Math.abs(dialled.length - 200) <= 4, `${dialled.length}`)
  t.ok(new Set(dialled).size > 60, 'any of them')
  t.equal(pool.open + pool.opening, 100)
})

t.test('connections fail if they do not open or get no pings, unless the event loop was blocked', async t => {
  const { pool, failed, pass, openAll, now } = makePool({ backoff: { min: 1e6, max: 1e6 } }, 3)
  pass(10)
  pool.ping = 5
  pool.opened(0, now())
  pool.ping = 0
  pool.opened(1, now())
  pass(14_000)
  t.same(failed, [])
  pass(2500)
  t.same(failed, ['no ping'])
  pass(6000)
  t.same(failed, ['no ping', 'not open after 20 s'])
  openAll()
  t.equal(pool.open, 1)
})

t.test('open connections are drawn at random', async t => {
  const { pool, pass, openAll } = makePool({}, 1000)
  pass(10)
  openAll()
  t.equal(pool.draw(250).length, 250)
  t.equal(new Set(pool.draw(250)).size, 250)
  t.equal(pool.draw(1000).length, 1000)
  t.equal(pool.draw(0).length, 0)
  const middle = pool.draw(500).reduce((sum, slot) => sum + slot, 0) / 500
  t.ok(Math.abs(middle - 500) < 60, `${middle}`)
})

t.test('the timer stops while all connections are open, and a lost one restarts it', async t => {
  const { pool, dialled, openAll, now } = makePool({}, 10)
  mock.timers.enable({ apis: ['setTimeout'] })
  const timer = new PoolTimer(pool, now)
  try {
    mock.timers.tick(20)
    t.equal(dialled.length, 10)
    openAll()
    mock.timers.tick(20)

    pool.leave(3, 'again', now())
    mock.timers.tick(100)
    t.equal(dialled.length, 10, 'the idle timer runs twice a second')
    timer.hasten()
    mock.timers.tick(20)
    t.equal(dialled.length, 11)
  } finally {
    timer.stop()
    mock.timers.reset()
  }
})

t.test('the pings of one turn cause one callback, at its end', async t => {
  const pauses = []
  const pause = new ReadPause(ms => pauses.push(ms))
  const turn = () => new Promise(resolve => setImmediate(resolve))
  for (let n = 0; n < 3; n++) pause.request()
  t.same(pauses, [])
  await turn()
  t.same(pauses, [200])
  await turn()
  t.same(pauses, [200], 'no callback without pings')
  pause.request()
  await turn()
  t.same(pauses, [200, 200])
})
