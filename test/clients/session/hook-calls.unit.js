// Calls of handlers: limits and aborts.

import t from 'tap'
import { TimerWheel } from '../../../src/base/timers.js'
import { CallFailed } from '../../../src/clients/hooks/contract.js'
import { DisconnectedEvent, HookEvent } from '../../../src/clients/hooks/events.js'
import { HookCalls } from '../../../src/clients/session/hook-calls.js'
import { turn } from '../../kit/wait.js'

/** As in hook-calls.js. */
const MAX_NOTICES = 256

function setUp(limits = { max_calls: 1000, max_call_bytes: 1024 * 1024 }) {
  /** @type {string[]} */
  const lines = []
  const log = /** @type {any} */ ({
    error: (/** @type {any} */ _, /** @type {string} */ line) => lines.push(line),
  })
  const clock = Date.now
  const calls = new HookCalls({ timers: new TimerWheel(100, clock), clock, log, limits: () => limits })
  const session = /** @type {any} */ ({ extra: null, needExtra: () => (session.extra ??= { calls: null }) })
  return { calls, session, lines }
}

/** @param {(event: any) => any} call @returns {any} */
const handlerOf = call => ({ name: 'test hook', timeout: 0, call })

t.test('notices queued behind a slow handler are all sent, in order', async t => {
  const { calls, session } = setUp()
  /** @type {any[]} */
  const sent = []
  /** @type {(() => void)[]} */
  const answers = []
  const handler = handlerOf(event => {
    sent.push(event)
    if (sent.length <= MAX_NOTICES) return new Promise(resolve => answers.push(() => resolve(undefined)))
  })
  const events = Array.from({ length: MAX_NOTICES + 10 }, () => new HookEvent(session))
  for (const event of events) calls.notify(handler, event)
  t.equal(sent.length, MAX_NOTICES)
  answers[0]()
  await turn()
  t.same(sent.length, events.length, 'one result makes room for several notices')
  t.ok(sent.every((event, at) => event === events[at]))
})

t.test('queued notices do not count against the calls of clients', async t => {
  const { calls, session, lines } = setUp({ max_calls: 10, max_call_bytes: 64 * 1024 })
  const never = handlerOf(() => new Promise(() => {}))
  while (calls.dropped === 0)
    calls.notify(never, new DisconnectedEvent(session, { code: 3000, reason: '' }, [], 1))
  t.match(lines, [/notices .* dropped/])
  /** @type {any[]} */
  const answered = []
  const now = handlerOf(() => 'yes')
  calls.ask(session, now, new HookEvent(session), (error, answer) => answered.push(error ?? answer))
  t.same(answered, ['yes'])
})

t.test('a signal that a handler reads after its call has ended is aborted', async t => {
  const { calls, session } = setUp()
  const event = new HookEvent(session)
  const never = handlerOf(() => new Promise(() => {}))
  calls.ask(session, never, event, () => t.fail('the client disconnected'))
  for (const call of session.extra.calls) call.abandon()
  t.ok(event.signal.aborted)
  t.match(event.signal.reason, { message: 'the client disconnected' })
  t.notOk(calls.busy)
})

t.test('a rejected promise is a failed call and is logged, whatever its value', async t => {
  const { calls, session, lines } = setUp()
  for (const value of [undefined, null, 0, '', false, NaN]) {
    const rejecting = handlerOf(() => Promise.reject(value))
    const [error, answer] = await new Promise(resolve =>
      calls.ask(session, rejecting, new HookEvent(session), (...settled) => resolve(settled)),
    )
    t.ok(error instanceof CallFailed, `${value}`)
    t.equal(answer, null)
    calls.notify(rejecting, new HookEvent(session))
    await turn()
    t.same(lines.splice(0), Array(2).fill('hook call failed'))
  }
  t.notOk(calls.busy)
})
