import { Timer } from '../../base/timers.js'
import { CallFailed, isPromise, refusalOf } from '../hooks/contract.js'
import { HookEvent } from '../hooks/events.js'

/** @import { Log } from '../../base/log.js' */
/** @import { Session } from './session.js' */
/** @import { TimerWheel } from '../../base/timers.js' */
/** @import { Handler } from '../hooks/contract.js' */

/** Maximum pending calls per client: subscriptions may expire together. */
const MAX_PER_CLIENT = 32
/** Maximum pending notices (disconnected, unsubscribed); others wait. */
const MAX_NOTICES = 256

/** A handler's promise until it settles, times out, or the client disconnects. */
class Call extends Timer {
  #calls
  #settled

  /**
   * @param {HookCalls} calls @param {Session | null} session null: of no client @param {HookEvent} event
   * @param {(error: Error | null, answer: any) => void} settled called once, unless the client disconnects
   */
  constructor(calls, session, event, settled) {
    super()
    this.#calls = calls
    this.#settled = settled
    this.session = session
    this.event = event
    this.size = HookEvent.size(event)
    this.over = false
    /** Whether it is limited as a notice. */
    this.notice = false
  }

  onTimer() {
    const error = new CallFailed('timed out', 'timeout')
    HookEvent.abort(this.event, error)
    this.settle(error, null)
  }

  /** @param {Error | null} error @param {any} answer */
  settle(error, answer) {
    if (this.over) return
    this.#calls.finished(this)
    this.#settled(error, answer)
  }

  abandon() {
    if (this.over) return
    this.#calls.finished(this)
    HookEvent.abort(this.event, new Error('the client disconnected'))
  }
}

export class HookCalls {
  #timers
  #clock
  #log
  #limits
  /** Pending calls of sessions, and the bytes of their events. */
  #calls = 0
  #bytes = 0
  /** Those of no client: nobody waits for them. */
  #unowned = 0
  #notices = 0
  /** Waiting notices, from `#next` on. @type {{handler: Handler<any, void>, event: HookEvent, size: number}[]} */
  #waiting = []
  #next = 0
  #waitingBytes = 0
  dropped = 0

  /**
   * @param {object} parts @param {TimerWheel} parts.timers @param {() => number} parts.clock @param {Log} parts.log
   * @param {() => {max_calls: number, max_call_bytes: number}} parts.limits further calls fail immediately
   */
  constructor({ timers, clock, log, limits }) {
    this.#timers = timers
    this.#clock = clock
    this.#log = log
    this.#limits = limits
  }

  /** Whether calls for clients, or notices, are pending. */
  get busy() {
    return this.#calls - this.#unowned + this.#notices > 0
  }

  /**
   * Calls a handler. `done` runs synchronously for a synchronous result.
   * @template {HookEvent} E
   * @template A
   * @param {Session | null} session null: of no client @param {Handler<E, A>} handler @param {E} event
   * @param {(error: Error | null, answer: A | null) => void} done not called after a disconnect
   * @returns {boolean} whether `done` is called later
   */
  ask(session, handler, event, done) {
    const pending = session?.extra?.calls?.size ?? 0
    const { max_calls, max_call_bytes } = this.#limits()
    let answer
    try {
      if (pending >= MAX_PER_CLIENT)
        throw new CallFailed('too many pending calls of one client', 'client_limit')
      if (this.#calls >= max_calls || this.#bytes >= max_call_bytes)
        throw new CallFailed('too many pending calls in this worker', 'worker_limit')
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
    if (session === null) this.#unowned++
    else {
      const extra = session.needExtra()
      extra.calls ??= new Set()
      extra.calls.add(call)
    }
    this.#calls++
    this.#bytes += call.size
    this.#await(call, handler, answer)
    return true
  }

  /** @param {Call} call @param {Handler<any, any>} handler @param {Promise<any>} answer */
  #await(call, { timeout }, answer) {
    if (timeout > 0) this.#timers.schedule(call, this.#clock() + timeout)
    answer.then(
      value => call.settle(null, value),
      error => call.settle(asError(error), null),
    )
  }

  /** @param {Call} call */
  finished(call) {
    call.over = true
    this.#timers.cancel(call)
    if (call.notice) {
      this.#notices--
      return
    }
    this.#calls--
    this.#bytes -= call.size
    if (call.session === null) this.#unowned--
    call.session?.extra?.calls?.delete(call)
  }

  /** Only logs failures. @param {Handler<any, void>} handler @param {HookEvent} event */
  notify(handler, event) {
    if (this.#notices < MAX_NOTICES) return this.#send(handler, event)
    const size = HookEvent.size(event)
    if (this.#waitingBytes + size > this.#limits().max_call_bytes) {
      this.dropped++
      this.#log.error({}, 'notices of disconnects and unsubscribes dropped: the handler is too slow')
      return
    }
    this.#waitingBytes += size
    this.#waiting.push({ handler, event, size })
  }

  /** @param {Handler<any, void>} handler @param {HookEvent} event */
  #send(handler, event) {
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
      this.#notifyWaiting()
    })
    call.notice = true
    this.#await(call, handler, answer)
  }

  /** Sends several if the handler returns synchronously. */
  #notifyWaiting() {
    while (this.#notices < MAX_NOTICES && this.#next < this.#waiting.length) {
      const { handler, event, size } = this.#waiting[this.#next++]
      if (this.#next === this.#waiting.length) {
        this.#waiting = []
        this.#next = 0
      } else if (this.#next === MAX_NOTICES) {
        this.#waiting.splice(0, this.#next)
        this.#next = 0
      }
      this.#waitingBytes -= size
      this.#send(handler, event)
    }
  }

  /** @param {Handler<any, any>} handler @param {any} error @returns {Error} a refusal, or a logged CallFailed */
  #refusal(handler, error) {
    const refusal = refusalOf(error)
    if (refusal !== null) return refusal
    const expected = error instanceof CallFailed
    const kind = expected ? error.kind : 'throw'
    handler.failed?.(kind)
    const fields = expected ? { reason: error.message } : { err: asError(error) }
    const key = `hook call failed: ${handler.name}`
    this.#log.error({ hook: handler.name, ...fields }, 'hook call failed', key)
    return expected ? error : new CallFailed('the handler threw an error', kind)
  }
}

/** @param {any} thrown @returns {Error} */
const asError = thrown =>
  thrown instanceof Error ? thrown : new Error(`the handler threw ${describe(thrown)}`)

/** @param {any} value @returns {string} */
function describe(value) {
  try {
    return typeof value === 'string' ? JSON.stringify(value.slice(0, 200)) : String(value).slice(0, 200)
  } catch {
    return typeof value
  }
}
