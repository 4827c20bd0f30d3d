import t from 'tap'
import { TimerWheel } from '../../../../src/base/timers.js'
import { JsonCodec } from '../../../../src/clients/protocol/json.js'
import { createSessionIds } from '../../../../src/clients/session/ids.js'
import { Sessions } from '../../../../src/clients/session/sessions.js'
import { Calls } from '../../../../src/clients/transport/calls.js'
import { Fanout } from '../../../../src/clients/transport/fanout.js'
import { PollEndpoint } from '../../../../src/clients/transport/poll/endpoint.js'
import { encodeCall } from '../../../../src/clients/transport/poll/request.js'
import { loadConfig } from '../../../../src/config/load.js'
import { Traffic } from '../../../../src/metrics/traffic.js'

/** An endpoint whose requests and calls the test makes itself. */
function setUp() {
  const clock = () => 1_000_000
  const timers = new TimerWheel(100, clock)
  const traffic = new Traffic([])
  const context = {
    handlers: { allHeaders: false, headers: [] },
    config: {
      poll: {
        handler_prefix: '/poll',
        timeout: 25_000,
        session_timeout: 30_000,
        replies_max_size: 64_000_000,
        max_request_body_size: 65_536,
      },
      client: { queue_max_size: 1_000_000, user_id_http_header: '' },
    },
    sessions: new Sessions({ pingInterval: 0, pongTimeout: 0, staleDelay: 0, timers, clock }),
    codecs: { json: new JsonCodec() },
    traffic,
    timers,
    clock,
    worker: 1,
    node: 'node',
    newSessionId: createSessionIds(1),
  }
  const calls = new Calls({ error: (_fields, message) => t.fail(message) })
  let request = (/** @type {any} */ _exchange) => {}
  const cors = {
    post: (_server, _path, handler) => {
      request = handler
    },
    headers: (_exchange, head) => head,
  }
  const fanout = new Fanout({ publish: () => {} }, traffic, () => loadConfig().config)
  const admission = { admits: () => true }
  const parts = { context, server: {}, fanout, cors, admission, calls }
  new PollEndpoint(/** @type {any} */ (parts)).mount()
  return {
    calls,
    /** @returns {string} id of a new session */
    open() {
      let name = ''
      request({
        query: '',
        waiter: null,
        header: () => '',
        body: (_limit, done) => done(Buffer.alloc(0)),
        reply: (_status, head) => {
          name = head['Halley-Session']
        },
      })
      return name.slice(0, 36)
    },
  }
}

t.test('the call of a poll ends when its client has left, and the session stays', async t => {
  const { calls, open } = setUp()
  const poll = { session: open(), node: '', ack: 0, send: 0, close: false, timeout: 25_000 }
  const answered = []
  const call = (number, body) => calls.called(encodeCall(poll, 7, number, body), () => answered.push(number))
  call(1, Buffer.alloc(0))
  t.same(answered, [], 'it waits')
  call(2, null)
  t.same(answered, [], 'another poll has been abandoned')
  call(1, null)
  t.same(answered, [1])
  call(1, null)
  call(3, Buffer.alloc(0))
  t.same(answered, [1], 'the next poll waits')
})
