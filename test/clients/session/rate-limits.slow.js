// The cost of rate limits for a command: at most 0.5 us.

import t from 'tap'
import { TimerWheel } from '../../../src/base/timers.js'
import { SessionExtra } from '../../../src/clients/session/extra.js'
import { RateLimits } from '../../../src/clients/session/rate-limits.js'
import { loadConfig } from '../../../src/config/load.js'
import { Traffic } from '../../../src/metrics/traffic.js'

t.setTimeout(300_000)

const CHECKS = 1_000_000
const ROUNDS = 5

const limit = { enabled: true, buckets: [{ interval: '1s', rate: 1_000_000 }] }
const chat = { namespace_name: 'chat', ...limit }
const publish = { ...limit, namespace_overrides: [chat] }
const [one, all] = [
  { client_command: { enabled: true, publish: limit } },
  {
    client_command: { enabled: true, total: limit, default: limit, publish },
    user_command: { enabled: true, total: limit, default: limit, publish },
  },
]

/**
 * CPU time of the fastest round: others share the machine.
 * @param {object} rate_limit @param {number} sessions @returns {number} ns per check
 */
function measure(rate_limit, sessions) {
  const timers = new TimerWheel(100, Date.now)
  const limits = new RateLimits({
    timers,
    clock: Date.now,
    monotonic: () => performance.now(),
    traffic: new Traffic([]),
    log: { warn() {} },
    openStore() {
      throw new Error('no limits in Redis')
    },
  })
  limits.use(
    loadConfig({ base: { client: { rate_limit }, channel: { namespaces: [{ name: 'chat' }] } } }).config,
  )
  const names = new Map([['chat', { name: 'chat' }]])
  const rules = {
    resolve: (/** @type {string} */ channel) => names.get(channel.slice(0, channel.indexOf(':'))),
  }
  const clients = Array.from({ length: sessions }, (_, i) => ({
    user: `user ${i}`,
    /** @type {SessionExtra | null} */
    extra: null,
    context: { rules },
    needExtra() {
      return (this.extra ??= new SessionExtra())
    },
  }))
  const request = { channel: 'chat:room' }
  let best = Infinity
  for (let round = 0; round < ROUNDS; round++) {
    let refused = 0
    const from = process.cpuUsage()
    for (let i = 0; i < CHECKS; i++)
      if (limits.check(/** @type {any} */ (clients[i % sessions]), 'publish', request) !== null) refused++
    const { user, system } = process.cpuUsage(from)
    best = Math.min(best, ((user + system) * 1000) / CHECKS)
    if (refused === CHECKS) t.fail('all are refused')
  }
  return best
}

t.test('a check takes at most 0.5 us', async t => {
  /** @type {[name: string, rate_limit: object, sessions: number, maxNs: number][]} */
  const cases = [
    ['a limit of the connection', one, 1, 500],
    ['both layers with override and total', all, 1, 500],
    // Their tokens are not in the cache of the processor.
    ['both layers, 1,000 users', all, 1000, 1000],
  ]
  for (const [name, options, sessions, maxNs] of cases) {
    const ns = measure(options, sessions)
    t.comment(`${name}: ${Math.round(ns)} ns`)
    t.ok(ns <= maxNs, `${name}: ${Math.round(ns)} ns`)
  }
})
