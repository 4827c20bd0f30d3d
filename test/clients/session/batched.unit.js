// Sessions that end while a batch is sent: it has a payload that JSON cannot carry.

import t from 'tap'
import { createOperations } from '../../../src/backends/api/operations.js'
import { Disconnect, disconnects } from '../../../src/base/errors.js'
import { Hub } from '../../../src/channels/hub/hub.js'
import { JsonCodec } from '../../../src/clients/protocol/json.js'
import { Plan, WANTS_NOTHING } from '../../../src/clients/session/plan.js'
import { Session } from '../../../src/clients/session/session.js'
import { State } from '../../../src/clients/session/state.js'
import { makePublication } from '../protocol/publication.js'
import { createWorker } from './worker.js'

const BATCH = { namespace: '', maxSize: 0, maxDelay: 60_000, maxBytes: 100_000, latest: false, tag: '' }

/** A client with one subscription, to the channel x. */
function setUp() {
  const worker = createWorker()
  const { sessions, traffic, fanout, clock } = worker
  /** @type {any[]} */
  const ends = []
  /** @type {any[]} */
  const announced = []
  /** @type {any} */
  const pubsub = {
    subscribe: (
      /** @type {string} */ _channel,
      /** @type {any} */ _wants,
      /** @type {(error: null, answer: any) => void} */ done,
    ) => done(null, { offset: 0, epoch: '', recovered: false, publications: [] }),
    unsubscribe() {},
    announce: (/** @type {any[]} */ ...args) => announced.push(args),
  }
  const hub = new Hub({
    pubsub,
    fanout,
    sessions,
    clock,
    forEachSession: visit => sessions.forEach(visit),
  })
  hub.batches.use({ batches: true, resolve: () => ({ batch: BATCH }) })
  const namespace = {
    options: {
      allowed_delta_types: [],
      join_leave: true,
      map_clients_presence_channel_prefix: '',
      map_users_presence_channel_prefix: '',
      map: { remove_client_on_unsubscribe: false },
    },
    kind: 'stream',
    mapRules: null,
    historyOn: false,
    metaTtl: 0,
    handlers: { subRefresh: null },
  }
  /** @type {any} */
  const context = {
    ...worker,
    config: { client: { channel_limit: 10 } },
    rules: { resolve: () => namespace, mayReadHistory: () => false, mayReadPresence: () => false },
    ...{ hub, broker: { pubsub } },
  }
  const transport = /** @type {any} */ ({
    ...{ name: 'websocket', context, traffic: traffic.of('websocket') },
    ...{ send() {}, follow() {}, unfollow() {} },
    close: (/** @type {Session} */ _session, /** @type {any} */ disconnect) => ends.push(disconnect),
  })
  const session = new Session(transport, null, new JsonCodec(), 0)
  session.state = State.CONNECTED
  session.id = 'c'
  session.user = 'u'
  sessions.open++
  sessions.connected(session)
  hub.prepare('x', WANTS_NOTHING, (_error, channel) =>
    new Plan(session, 'x', /** @type {any} */ (namespace), {}, {}, false).join(channel),
  )
  hub.publication('x', makePublication({ data: Buffer.from('no json'), json: false }))
  return { hub, session, ends, announced, operate: createOperations(context, /** @type {any} */ ({})) }
}

t.test('a session that is being closed is ended once', async t => {
  const { hub, session, ends } = setUp()
  t.equal(hub.batches.held, 1)
  session.close(new Disconnect(3503, 'force disconnect'))
  t.same(ends, [disconnects.inappropriateProtocol])
  t.equal(hub.channels.size, 0)
})

t.test('a session that is being resubscribed has no subscription', async t => {
  const { hub, session, ends, announced, operate } = setUp()
  operate('subscribe', { user: 'u', channel: 'x', expireAt: 0 })
  t.same(ends, [disconnects.inappropriateProtocol])
  t.ok(session.closed)
  t.equal(session.subscriptionCount, 0)
  t.equal(hub.channels.size, 0)
  t.equal(hub.subscriptions, 0)
  t.equal(announced.filter(([, , joined]) => joined).length, 1)
})
