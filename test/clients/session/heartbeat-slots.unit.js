// The slots of Heartbeat: pings of one wake-up, and a blocked event loop.

import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { Heartbeat } from '../../../src/clients/session/heartbeat.js'

class TestSession {
  place = -1
  pings = 0
  awaits = false
  closed = false
  /** @param {any} rig */
  constructor(rig) {
    this.rig = rig
  }
  ping() {
    this.pings++
    this.awaits = true
    this.rig.pinged.push(this)
  }
  checkPong() {
    if (!this.awaits) return
    this.closed = true
    this.rig.heartbeat.remove(this)
  }
}

/** @param {number} interval ms @param {number} pongTimeout ms @param {number} count of sessions */
function setUp(interval, pongTimeout, count) {
  const rig = {
    now: 0,
    /** @type {TestSession[]} since the last look */
    pinged: [],
    heartbeat: /** @type {any} */ (null),
    /** @type {TestSession[]} */
    sessions: [],
    add() {
      const session = new TestSession(rig)
      rig.sessions.push(session)
      rig.heartbeat.add(session)
      return session
    },
    /** Lets time pass, one wake-up after another. @param {number} ms @param {(pinged: TestSession[]) => void} [each] */
    async pass(ms, each = () => {}) {
      for (const end = rig.now + ms; rig.now < end; ) {
        rig.now = Math.min(end, rig.now + rig.heartbeat.wakeMs)
        rig.heartbeat.tick()
        // On a busy processor the work takes several slices.
        do await nextTurn()
        while (rig.heartbeat.working)
        each(rig.pinged.splice(0))
      }
    },
  }
  rig.heartbeat = new Heartbeat(interval, pongTimeout, () => rig.now)
  for (let i = 0; i < count; i++) rig.add()
  return rig
}

/** @param {TestSession[]} sessions */
const answer = sessions => {
  for (const session of sessions) session.awaits = false
}

t.test('50,000 sessions are pinged once per interval, at most a thousand per wake-up', async t => {
  const rig = setUp(25_000, 8000, 50_000)
  let most = 0
  await rig.pass(25_000, pinged => {
    most = Math.max(most, pinged.length)
    answer(pinged)
  })
  t.ok(most <= 1000, `${most} at most`)
  t.ok(rig.sessions.every(({ pings }) => pings === 1))
  await rig.pass(25_000, answer)
  t.ok(rig.sessions.every(({ pings, closed }) => pings === 2 && !closed))
})

t.test(
  'wake-ups are at most a second or 1/25 of the interval apart, and closer with many sessions',
  async t => {
    for (const [interval, count, wake] of [
      [25_000, 1, 980],
      [25_000, 10_000, 980],
      [25_000, 50_000, 196],
      [1000, 100, 40],
      [600_000, 100, 2344],
    ]) {
      const { heartbeat } = setUp(interval, interval / 2, count)
      t.equal(heartbeat.wakeMs, wake, `${count} sessions in ${interval} ms`)
    }
  },
)

t.test('late ticks do not delay later pings', async t => {
  const rig = setUp(25_000, 8000, 2000)
  // A busy loop: every tick comes some ticks late.
  for (; rig.now < 100_000; rig.now += 130) {
    rig.heartbeat.tick()
    await nextTurn()
    answer(rig.pinged.splice(0))
  }
  const pings = rig.sessions.map(({ pings }) => pings)
  t.ok(Math.min(...pings) >= 3, `${Math.min(...pings)} pings in four intervals`)
  t.ok(Math.max(...pings) <= 4)
})

t.test('the pong timeout starts at the ping, and excludes a blocked event loop', async t => {
  const rig = setUp(20_000, 5000, 100)
  await rig.pass(20_000, answer)
  t.notOk(rig.sessions.some(({ closed }) => closed))
  // The pongs of the last seconds are in the sockets.
  await rig.pass(4000)
  rig.now += 60_000
  rig.heartbeat.tick()
  answer(rig.sessions)
  await nextTurn()
  t.notOk(rig.sessions.some(({ closed }) => closed))
  rig.pinged.splice(0)
  const [mute] = rig.sessions
  let pingedAt = 0
  await rig.pass(60_000, pinged => {
    if (pinged.includes(mute)) pingedAt = rig.now
    answer(pinged.filter(session => session !== mute))
    if (mute.closed && pingedAt > 0) {
      t.ok(rig.now - pingedAt >= 5000, `closed ${rig.now - pingedAt} ms after its ping`)
      t.ok(rig.now - pingedAt <= 5000 + 2 * rig.heartbeat.wakeMs)
      pingedAt = 0
    }
  })
  t.ok(mute.closed)
  t.equal(rig.sessions.filter(({ closed }) => closed).length, 1)
})

t.test('a stall of a second does not shorten the pong timeout', async t => {
  const rig = setUp(10_000, 3000, 500)
  /** @type {Map<TestSession, number>} */
  const pingedAt = new Map()
  const quickest = { ms: Infinity }
  for (let i = 0; i < 2000; i++) {
    rig.now += i % 50 === 0 ? 1000 : 20
    rig.heartbeat.tick()
    await nextTurn()
    for (const session of rig.pinged.splice(0)) pingedAt.set(session, rig.now)
    for (const session of rig.sessions) {
      if (session.closed && pingedAt.has(session)) {
        quickest.ms = Math.min(quickest.ms, rig.now - Number(pingedAt.get(session)))
        pingedAt.delete(session)
      }
    }
  }
  t.ok(rig.sessions.every(({ closed }) => closed))
  t.ok(quickest.ms >= 3000, `${quickest.ms} ms`)
})

t.test('while sessions come and go, each is pinged once per interval', async t => {
  let seed = 7
  const random = (/** @type {number} */ n) => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % n
  const rig = setUp(10_000, 3000, 3000)
  /** @type {Map<TestSession, number>} */
  const last = new Map()
  let soonest = Infinity
  await rig.pass(60_000, pinged => {
    for (const session of pinged) {
      soonest = Math.min(soonest, rig.now - (last.get(session) ?? -Infinity))
      last.set(session, rig.now)
    }
    answer(pinged)
    for (let i = 0; i < 5; i++) {
      const at = random(rig.sessions.length)
      rig.heartbeat.remove(rig.sessions[at])
      rig.sessions.splice(at, 1)
      last.set(rig.add(), rig.now - 5000)
    }
  })
  t.ok(soonest >= 9500, `${soonest} ms between two pings`)
  const leftOut = rig.sessions.filter(session => {
    const since = Number(last.get(session) ?? 0) + (session.pings === 0 ? 5000 : 0)
    return rig.now - since > 10_500
  })
  t.same(leftOut, [])
  let listed = 0
  rig.heartbeat.forEach(() => {
    listed++
  })
  t.equal(listed, rig.sessions.length)
})

t.test('an interval of 0 disables pings', async t => {
  const rig = setUp(0, 8000, 10)
  await rig.pass(60_000)
  t.ok(rig.sessions.every(({ pings }) => pings === 0))
})

t.test('the timer runs only while there are sessions and pings', async t => {
  const timers = () => process.getActiveResourcesInfo().filter(name => name === 'Timeout').length
  const before = timers()
  const rig = setUp(25_000, 8000, 0)
  rig.heartbeat.start()
  t.equal(timers(), before)
  const first = rig.add()
  const second = rig.add()
  t.equal(timers(), before + 1)
  rig.heartbeat.remove(first)
  t.equal(timers(), before + 1)
  rig.heartbeat.remove(second)
  t.equal(timers(), before)
  setUp(0, 0, 1).heartbeat.start()
  t.equal(timers(), before)
})

t.test('without sessions the schedule restarts: the first ping comes after half an interval', async t => {
  const rig = setUp(25_000, 8000, 0)
  rig.now += 600_000
  const session = rig.add()
  await rig.pass(12_000)
  t.equal(session.pings, 0)
  await rig.pass(14_000)
  t.equal(session.pings, 1)
})

t.test('sessions can be removed in any order, for every interval', async t => {
  for (const interval of [0, 20, 1000, 2599, 2600, 2650, 12_345, 25_000, 30_000, 600_000]) {
    const { heartbeat, sessions, add } = setUp(interval, Math.floor(interval / 2), 0)
    for (let n = 0; n < 2000; n++) add()
    const left = new Set(sessions)
    for (const [n, session] of sessions.entries()) {
      if (n % 3 === 0) continue
      heartbeat.remove(session)
      left.delete(session)
    }
    const found = new Set()
    heartbeat.forEach((/** @type {any} */ session) => void found.add(session))
    t.same([found.size, [...left].every(session => found.has(session))], [left.size, true], `${interval} ms`)
    for (const session of left) heartbeat.remove(session)
    heartbeat.forEach(() => void t.fail(`${interval} ms: a removed session`))
  }
})
