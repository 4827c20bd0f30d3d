// Calls of the backend for empty caches: shared, and an answer `populated: false` holds for a second.

import t from 'tap'
import { TimerWheel } from '../../../src/base/timers.js'
import { EmptyCaches } from '../../../src/clients/session/cache-empty.js'

function setUp() {
  let now = 1_700_000_000_000
  const timers = new TimerWheel(100, () => now)
  /** @type {{channel: string, answer: (error: Error | null, answer: any) => void}[]} */
  const calls = []
  const hookCalls = {
    ask: (_session, _handler, { channel }, answer) => void calls.push({ channel, answer }),
  }
  const context = /** @type {any} */ ({ timers, clock: () => now, hookCalls, log: { error() {} } })
  const caches = new EmptyCaches()
  /** @type {(Error | null)[]} */
  const answers = []
  return {
    calls,
    answers,
    ask: (channel = 'a') =>
      caches.ask(context, channel, /** @type {any} */ ({}), error => void answers.push(error)),
    pass(ms) {
      now += ms
      timers.tick()
    },
  }
}

const turn = () => new Promise(resolve => setImmediate(resolve))

t.test('one call a channel at a time, shared by all', async t => {
  const { calls, answers, ask } = setUp()
  let shared = 0
  for (let i = 0; i < 1000; i++) if (ask()) shared++
  t.equal(shared, 1000)
  ask('b')
  await turn()
  t.strictSame(
    calls.map(({ channel }) => channel),
    ['a', 'b'],
  )
  calls[0].answer(null, { populated: true })
  t.equal(answers.length, 1000)
  t.equal(ask(), true, 'true is not kept')
})

t.test('false holds for a second, for this channel', async t => {
  const { calls, ask, pass } = setUp()
  for (const [i, answer] of [{ populated: false }, null].entries()) {
    t.equal(ask(), true)
    await turn()
    calls[i].answer(null, answer)
    t.equal(ask(), false)
    pass(900)
    t.equal(ask(), false)
    pass(200)
  }
  t.equal(ask(), true)
  t.equal(ask('b'), true)
})

t.test('a failure is that of all who wait, and is not kept', async t => {
  const { calls, answers, ask } = setUp()
  const failure = new Error('down')
  ask()
  ask()
  await turn()
  calls[0].answer(failure, null)
  t.strictSame(answers, [failure, failure])
  t.equal(ask(), true)
})
