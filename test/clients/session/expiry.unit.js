// Timers of sessions and subscriptions end with them. refresh.test.js tests their expiry.

import t from 'tap'
import { JsonCodec } from '../../../src/clients/protocol/json.js'
import { expireConnection, expireSubscription } from '../../../src/clients/session/expiry.js'
import { Session } from '../../../src/clients/session/session.js'
import { State } from '../../../src/clients/session/state.js'
import { NO_DETAILS, Subscription } from '../../../src/clients/session/subscription.js'
import { createWorker } from './worker.js'

const LATER = 2_000_000_000

function setUp() {
  const worker = createWorker(10_000)
  const { timers, sessions, traffic } = worker
  /** @type {string[]} messages and closes */
  const ends = []
  const client = { expired_close_delay: 25_000, expired_sub_close_delay: 25_000 }
  const rules = { resolve: () => undefined }
  const transport = /** @type {any} */ ({
    context: { ...worker, config: { client }, rules, hub: { leave() {} }, broker: {} },
    traffic: traffic.of('websocket'),
    send: (/** @type {Session} */ _session, /** @type {string} */ text) => void ends.push(text),
    close: (/** @type {Session} */ _session, /** @type {any} */ { code }) => void ends.push(`closed ${code}`),
  })
  return {
    timers,
    sessions,
    open() {
      const session = new Session(transport, null, new JsonCodec(), 0)
      sessions.opened(session)
      return session
    },
    subscribe(/** @type {Session} */ session, /** @type {string} */ name) {
      const [channel, cohort] = /** @type {any[]} */ ([{ name }, {}])
      const subscription = new Subscription(channel, cohort, null, 0, { ...NO_DETAILS })
      session.addSubscription(subscription)
      return subscription
    },
    /** @param {number} ms @returns {string[]} */
    pass(ms) {
      worker.pass(ms)
      return ends.splice(0)
    },
  }
}

t.test('ended sessions and removed subscriptions leave no timers', async t => {
  const { timers, sessions, open, subscribe, pass } = setUp()
  const session = open()
  session.state = State.CONNECTED
  sessions.connected(session)
  pass(10_000)
  expireConnection(session, LATER)
  for (const name of ['a', 'b', 'c']) expireSubscription(session, subscribe(session, name), LATER)
  t.equal(timers.size, 4)
  const [a, b] = [session.subscription('a'), session.subscription('b')]
  if (a) session.removeSubscription(a)
  if (b) session.detachSubscription(b)
  t.equal(timers.size, 2)
  session.ended()
  t.equal(timers.size, 0)
  t.same(pass(LATER), [])
})

t.test('a session without a connect command is closed in time, and counts as open until then', async t => {
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
