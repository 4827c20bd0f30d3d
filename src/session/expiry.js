import { Disconnect, disconnects, ReplyError, unsubscribes } from '../errors.js'
import { RefreshEvent, SubRefreshEvent } from '../hooks/events.js'
import { Timer } from '../timer-wheel.js'
import { Kind } from './subscription.js'

/** @import { RefreshAnswer } from '../hooks/contract.js' */
/** @import { Session } from './session.js' */
/** @import { Subscription } from './subscription.js' */

/** Time until a handler is asked again after a failed call, ms (server API). */
const RETRY_MS = 60_000

/**
 * @param {number | undefined} expireAt unix s; 0 or less, undefined = never @param {{now: () => number}} context
 * @returns {boolean}
 */
export const isPast = (expireAt, context) =>
  expireAt !== undefined && expireAt > 0 && expireAt < context.now()

/** @param {Error} error of HookCalls.ask */
const isRefusal = error => error instanceof ReplyError || error instanceof Disconnect

class ConnectionExpiry extends Timer {
  #session

  /** @param {Session} session */
  constructor(session) {
    super()
    this.#session = session
  }

  onTimer() {
    const session = this.#session
    const { refresh } = session.context.handlers
    if (refresh === null) return session.close(disconnects.connectionExpired)
    session.context.hookCalls.ask(session, refresh, new RefreshEvent(session), (error, answer) => {
      if (session.closed) return
      if (error !== null && !isRefusal(error)) return this.#again()
      this.#refreshed(error === null ? answer : null)
    })
  }

  /** The handler failed: the connection lives a little longer. */
  #again() {
    const { timers, clock } = this.#session.context
    timers.schedule(this, clock() + RETRY_MS)
  }

  /** @param {RefreshAnswer | null} answer null: it has expired */
  #refreshed(answer) {
    const session = this.#session
    if (answer?.unreadable) return session.close(disconnects.internal)
    if (answer === null || answer.expireAt <= session.context.now()) {
      return session.close(disconnects.connectionExpired)
    }
    if (answer.info !== undefined) session.info = answer.info
    if (answer.meta !== undefined) session.needExtra().meta = answer.meta
    expireConnection(session, answer.expireAt)
  }
}

class SubscriptionExpiry extends Timer {
  #session
  #subscription

  /** @param {Session} session @param {Subscription} subscription */
  constructor(session, subscription) {
    super()
    this.#session = session
    this.#subscription = subscription
  }

  onTimer() {
    const session = this.#session
    const { name } = this.#subscription.channel
    const handler = session.context.rules.resolve(name)?.handlers.subRefresh ?? null
    if (handler === null) return this.#end()
    session.context.hookCalls.ask(session, handler, new SubRefreshEvent(session, name), (error, answer) => {
      if (session.closed || session.subscription(name) !== this.#subscription) return
      if (error !== null && !isRefusal(error)) return this.#again()
      this.#refreshed(error === null ? answer : null)
    })
  }

  #again() {
    const { timers, clock } = this.#session.context
    timers.schedule(this, clock() + RETRY_MS)
  }

  /** @param {RefreshAnswer | null} answer null: it has expired */
  #refreshed(answer) {
    if (answer === null || isPast(answer.expireAt, this.#session.context)) return this.#end()
    const { details } = this.#subscription
    if (answer.info) details.info = answer.info
    expireSubscription(this.#session, this.#subscription, Math.max(0, answer.expireAt))
  }

  #end() {
    if (this.#subscription.is(Kind.SERVER_SIDE)) this.#session.close(disconnects.subscriptionExpired)
    else this.#session.unsubscribe(this.#subscription, unsubscribes.expired)
  }
}

/**
 * Asks the handler at `expireAt`, or closes the connection after the delay for a refresh, instead of its former time.
 * @param {Session} session connected
 * @param {number} expireAt unix s, 0 = never
 */
export function expireConnection(session, expireAt) {
  const { timers, config, handlers } = session.context
  if (expireAt > 0) {
    session.expiry ??= new ConnectionExpiry(session)
    const delay = handlers.refresh === null ? config.client.expired_close_delay : 0
    timers.schedule(session.expiry, expireAt * 1000 + delay)
  } else if (session.expiry !== null) timers.cancel(session.expiry)
}

/**
 * Asks the handler, or ends the subscription, after `expireAt` and the delay for a refresh, instead of its former time.
 * @param {Session} session
 * @param {Subscription} subscription with details of its own, unless it never expires
 * @param {number} expireAt unix s, 0 = never
 */
export function expireSubscription(session, subscription, expireAt) {
  const { timers, config } = session.context
  const { details } = subscription
  if (expireAt > 0) {
    details.expiry ??= new SubscriptionExpiry(session, subscription)
    timers.schedule(details.expiry, expireAt * 1000 + config.client.expired_sub_close_delay)
  } else if (details.expiry !== null) timers.cancel(details.expiry)
}
