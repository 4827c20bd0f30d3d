import t from 'tap'
import { disconnects } from '../../../../src/base/errors.js'
import { Cohort } from '../../../../src/channels/hub/channel.js'
import { JsonCodec } from '../../../../src/clients/protocol/json.js'
import { createSessionIds } from '../../../../src/clients/session/ids.js'
import { Calls } from '../../../../src/clients/transport/calls.js'
import { PollEndpoint } from '../../../../src/clients/transport/poll/endpoint.js'
import { encodeCall } from '../../../../src/clients/transport/poll/request.js'
import { PollTransport } from '../../../../src/clients/transport/poll/transport.js'
import { createWorker } from '../../session/worker.js'

function setUp() {
  const worker = createWorker()
  const { sessions, fanout, pass } = worker
  const codec = new JsonCodec()
  const poll = { session_timeout: 30_000, replies_max_size: 64_000_000 }
  const context = /** @type {any} */ ({
    ...worker,
    handlers: { allHeaders: false, headers: [] },
    config: {
      poll: { ...poll, handler_prefix: '/poll', timeout: 25_000, max_request_body_size: 65_536 },
      client: { queue_max_size: 1_000_000, user_id_http_header: '' },
    },
    ...{ worker: 1, node: 'node', newSessionId: createSessionIds(1), codecs: { json: codec } },
  })
  const transport = new PollTransport(context, fanout)
  const cohort = new Cohort('', 'topic', codec, false, null, false)
  const open = () => transport.open(codec, { user: '', headers: [] })
  return { context, cohort, transport, sessions, fanout, pass, open }
}

/** Answers by turn of the event loop. */
class Answers {
  /** @type {number[]} */
  perTurn = [0]
  /** @type {Set<any>} the bodies */
  bodies = new Set()
  count = 0

  /** @returns {any} */
  waitingPoll() {
    return {
      is: () => false,
      answer: (/** @type {any} */ { body }) => {
        this.count++
        this.perTurn[this.perTurn.length - 1]++
        this.bodies.add(body)
      },
    }
  }

  /** @param {number} count */
  async all(count) {
    while (this.count < count) {
      await new Promise(setImmediate)
      this.perTurn.push(0)
    }
  }
}

t.test('a publication to thousands of polls is framed once and sent in slices', async t => {
  const { open, transport, fanout, cohort } = setUp()
  const answers = new Answers()
  for (let i = 0; i < 3000; i++) {
    const queue = open()
    transport.follow(queue.session, 'topic')
    transport.poll(queue, answers.waitingPoll(), 25_000)
  }
  const message = Buffer.from('{"push":{}}')
  fanout.publish(cohort, message, null)
  message.fill(0)
  t.equal(answers.count, 0, 'answered later')
  await answers.all(3000)
  t.ok(Math.max(...answers.perTurn) <= 128, `at most ${Math.max(...answers.perTurn)} in one turn`)
  t.same([...answers.bodies].map(String), ['{"push":{}}\n'], 'all polls share one buffer')
})

t.test('thousands of polls and sessions that time out together end in slices', async t => {
  const { open, transport, sessions, pass } = setUp()
  const answers = new Answers()
  for (let i = 0; i < 3000; i++) transport.poll(open(), answers.waitingPoll(), 25_000)
  pass(24_900)
  await new Promise(setImmediate)
  t.equal(answers.count, 0)
  pass(200)
  await answers.all(3000)
  t.ok(Math.max(...answers.perTurn) <= 128)
  t.equal(sessions.open, 3000)
  pass(30_100)
  const counts = []
  while (sessions.open > 0) {
    await new Promise(setImmediate)
    counts.push(sessions.open)
  }
  t.ok(counts.length > 20, 'they end in slices')
})

t.test('a waiting poll accepts any amount of messages of one turn', async t => {
  const { open, transport } = setUp()
  const queue = open()
  const answers = new Answers()
  transport.poll(queue, answers.waitingPoll(), 25_000)
  for (let i = 0; i < 18; i++) transport.send(queue.session, 'x'.repeat(100_000))
  t.equal(answers.count, 1, 'a full queue is answered at once')
  await new Promise(setImmediate)
  t.equal(queue.session.closed, false)
})

t.test('an ended session receives no publications', async t => {
  const { open, transport, fanout, cohort } = setUp()
  const queue = open()
  transport.follow(queue.session, 'topic')
  transport.leave(queue)
  fanout.publish(cohort, Buffer.from('{"push":{}}'), null)
  t.equal(queue.hasMessages, false)
  t.same(transport.backlog(), { bytes: 0, largest: 0 })
})

t.test('ended sessions above the limit keep no messages', async t => {
  const { open, transport, pass } = setUp()
  const answers = new Answers()
  const queues = Array.from({ length: 20 }, open)
  transport.poll(queues[0], answers.waitingPoll(), 25_000)
  for (const { session } of queues) {
    transport.send(session, 'x'.repeat(700_000))
    session.close(disconnects.shutdown)
  }
  await answers.all(1)
  t.ok([...answers.bodies][0].length > 700_000, 'a waiting poll gets all messages')
  const { bytes } = transport.backlog()
  t.ok(bytes > 4_000_000 && bytes < 9_500_000, `${bytes} bytes`)
  pass(30_100)
  await new Promise(setImmediate)
  t.same(transport.backlog(), { bytes: 0, largest: 0 })
})

t.test('the call of a poll ends when its client disconnects, and the session continues', async t => {
  const { context, fanout } = setUp()
  const calls = new Calls({ error: (_fields, message) => t.fail(message) })
  let request = (/** @type {any} */ _exchange) => {}
  const cors = {
    post: (/** @type {any} */ _server, /** @type {string} */ _path, /** @type {any} */ handler) => {
      request = handler
    },
    headers: (/** @type {any} */ _exchange, /** @type {any} */ head) => head,
  }
  new PollEndpoint(
    /** @type {any} */ ({ context, server: {}, fanout, cors, admission: { admits: () => true }, calls }),
  ).mount()
  let session = ''
  request({
    ...{ query: '', waiter: null, header: () => '' },
    body: (/** @type {number} */ _limit, /** @type {any} */ done) => done(Buffer.alloc(0)),
    reply: (/** @type {number} */ _status, /** @type {any} */ head) => {
      session = head['Halley-Session'].slice(0, 36)
    },
  })
  const poll = { session, node: '', ack: 0, send: 0, close: false, timeout: 25_000 }
  /** @type {number[]} */
  const answered = []
  const call = (/** @type {number} */ number, /** @type {Buffer | null} */ body) =>
    calls.called(encodeCall(poll, 7, number, body), () => answered.push(number))
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
