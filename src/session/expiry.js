import { disconnects, unsubscribes } from '../errors.js'
import { Timer } from '../timer-wheel.js'
import { Kind } from './subscription.js'

/** @import { Session } from './session.js' */
/** @import { Subscription } from './subscription.js' */

class ConnectionExpiry extends Timer {
  #session

  /** @param {Session} session */
  constructor(session) {
    super()
    this.#session = session
  }

  onTimer() {
    this.#session.close(disconnects.connectionExpired)
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
    if (this.#subscription.is(Kind.SERVER_SIDE)) this.#session.close(disconnects.subscriptionExpired)
    else this.#session.unsubscribe(this.#subscription, unsubscribes.expired)
  }
}

/**
 * Closes the connection after `expireAt` and the delay for a refresh, instead of its former time.
 * @param {Session} session connected
 * @param {number} expireAt unix s, 0 = never
 */
export function expireConnection(session, expireAt) {
  const { timers, config } = session.context
  if (expireAt > 0) {
    session.expiry ??= new ConnectionExpiry(session)
    timers.schedule(session.expiry, expireAt * 1000 + config.client.expired_close_delay)
  } else if (session.expiry !== null) timers.cancel(session.expiry)
}

/**
 * Ends the subscription after `expireAt` and the delay for a refresh, instead of its former time.
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
