import t from 'tap'
import { disconnects } from '../../../../src/base/errors.js'
import { TimerWheel } from '../../../../src/base/timers.js'
import { Cohort } from '../../../../src/channels/hub/channel.js'
import { JsonCodec } from '../../../../src/clients/protocol/json.js'
import { Sessions } from '../../../../src/clients/session/sessions.js'
import { Fanout } from '../../../../src/clients/transport/fanout.js'
import { PollTransport } from '../../../../src/clients/transport/poll/transport.js'
import { loadConfig } from '../../../../src/config/load.js'
import { Traffic } from '../../../../src/metrics/traffic.js'

/** The parts of a worker that the transport touches, and a count of turns of the event loop. */
function setUp() {
  let now = 1_000_000
  let last = 0
  const clock = () => now
  const timers = new TimerWheel(100, clock)
  const sessions = new Sessions({ pingInterval: 0, pongTimeout: 0, staleDelay: 0, timers, clock })
  const traffic = new Traffic([])
  const fanout = new Fanout({ publish: () => {} }, traffic, () => loadConfig().config)
  const context = {
    config: {
      poll: { session_timeout: 30_000, replies_max_size: 64_000_000 },
      client: { queue_max_size: 1_000_000 },
    },
    sessions,
    traffic,
    timers,
    clock,
    replies: { owner: null },
    refusals: { add: () => {} },
    newSessionId: () => `session ${++last}`,
  }
  const transport = new PollTransport(/** @type {any} */ (context), fanout)
  const codec = new JsonCodec()
  const cohort = new Cohort('', 'topic', codec, false, null, false)
  return {
    cohort,
    transport,
    sessions,
    fanout,
    open: () => transport.open(codec, { user: '', headers: [] }),
    /** @param {number} ms */
    pass(ms) {
      now += ms
      while (timers.tick());
    },
  }
}

/** Answers, by the turn of the event loop in which they came. */
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

t.test('a publication to thousands of polls: framed once, answered in small pieces', async t => {
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
  t.equal(answers.count, 0, 'nothing is answered where it arises')
  await answers.all(3000)
  t.ok(Math.max(...answers.perTurn) <= 128, `at most ${Math.max(...answers.perTurn)} in one turn`)
  t.same([...answers.bodies].map(String), ['{"push":{}}\n'], 'one buffer for all')
})

t.test('thousands of polls whose time passes at once, and their sessions', async t => {
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
  const open1 = []
  while (sessions.open > 0) {
    await new Promise(setImmediate)
    open1.push(sessions.open)
  }
  t.ok(open1.length > 20, 'they end in small pieces, too')
})

t.test('what comes in one turn leaves in one answer', async t => {
  const { open, transport } = setUp()
  const answers = new Answers()
  const queue = open()
  transport.poll(queue, answers.waitingPoll(), 25_000)
  for (const text of ['1', '2', '3']) transport.send(queue.session, text)
  await answers.all(1)
  t.same([...answers.bodies], ['1\n2\n3\n'])
})

t.test('however much comes in one turn, a client that asks gets it', async t => {
  const { open, transport } = setUp()
  const queue = open()
  const answers = new Answers()
  transport.poll(queue, answers.waitingPoll(), 25_000)
  for (let i = 0; i < 18; i++) transport.send(queue.session, 'x'.repeat(100_000))
  t.equal(answers.count, 1, 'what is long enough leaves at once')
  await new Promise(setImmediate)
  t.equal(queue.session.closed, false)
})

t.test('a session that has left keeps nothing of what is published until it is released', async t => {
  const { open, transport, fanout, cohort } = setUp()
  const queue = open()
  transport.follow(queue.session, 'topic')
  transport.leave(queue)
  fanout.publish(cohort, Buffer.from('{"push":{}}'), null)
  t.equal(queue.hasMessages, false)
  t.same(transport.backlog(), { bytes: 0, largest: 0 })
})

t.test('ended sessions above their limit keep nothing', async t => {
  const { open, transport, pass } = setUp()
  const answers = new Answers()
  const queues = Array.from({ length: 20 }, open)
  transport.poll(queues[0], answers.waitingPoll(), 25_000)
  for (const { session } of queues) {
    transport.send(session, 'x'.repeat(700_000))
    session.close(disconnects.shutdown)
  }
  await answers.all(1)
  t.ok([...answers.bodies][0].length > 700_000, 'one that is polling gets all')
  const { bytes } = transport.backlog()
  t.ok(bytes > 4_000_000 && bytes < 9_500_000, `${bytes} bytes`)
  pass(30_100)
  await new Promise(setImmediate)
  t.same(transport.backlog(), { bytes: 0, largest: 0 })
})
