import { Disconnect, disconnects, ReplyError, unsubscribes } from '../../base/errors.js'
import { Timer } from '../../base/timers.js'
import { UnknownRestriction } from '../hooks/contract.js'
import { RefreshEvent, SubRefreshEvent } from '../hooks/events.js'
import { Kind, list, NO_DETAILS } from './subscription.js'

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

/**
 * Replaces the connection info; presence shows it. Joins and leaves do not announce it.
 * @param {Session} session @param {string | undefined} info raw JSON; undefined: unchanged
 */
export function renewInfo(session, info) {
  if (info === undefined || info === session.info) return
  session.info = info
  for (const subscription of list(session.subscriptions)) showInfo(session, subscription)
}

/**
 * The same for the channel info of one subscription.
 * @param {Session} session @param {Subscription} subscription @param {string | undefined} info
 */
function renewChannelInfo(session, subscription, info) {
  if (info === undefined || info === subscription.details.info) return
  subscription.details = { info, expiry: subscription.details.expiry }
  showInfo(session, subscription)
}

/** @param {Session} session @param {Subscription} subscription whose info has changed */
function showInfo(session, subscription) {
  if (!subscription.is(Kind.PRESENT)) return
  const info = session.clientInfo(subscription.details.info)
  session.context.broker.presence.update(subscription.channel.name, session.id, info)
}

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
    renewInfo(session, answer.info)
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
      if (error !== null && !isRefusal(error) && !(error instanceof UnknownRestriction)) return this.#again()
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
    extendSubscription(
      this.#session,
      this.#subscription,
      answer.info || undefined,
      Math.max(0, answer.expireAt),
    )
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
 * Gives a subscription a new end, and a new channel info if there is one.
 * @param {Session} session @param {Subscription} subscription
 * @param {string | undefined} info raw JSON; undefined: unchanged @param {number} expireAt unix s, 0 = never
 */
export function extendSubscription(session, subscription, info, expireAt) {
  // The shared details of a plain subscription hold no expiry.
  if (subscription.details === NO_DETAILS) subscription.details = { ...NO_DETAILS }
  renewChannelInfo(session, subscription, info)
  expireSubscription(session, subscription, expireAt)
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
