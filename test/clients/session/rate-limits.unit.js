import t from 'tap'
import { TimerWheel } from '../../../src/base/timers.js'
import { SessionExtra } from '../../../src/clients/session/extra.js'
import { IN_REDIS, RateLimits } from '../../../src/clients/session/rate-limits.js'
import { loadConfig } from '../../../src/config/load.js'
import { Traffic } from '../../../src/metrics/traffic.js'

/** @typedef {{user?: string, buckets: readonly number[], limit?: string, done: (error: Error | null, allowed: boolean) => void}} Taken */

/** Rate limits without sessions, sockets or time. @param {object} rate_limit @param {{maxUsers?: number}} [options] */
function rig(rate_limit, { maxUsers } = {}) {
  let now = 1000
  const timers = new TimerWheel(100, () => now)
  const traffic = new Traffic([])
  /** @type {Taken[]} */
  const taken = []
  const stores = { opened: 0, closed: 0 }
  const limits = new RateLimits({
    timers,
    clock: () => now,
    monotonic: () => now,
    traffic,
    log: { warn() {} },
    openStore() {
      stores.opened++
      return {
        take: (user, limit, buckets, done) => void taken.push({ user, limit, buckets, done }),
        close: () => void stores.closed++,
      }
    },
    maxUsers,
  })
  const use = (/** @type {object} */ rate_limit) =>
    limits.use(
      loadConfig({ base: { client: { rate_limit }, channel: { namespaces: [{ name: 'chat' }] } } }).config,
    )
  const rules = {
    resolve: (/** @type {string} */ channel) => ({
      name: channel.includes(':') ? channel.split(':')[0] : '',
    }),
  }
  use(rate_limit)
  return {
    limits,
    use,
    timers,
    traffic,
    taken,
    stores,
    session(user = '') {
      return {
        user,
        /** @type {SessionExtra | null} */
        extra: null,
        context: { rules },
        needExtra() {
          return (this.extra ??= new SessionExtra())
        },
      }
    },
    /** @param {any} session @param {number} count @returns {number} publishes that are not refused */
    publish(session, count, channel = 'room') {
      let passed = 0
      for (let i = 0; i < count; i++) if (limits.check(session, 'publish', { channel }) === null) passed++
      return passed
    },
    /** @param {number} ms */
    pass(ms) {
      now += ms
      while (timers.tick());
    },
  }
}

/** @param {...[interval: string, rate: number]} buckets */
const limit = (...buckets) => ({
  enabled: true,
  buckets: buckets.map(([interval, rate]) => ({ interval, rate })),
})
/** @param {...[interval: string, rate: number]} buckets */
const clients = (...buckets) => ({ client_command: { enabled: true, publish: limit(...buckets) } })
/** @param {...[interval: string, rate: number]} buckets */
const users = (...buckets) => ({ user_command: { enabled: true, publish: limit(...buckets) } })

t.test('without a limit for a command nothing is stored', async t => {
  const { use, session, limits } = rig({})
  t.equal(use({}), null)
  t.equal(use({ client_command: { enabled: true } }), null)
  t.equal(use({ client_command: { publish: limit(['1s', 1]) } }), null, 'the layer is off')
  t.equal(use({ client_command: { enabled: true, publish: { ...limit(['1s', 1]), enabled: false } } }), null)
  t.not(use({ ...clients(['1s', 1]), ...users(['1s', 1]) }), null)
  const client = session('u')
  t.equal(limits.check(/** @type {any} */ (client), 'rpc', {}), null)
  t.equal(client.extra, null)
  t.equal(limits.users, 0)
  limits.check(/** @type {any} */ (client), 'publish', { channel: 'room' })
  t.not(client.extra, null)
  t.equal(limits.users, 1)
})

t.test('buckets refill continuously, up to their capacity', async t => {
  const { session, publish, pass } = rig(clients(['1s', 10]))
  const client = session()
  t.equal(publish(client, 20), 10)
  pass(99)
  t.equal(publish(client, 2), 0)
  pass(1)
  t.equal(publish(client, 2), 1)
  for (let i = 0; i < 1000; i++) {
    pass(100)
    if (publish(client, 1) !== 1) return t.fail(`refused after ${i} times`)
  }
  pass(24 * 3600 * 1000)
  t.equal(publish(client, 20), 10)
})

t.test('a refusal by one bucket takes no token of the others', async t => {
  const { session, publish, use } = rig(clients(['1s', 100], ['1m', 20]))
  const client = session()
  t.equal(publish(client, 21), 20)
  use(clients(['1s', 100]))
  t.equal(publish(client, 200), 80)
})

t.test('a reload keeps tokens, up to the new capacity', async t => {
  const { session, publish, use, pass } = rig(clients(['1h', 10], ['2h', 10]))
  const client = session()
  publish(client, 2)
  use(clients(['1h', 5], ['2h', 20]))
  t.equal(publish(client, 20), 5)
  use(clients(['1h', 100]))
  t.equal(publish(client, 20), 0)
  pass(3600 * 1000)
  t.equal(publish(client, 200), 100)
  use(clients(['1h', 50], ['1h', 3], ['1h', 7]))
  t.equal(publish(client, 20), 0)
  use(clients(['10ms', 1]))
  pass(10)
  t.equal(publish(client, 20), 1)
})

t.test('users with full buckets are dropped, then the oldest ones', async t => {
  const { limits, session, publish, pass } = rig(users(['1m', 60]), { maxUsers: 3 })
  const [a, b, c, d, e, f] = ['a', 'b', 'c', 'd', 'e', 'f'].map(name => session(name))
  publish(a, 60)
  publish(b, 5)
  publish(c, 60)
  t.equal(limits.users, 3)
  pass(6000)
  t.equal(limits.users, 2, 'b is full again')
  publish(d, 60)
  t.equal(limits.users, 3)
  publish(e, 1)
  t.equal(limits.users, 3)
  t.equal(publish(c, 60), 6, 'c is not the oldest')
  t.equal(publish(a, 60), 60, 'a was dropped: it begins with a full bucket')
  for (const client of [b, d, f]) publish(client, 1)
  t.equal(limits.users, 3)
  pass(120_000)
  t.equal(limits.users, 0)
  t.equal(limits.users, 0)
})

t.test('at most 200,000 users have tokens, and none has a timer when all are full', async t => {
  const { limits, session, pass, timers } = rig(users(['1m', 60]))
  const client = session()
  for (let i = 0; i < 250_000; i++) {
    client.user = `u${i}`
    limits.check(/** @type {any} */ (client), 'publish', { channel: 'room' })
  }
  t.equal(limits.users, 200_000)
  t.equal(timers.size, 200_000)
  // Timers run in slices.
  while (limits.users > 0) pass(2000)
  t.equal(timers.size, 0)
})

t.test('users of a limit that was removed are dropped', async t => {
  const { limits, session, publish, pass, use } = rig(users(['24h', 5]))
  publish(session('a'), 5)
  use({})
  pass(24 * 3600 * 1000)
  t.equal(limits.users, 0)
})

t.test('Redis decides last, and only for users', async t => {
  const inRedis = { enabled: true, publish: limit(['1s', 10], ['1m', 60]), redis: { address: '127.0.0.1:1' } }
  const { limits, session, taken, stores, traffic, pass, use } = rig({
    ...clients(['1h', 3]),
    redis_user_command: inRedis,
  })
  const publish = (/** @type {any} */ client) => limits.check(client, 'publish', { channel: 'room' })
  t.equal(publish(session()), null)
  const client = session('u')
  /** @type {(Error | null)[]} */
  const results = []
  const ask = () =>
    limits.checkInRedis(/** @type {any} */ (client), 'publish', { channel: 'room' }, error =>
      results.push(error),
    )
  t.equal(publish(client), IN_REDIS)
  ask()
  t.match(taken, [{ user: 'u', buckets: [10, 1000, 60, 60_000] }])
  taken[0].done(null, true)
  ask()
  taken[1].done(null, false)
  t.match(results, [null, { code: 111 }])
  t.match(traffic.counts.rate_limited, { 'redis_user_command publish': 1 })
  ask()
  pass(400)
  t.same(results[2], null, 'it may run without an answer')
  t.equal(traffic.counts.rate_unchecked, 1)
  taken[2].done(null, false)
  t.equal(results.length, 3, 'a late answer has no effect')
  use({ redis_user_command: { ...inRedis, fail_closed: true, timeout: '10s' } })
  ask()
  pass(5000)
  t.equal(results.length, 3)
  taken[3].done(new Error('down'), false)
  t.match(results[3], { code: 100 })
  t.same(stores, { opened: 1, closed: 0 })
  use({ redis_user_command: { ...inRedis, redis: { address: '127.0.0.1:2' } } })
  t.same(stores, { opened: 2, closed: 1 }, 'other servers')
  use({})
  t.same(stores, { opened: 2, closed: 2 })
})
