// When sessions and subscriptions expire, and that nothing of them stays in the timer wheel. What clients see of it is
// in refresh.test.js.

import t from 'tap'
import { TimerWheel } from '../../../src/base/timers.js'
import { NO_HANDLERS } from '../../../src/clients/hooks/contract.js'
import { JsonCodec } from '../../../src/clients/protocol/json.js'
import { expireConnection, expireSubscription } from '../../../src/clients/session/expiry.js'
import { ReplyBatch } from '../../../src/clients/session/replies.js'
import { Session } from '../../../src/clients/session/session.js'
import { Sessions } from '../../../src/clients/session/sessions.js'
import { State } from '../../../src/clients/session/state.js'
import { Kind, NO_DETAILS, Subscription } from '../../../src/clients/session/subscription.js'
import { Traffic } from '../../../src/metrics/traffic.js'

const NOW = 1_700_000_000
const DELAY_MS = 25_000

function setUp() {
  let now = NOW * 1000
  const clock = () => now
  const timers = new TimerWheel(100, clock)
  const sessions = new Sessions({ pingInterval: 0, pongTimeout: 0, staleDelay: 10_000, timers, clock })
  /** @type {string[]} what clients are told */
  const ends = []
  const client = { expired_close_delay: DELAY_MS, expired_sub_close_delay: DELAY_MS }
  const traffic = new Traffic([])
  const transport = /** @type {any} */ ({
    context: {
      config: { client },
      handlers: NO_HANDLERS,
      lifecycle: null,
      rules: { resolve: () => undefined },
      timers,
      sessions,
      traffic,
      refusals: { add() {} },
      replies: new ReplyBatch(),
      hub: { leave() {} },
      broker: {},
    },
    traffic: traffic.of('websocket'),
    send: (/** @type {Session} */ _session, /** @type {string} */ text) => void ends.push(text),
    close: (/** @type {Session} */ _session, /** @type {any} */ { code }) => void ends.push(`closed ${code}`),
  })
  const codec = new JsonCodec()
  return {
    timers,
    sessions,
    open() {
      const session = new Session(transport, null, codec, 0)
      sessions.opened(session)
      return session
    },
    connect() {
      const session = new Session(transport, null, codec, 0)
      session.state = State.CONNECTED
      sessions.open++
      sessions.connected(session)
      return session
    },
    subscribe(/** @type {Session} */ session, name = 'a', kind = 0) {
      const subscription = new Subscription(
        /** @type {any} */ ({ name }),
        /** @type {any} */ ({}),
        null,
        kind,
        {
          ...NO_DETAILS,
        },
      )
      session.addSubscription(subscription)
      return subscription
    },
    /** @param {number} ms @returns {string[]} */
    pass(ms) {
      now += ms
      while (timers.tick());
      return ends.splice(0)
    },
  }
}

t.test('a connection that is not refreshed is closed after its time and the delay', async t => {
  const { timers, connect, pass } = setUp()
  const session = connect()
  expireConnection(session, NOW + 10)
  t.same(pass(10_000 + DELAY_MS - 100), [])
  t.same(pass(100), ['closed 3005'])
  t.equal(timers.size, 0)
})

t.test('the last refresh counts, whether it is earlier, later or for ever', async t => {
  const { timers, connect, pass } = setUp()
  const [earlier, later, forever, again] = [connect(), connect(), connect(), connect()]
  for (const session of [earlier, later, forever, again]) expireConnection(session, NOW + 100)
  expireConnection(earlier, NOW + 10)
  expireConnection(later, NOW + 200)
  expireConnection(forever, 0)
  expireConnection(again, 0)
  expireConnection(again, NOW + 50)
  t.equal(timers.size, 3)
  t.same(pass(10_000 + DELAY_MS), ['closed 3005'])
  t.ok(earlier.closed)
  t.same(pass(40_000), ['closed 3005'])
  t.ok(again.closed)
  t.same(pass(149_900), [])
  t.same(pass(100), ['closed 3005'])
  t.same(pass(10_000_000), [])
  t.notOk(forever.closed)
})

t.test('a subscription that is not refreshed ends; one of the server closes the connection', async t => {
  const { timers, connect, subscribe, pass } = setUp()
  const session = connect()
  const [first, second, kept] = [subscribe(session, 'a'), subscribe(session, 'b'), subscribe(session, 'c')]
  for (const subscription of [first, second, kept]) expireSubscription(session, subscription, NOW + 10)
  expireSubscription(session, second, NOW + 20)
  expireSubscription(session, kept, 0)
  t.equal(timers.size, 2)
  const unsubscribe = (/** @type {string} */ channel) =>
    `{"push":{"channel":"${channel}","unsubscribe":{"code":2501,"reason":"subscription expired"}}}`
  t.same(pass(10_000 + DELAY_MS), [unsubscribe('a')])
  t.same(pass(10_000), [unsubscribe('b')])
  t.same(pass(1_000_000), [])
  t.equal(session.subscriptionCount, 1)
  const other = connect()
  expireSubscription(other, subscribe(other, 'd', Kind.SERVER_SIDE), NOW)
  t.same(pass(100), ['closed 3006'])
  t.notOk(session.closed)
})

t.test('what has ended does not stay in memory until it would have expired', async t => {
  const { timers, connect, subscribe, pass } = setUp()
  const session = connect()
  expireConnection(session, NOW + 1_000_000)
  for (const name of ['a', 'b', 'c']) expireSubscription(session, subscribe(session, name), NOW + 1_000_000)
  t.equal(timers.size, 4)
  const [a, b] = [session.subscription('a'), session.subscription('b')]
  if (a) session.removeSubscription(a)
  if (b) session.detachSubscription(b)
  t.equal(timers.size, 2)
  session.ended()
  t.equal(timers.size, 0)
  t.same(pass(2_000_000_000), [])
})

t.test('who does not connect in time is closed; until then, and not longer, it counts as open', async t => {
  const { sessions, open, pass, timers } = setUp()
  const first = open()
  pass(60)
  const second = open()
  const gone = open()
  gone.ended()
  pass(5000)
  const late = open()
  t.same(sessions.everyOpen(), [first, second, late])
  second.state = State.CONNECTED
  t.same(pass(4900), [])
  t.same(pass(200), ['closed 3502'])
  t.ok(first.closed)
  t.same(sessions.everyOpen(), [late])
  t.same(pass(5000), ['closed 3502'])
  t.same(sessions.everyOpen(), [])
  t.equal(timers.size, 0)
})
