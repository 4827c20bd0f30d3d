import { Timer } from '../../base/timers.js'
import { CallFailed, isPromise, refusalOf } from '../hooks/contract.js'
import { HookEvent } from '../hooks/events.js'

/** @import { Log } from '../../base/log.js' */
/** @import { Session } from './session.js' */
/** @import { TimerWheel } from '../../base/timers.js' */
/** @import { Handler } from '../hooks/contract.js' */

/**
 * Maximum calls under way of one client: its commands are asked one by one, but its subscriptions may expire together.
 */
const MAX_PER_CLIENT = 32
/** Notices (disconnected, unsubscribed) under way at once; more wait. */
const MAX_NOTICES = 256

/** A handler's promise, until it settles, its time is over, or its client has left. */
class Call extends Timer {
  #calls
  #settled

  /**
   * @param {HookCalls} calls @param {Session | null} session null: nobody's departure ends it @param {HookEvent} event
   * @param {(error: Error | null, answer: any) => void} settled called once, unless the client leaves
   */
  constructor(calls, session, event, settled) {
    super()
    this.#calls = calls
    this.#settled = settled
    this.session = session
    this.event = event
    this.size = HookEvent.size(event)
    this.over = false
  }

  onTimer() {
    const error = new CallFailed('no answer in time', 'timeout')
    HookEvent.abort(this.event, error)
    this.settle(error, null)
  }

  /** @param {Error | null} error @param {any} answer */
  settle(error, answer) {
    if (this.over) return
    this.#calls.finished(this)
    this.#settled(error, answer)
  }

  /** The client has left. */
  abandon() {
    if (this.over) return
    this.#calls.finished(this)
    HookEvent.abort(this.event, new Error('the client has left'))
  }
}

/** The calls of handlers that a worker waits for. */
export class HookCalls {
  #timers
  #clock
  #log
  #limits
  /** Bytes of the events of calls under way. */
  #bytes = 0
  /** Calls under way that a session waits for. */
  #asked = 0
  /** Notices under way. */
  #notices = 0
  /** Bytes of the events of waiting notices. They take nothing from the calls of clients. */
  #noticeBytes = 0
  /** Notices that wait, from `#next` on. @type {{handler: Handler<any, void>, event: HookEvent, size: number}[]} */
  #waiting = []
  #next = 0
  /** Notices that were dropped, since the start. */
  dropped = 0

  /**
   * @param {object} parts @param {TimerWheel} parts.timers @param {() => number} parts.clock @param {Log} parts.log
   * @param {() => {max_calls: number, max_call_bytes: number}} parts.limits beyond them a call fails at once
   */
  constructor({ timers, clock, log, limits }) {
    this.#timers = timers
    this.#clock = clock
    this.#log = log
    this.#limits = limits
  }

  /** Whether handlers have not answered yet. */
  get busy() {
    return this.#asked + this.#notices > 0
  }

  /**
   * Asks a handler. An answer that is there at once is given at once.
   * @template {HookEvent} E
   * @template A
   * @param {Session} session @param {Handler<E, A>} handler @param {E} event
   * @param {(error: Error | null, answer: A | null) => void} done not called after the client has left. The error is a
   *   ReplyError, a Disconnect or a CallFailed, which has been logged
   * @returns {boolean} whether `done` is called later
   */
  ask(session, handler, event, done) {
    const under = session.extra?.calls ?? null
    const { max_calls, max_call_bytes } = this.#limits()
    let answer
    try {
      if (under !== null && under.size >= MAX_PER_CLIENT)
        throw new CallFailed('too many calls under way for one client', 'client_limit')
      if (this.#asked >= max_calls || this.#bytes >= max_call_bytes)
        throw new CallFailed('too many calls under way in this worker', 'worker_limit')
      answer = handler.call(event)
    } catch (error) {
      done(this.#refusal(handler, error), null)
      return false
    }
    if (!isPromise(answer)) {
      done(null, answer)
      return false
    }
    const call = new Call(this, session, event, (error, answer) =>
      done(error === null ? null : this.#refusal(handler, error), answer),
    )
    const extra = session.needExtra()
    extra.calls ??= new Set()
    extra.calls.add(call)
    this.#asked++
    this.#bytes += call.size
    this.#begin(call, handler.timeout)
    answer.then(
      value => call.settle(null, value),
      error => call.settle(asError(error), null),
    )
    return true
  }

  /** @param {Call} call @param {number} timeout ms, 0 = none */
  #begin(call, timeout) {
    if (timeout > 0) this.#timers.schedule(call, this.#clock() + timeout)
  }

  /** @param {Call} call */
  finished(call) {
    call.over = true
    this.#timers.cancel(call)
    if (call.session === null) {
      this.#notices--
      return
    }
    this.#asked--
    this.#bytes -= call.size
    call.session.extra?.calls?.delete(call)
  }

  /**
   * Tells a handler of something that has happened. Failures are only logged.
   * @param {Handler<any, void>} handler @param {HookEvent} event
   */
  notify(handler, event) {
    if (this.#notices < MAX_NOTICES) return this.#tell(handler, event)
    const size = HookEvent.size(event)
    if (this.#noticeBytes + size > this.#limits().max_call_bytes) {
      this.dropped++
      this.#log.error({}, 'notices of disconnects and unsubscribes were dropped: their handler is too slow')
      return
    }
    this.#noticeBytes += size
    this.#waiting.push({ handler, event, size })
  }

  /** @param {Handler<any, void>} handler @param {HookEvent} event */
  #tell(handler, event) {
    let answer
    try {
      answer = handler.call(event)
    } catch (error) {
      this.#refusal(handler, error)
      return
    }
    if (!isPromise(answer)) return
    this.#notices++
    const call = new Call(this, null, event, error => {
      if (error !== null) this.#refusal(handler, error)
      this.#tellWaiting()
    })
    this.#begin(call, handler.timeout)
    answer.then(
      () => call.settle(null, null),
      error => call.settle(asError(error), null),
    )
  }

  /** Several, if their handler answers at once. */
  #tellWaiting() {
    while (this.#notices < MAX_NOTICES && this.#next < this.#waiting.length) {
      const { handler, event, size } = this.#waiting[this.#next++]
      if (this.#next === this.#waiting.length) {
        this.#waiting = []
        this.#next = 0
      } else if (this.#next === MAX_NOTICES) {
        this.#waiting.splice(0, this.#next)
        this.#next = 0
      }
      this.#noticeBytes -= size
      this.#tell(handler, event)
    }
  }

  /**
   * @param {Handler<any, any>} handler @param {any} error
   * @returns {Error} what the client is told: the refusal, or a CallFailed
   */
  #refusal(handler, error) {
    const refusal = refusalOf(error)
    if (refusal !== null) return refusal
    const expected = error instanceof CallFailed
    const kind = expected ? error.kind : 'throw'
    handler.failed?.(kind)
    const fields = expected ? { reason: error.message } : { err: asError(error) }
    this.#log.error(fields, `the ${handler.name} failed`)
    return expected ? error : new CallFailed('it threw an error', kind)
  }
}

/** @param {any} thrown anything, also nothing @returns {Error} */
const asError = thrown => (thrown instanceof Error ? thrown : new Error(`it threw ${describe(thrown)}`))

/** @param {any} value @returns {string} */
function describe(value) {
  try {
    return typeof value === 'string' ? JSON.stringify(value.slice(0, 200)) : String(value).slice(0, 200)
  } catch {
    return typeof value
  }
}
